package output

// Queue is a queue that reuses its memory.
type Queue[T any] struct {
	items []T
	off   int
}

func (f *Queue[T]) Len() int { return len(f.items) - f.off }

func (f *Queue[T]) Push(v T) {
	if f.off > 0 && len(f.items) == cap(f.items) && f.off >= len(f.items)/2 {
		n := copy(f.items, f.items[f.off:])
		clear(f.items[n:])
		f.items, f.off = f.items[:n], 0
	}
	f.items = append(f.items, v)
}

func (f *Queue[T]) Pop() T {
	var zero T
	v := f.items[f.off]
	f.items[f.off] = zero
	if f.off++; f.off == len(f.items) {
		f.items, f.off = f.items[:0], 0
	}
	return v
}

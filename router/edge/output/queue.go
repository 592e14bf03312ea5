package output

// Queue is a first-in, first-out queue that reuses its memory. The zero value is empty.
type Queue[T any] struct {
	items []T
	off   int
}

// Len returns the number of values.
func (q *Queue[T]) Len() int { return len(q.items) - q.off }

// Push adds a value.
func (q *Queue[T]) Push(v T) {
	if q.off > 0 && len(q.items) == cap(q.items) && q.off >= len(q.items)/2 {
		n := copy(q.items, q.items[q.off:])
		clear(q.items[n:])
		q.items, q.off = q.items[:n], 0
	}
	q.items = append(q.items, v)
}

// Pop removes and returns the oldest value. There must be one.
func (q *Queue[T]) Pop() T {
	var zero T
	v := q.items[q.off]
	q.items[q.off] = zero
	if q.off++; q.off == len(q.items) {
		q.items, q.off = q.items[:0], 0
	}
	return v
}

package sessions

// places is a heap of one owner's places, least recently used session first. since is at most the time of the
// session's last use, or in the future if it was found in use.
type places[S Session] []*place[S]

func (h places[S]) Len() int           { return len(h) }
func (h places[S]) Less(i, j int) bool { return h[i].since < h[j].since }
func (h places[S]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *places[S]) Push(x any) {
	p := x.(*place[S])
	p.index = len(*h)
	*h = append(*h, p)
}

func (h *places[S]) Pop() any { return pop((*[]*place[S])(h)) }

// ranks is a heap of owners, the one with the most sessions first.
type ranks[S Session] []*owner[S]

func (h ranks[S]) Len() int           { return len(h) }
func (h ranks[S]) Less(i, j int) bool { return len(h[i].places) > len(h[j].places) }
func (h ranks[S]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].rank, h[j].rank = i, j
}

func (h *ranks[S]) Push(x any) {
	o := x.(*owner[S])
	o.rank = len(*h)
	*h = append(*h, o)
}

func (h *ranks[S]) Pop() any { return pop((*[]*owner[S])(h)) }

func pop[T any](list *[]*T) *T {
	last := len(*list) - 1
	v := (*list)[last]
	(*list)[last] = nil
	*list = (*list)[:last]
	return v
}

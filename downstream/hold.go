package downstream

// Hold charges n bytes to a caller until release is called once. It is false where the caller holds too much already.
type Hold func(n int) (release func(), ok bool)

// take is the Hold of a caller that may be nobody.
func (h Hold) take(n int) (release func(), ok bool) {
	if h == nil {
		return func() {}, true
	}
	return h(n)
}

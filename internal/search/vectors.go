package search

import "slices"

// maxVectorBytes limits the vectors of an index: 30,000 tools with the common 1,536 dimensions. Tools beyond it have
// no vector and are found by their words.
const maxVectorBytes = 48 << 20

// vectors describes the vectors of an index's entries. It has the same guard as the entries.
type vectors struct {
	room       int // maximum total bytes
	bytes      int
	dimensions int // of all vectors; a change means another model
	next       int // all entries before this slot have a vector
}

// set sets the vector of an entry.
func (v *vectors) set(e *entry, now vector) {
	v.bytes += len(now.parts) - len(e.vector.parts)
	e.vector = now
}

// adopt drops all vectors of another dimension.
func (v *vectors) adopt(dimensions int, docs []entry) {
	if v.dimensions == dimensions {
		return
	}
	for slot := range docs {
		docs[slot].vector = vector{}
	}
	*v = vectors{room: v.room, dimensions: dimensions}
}

// unknown is a tool whose vector is not known.
type unknown struct {
	slot uint32
	key  textKey
	tool Tool
}

// unknowns returns the first n tools without vectors, as far as their vectors fit. full reports that the limit was
// reached.
func (x *Index) unknowns(n int) (tools []unknown, full bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	v := &x.vectors
	room := v.room - v.bytes
	for slot := v.next; slot < len(x.docs) && len(tools) < n; slot++ {
		e := &x.docs[slot]
		if e.terms == nil || e.vector.parts != nil {
			if len(tools) == 0 {
				v.next = slot + 1
			}
			continue
		}
		if room -= max(v.dimensions, 1); room < 0 {
			return tools, true
		}
		tools = append(tools, unknown{uint32(slot), e.text, e.tool})
	}
	return tools, false
}

// learn stores the vectors of tools that are still indexed, as far as they fit. Vectors of another dimension replace
// all others, because the model has changed.
func (x *Index) learn(tools []unknown, found []vector) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.vectors.adopt(len(found[0].parts), x.docs)
	for i, t := range tools {
		there := int(t.slot) < len(x.docs) && x.docs[t.slot].text == t.key && x.docs[t.slot].terms != nil
		if there && x.vectors.bytes+x.vectors.dimensions <= x.vectors.room {
			x.vectors.set(&x.docs[t.slot], found[i])
		}
	}
}

// nearest returns the n tools whose vectors are closest to any of a question's vectors, closest first, with the
// similarity as score. Allow is called while the index is read-locked.
func (x *Index) nearest(question []vector, n int, allow func(server, name string) bool) []Hit {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var best []candidate // a heap with the worst on top
	for slot := range x.docs {
		e := &x.docs[slot]
		if e.vector.parts == nil {
			continue
		}
		c := candidate{slot: uint32(slot), score: similarity(question, e.vector)}
		if len(best) == n && x.order(c, best[0]) >= 0 || allow != nil && !allow(e.tool.Server, e.tool.Name) {
			continue
		}
		best = x.offer(best, c, n)
	}
	slices.SortFunc(best, x.order)
	hits := make([]Hit, len(best))
	for i, c := range best {
		hits[i] = Hit{ID: x.docs[c.slot].tool.ID, Score: c.score, vector: x.docs[c.slot].vector}
	}
	return hits
}

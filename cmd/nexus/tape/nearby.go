package tape

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
)

const (
	maxRare  = 32      // indexed words of a request
	maxWords = 1 << 20 // words of all requests that are counted; later ones count as rare
)

// nearby finds requests by their words without reading them. It indexes the rarest words of each request, because
// prompts share most words.
type nearby struct {
	requests []recorded
	having   map[uint64][]int32 // indexes of requests, by word
}

// recorded is a request of a recording.
type recorded struct {
	kind, to string
	place    results.Place
}

// readNearby reads the recording twice: to count words, and to choose among them.
func readNearby(t *Tape) *nearby {
	counts := map[uint64]int{}
	n := &nearby{having: map[uint64][]int32{}}
	each := func(do func(e *exchange, at results.Place, words []uint64)) {
		_ = t.read(func(e *exchange, at results.Place) error { // an unreadable file has no requests
			if len(e.Request) > 0 {
				do(e, at, words(e.Request))
			}
			return nil
		})
	}
	each(func(_ *exchange, _ results.Place, words []uint64) {
		for _, w := range words {
			if _, known := counts[w]; known || len(counts) < maxWords {
				counts[w]++
			}
		}
	})
	each(func(e *exchange, at results.Place, words []uint64) {
		slices.SortFunc(words, func(a, b uint64) int { return cmp.Or(counts[a]-counts[b], cmp.Compare(a, b)) })
		for _, w := range words[:min(len(words), maxRare)] {
			n.having[w] = append(n.having[w], int32(len(n.requests)))
		}
		n.requests = append(n.requests, recorded{e.Kind, e.To, at})
	})
	return n
}

// nearest returns the recorded request of the same kind that shares the most rare words, preferring the same receiver.
func (t *Tape) nearest(q asked) (nearest exchange, found bool) {
	n := t.nearby()
	common := make([]int, len(n.requests))
	for _, w := range words(q.raw) {
		for _, i := range n.having[w] {
			common[i]++
		}
	}
	best, most := -1, -1
	for i, r := range n.requests {
		score := common[i]
		if r.to == q.to {
			score += maxRare
		}
		if r.kind == q.kind && score > most {
			best, most = i, score
		}
	}
	if best < 0 {
		return exchange{}, false
	}
	nearest, err := t.line(n.requests[best].place)
	return nearest, err == nil
}

// words returns hashes of the words of a request, once each.
func words(raw []byte) []uint64 {
	found := map[uint64]bool{}
	between := func(r rune) bool { return strings.ContainsRune(" \"{}[]:,\\", r) }
	for w := range strings.FieldsFuncSeq(string(raw), between) {
		h := fnv.New64a()
		_, _ = h.Write([]byte(w))
		found[h.Sum64()] = true
	}
	return slices.Collect(maps.Keys(found))
}

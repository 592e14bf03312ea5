package tape

import (
	"fmt"
	"strings"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

// How much of requests an error shows, in bytes: before and from where they differ.
const (
	maxSame  = 60
	maxShown = 300
)

// miss notes that a request has no answer.
func (t *Tape) miss(scope, kind, to string, raw []byte, recorded int) error {
	var err error
	nearest, found := t.nearest(kind, to, raw)
	switch {
	case recorded > 0:
		err = fmt.Errorf("not recorded: %s %s %s was answered %d times, and this is one more", kind, to, shown(raw, 0), recorded)
	case !found:
		err = fmt.Errorf("not recorded: %s %s %s; there is no recorded %s at all", kind, to, shown(raw, 0), kind)
	default:
		same := 0
		for same < min(len(raw), len(nearest.Request)) && raw[same] == nearest.Request[same] {
			same++
		}
		err = fmt.Errorf("not recorded: %s %s %s; nearest is %s of %s: %s", kind, to, shown(raw, same),
			nearest.To, nearest.Scope, shown(nearest.Request, same))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.missed[scope] == nil {
		t.missed[scope] = err
	}
	return err
}

// nearest returns the recorded request of a kind that shares most words with one, if possible to the same receiver.
func (t *Tape) nearest(kind, to string, raw []byte) (nearest exchange, found bool) {
	wanted := words(raw)
	best := -1
	_ = t.read(func(e *exchange, _ results.Place) { // a file that cannot be read has none
		if e.Kind != kind {
			return
		}
		common, all := 0, words(e.Request)
		for w := range all {
			if wanted[w] {
				common++
			}
		}
		score := 2000 * common / max(1, len(wanted)+len(all))
		if e.To == to {
			score += 1000
		}
		if score > best {
			best, nearest = score, *e
		}
	})
	return nearest, best >= 0
}

func words(raw []byte) map[string]bool {
	found := map[string]bool{}
	between := func(r rune) bool { return strings.ContainsRune(" \"{}[]:,\\", r) }
	for w := range strings.FieldsFuncSeq(string(raw), between) {
		found[w] = true
	}
	return found
}

// shown shows a request from a little before a place.
func shown(raw []byte, from int) string {
	if from <= maxSame {
		return short.Line(string(raw), maxShown)
	}
	return "…" + short.Line(string(raw[from-maxSame:]), maxShown)
}

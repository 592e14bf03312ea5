package tape

import (
	"fmt"

	"github.com/agenticnexus/agenticnexus/internal/short"
)

// Bytes of a request that an error shows before and after the first difference.
const (
	maxSame  = 60
	maxShown = 300
)

// miss records that a request has no answer.
func (t *Tape) miss(q asked, recorded int) error {
	var err error
	nearest, found := t.nearest(q)
	switch {
	case recorded > 0:
		err = fmt.Errorf("not recorded: %s %s %s was answered %d times, and this is one more",
			q.kind, q.to, shown(q.raw, 0), recorded)
	case !found:
		err = fmt.Errorf("not recorded: %s %s %s; the recording has no %s", q.kind, q.to, shown(q.raw, 0), q.kind)
	default:
		same := 0
		for same < min(len(q.raw), len(nearest.Request)) && q.raw[same] == nearest.Request[same] {
			same++
		}
		err = fmt.Errorf("not recorded: %s %s %s; nearest is %s of %s: %s", q.kind, q.to, shown(q.raw, same),
			nearest.To, nearest.Scope, shown(nearest.Request, same))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.missed[q.scope] == nil {
		t.missed[q.scope] = err
	}
	return err
}

// shown returns an excerpt of a request around a place.
func shown(raw []byte, from int) string {
	if from <= maxSame {
		return short.Line(string(raw), maxShown)
	}
	return "…" + short.Line(string(raw[from-maxSame:]), maxShown)
}

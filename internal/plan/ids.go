package plan

import (
	"fmt"
	"strconv"

	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// ids gives every step of a plan a unique id.
type ids struct {
	given map[string]bool // ids in the plan
	used  map[string]bool // ids that must not be made up
}

func newIDs(taken []string) ids {
	n := ids{given: make(map[string]bool), used: make(map[string]bool, len(taken))}
	for _, id := range taken {
		n.used[id] = true
	}
	return n
}

// give records the id of the step at a place of the plan. A repeated id belongs to the first step that has it; the
// later step becomes invalid and loses it.
func (n ids) give(s *Step, place int) {
	if s.ID == "" {
		return
	}
	if n.given[s.ID] {
		s.Invalid = &Error{
			Reason:  reason.DuplicateID,
			Message: fmt.Sprintf("step %d: id %s is used by an earlier step", place, quoteShort(s.ID)),
		}
		s.ID = ""
		return
	}
	n.given[s.ID], n.used[s.ID] = true, true
}

// fill gives a step without an id the id "s" and its place in the plan, or the next free number.
func (n ids) fill(s *Step, place int) {
	for i := place; s.ID == ""; i++ {
		if id := "s" + strconv.Itoa(i); !n.used[id] {
			n.used[id], s.ID = true, id
		}
	}
}

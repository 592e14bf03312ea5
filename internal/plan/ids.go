package plan

import (
	"fmt"
	"strconv"
)

// ids sees to it that every step of a plan has an id of its own.
type ids struct {
	given map[string]bool // ids that steps of this plan bring
	used  map[string]bool // ids that none may be made up like
}

func newIDs(taken []string) ids {
	n := ids{given: make(map[string]bool), used: make(map[string]bool, len(taken))}
	for _, id := range taken {
		n.used[id] = true
	}
	return n
}

// give takes note of the id that the step in this place of the plan brings. A repeated id stays with
// the first step that has it; the later one is invalid and loses it.
func (n ids) give(s *Step, place int) {
	if s.ID == "" {
		return
	}
	if n.given[s.ID] {
		s.Invalid = &Error{
			Reason:  ReasonDuplicateID,
			Message: fmt.Sprintf("step %d: id %s is used by an earlier step", place, quoteShort(s.ID)),
		}
		s.ID = ""
		return
	}
	n.given[s.ID], n.used[s.ID] = true, true
}

// fill names a step that has no id: s and its place in the plan, or the next number that is free.
func (n ids) fill(s *Step, place int) {
	for i := place; s.ID == ""; i++ {
		if id := "s" + strconv.Itoa(i); !n.used[id] {
			n.used[id], s.ID = true, id
		}
	}
}

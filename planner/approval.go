package planner

import (
	"slices"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// approval marks the tools in prompts whose calls need the user's approval. A mark is valid in all rounds of a query,
// so that its prompts share their beginning.
type approval struct {
	needed        func(t plan.Tool, afterResults bool) bool // see Request.NeedsApproval
	always, later bool                                      // a tool has the mark for every round, for those after results
}

// Marks of a tool. In a shortened list they are one character.
const (
	needsApproval, shortApproval           = " [needs approval]", "!"
	needsApprovalLater, shortApprovalLater = " [needs approval after results]", "~"
)

// mark returns the mark of a tool, "" for none.
func (a *approval) mark(t *plan.Tool) string {
	switch {
	case a.needed == nil:
		return ""
	case a.needed(*t, false):
		return needsApproval
	case a.needed(*t, true):
		return needsApprovalLater
	}
	return ""
}

// shown notes that the model sees a tool with a mark.
func (a *approval) shown(mark string) {
	a.always, a.later = a.always || mark == needsApproval, a.later || mark == needsApprovalLater
}

// marks are the data that explain marks.
type marks struct {
	CanAsk, Results        bool // the user can be asked; results have been shown
	Short                  bool // some tools are shortened
	Always, Later, Private bool // marks that occur
}

// marks returns the data for the marks that the model has seen. It returns nil if there are none besides those that are
// explained, which may be nil.
func (c *conversation) marks(explained *marks) *marks {
	if explained == nil {
		explained = &marks{}
	}
	m := marks{
		CanAsk: c.req.CanAsk, Results: len(c.req.Outcomes) > 0, Short: c.shown.others && !c.shown.native,
		Always: c.shown.approval.always, Later: c.shown.approval.later,
		Private: slices.ContainsFunc(c.req.Tools.Servers(), func(s Server) bool { return s.Private }),
	}
	if m.Always == explained.Always && m.Later == explained.Later && m.Private == explained.Private {
		return nil
	}
	return &m
}

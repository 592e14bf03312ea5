package synth

import (
	"time"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/prompts"
)

// maxListed limits the results, failures and unmet parts in a prompt, each. excerptsOf bounds the bytes of the results.
const maxListed = 64

// view is the data of the templates answer_system and answer_user.
type view struct {
	Query   string
	Now     string
	Context string   // data block, may be empty
	Results []string // data blocks
	Failed  []string // data blocks
	Unmet   []string // data blocks
	Hidden  int      // results beyond the bounds
	Note    string   // data block, may be empty
	MayAsk  bool     // for more results
}

// promptOf returns the system prompt, the user message, and what the model reads of each step's result. mask removes
// secrets from results.
func promptOf(
	req Request, now time.Time, mask func(string) string,
) (system, user string, excerpts map[string]*excerpt) {
	v := view{
		Query: req.Query, Context: llm.Conversation(req.Context, prompts.MaxHistory),
		Now: prompts.Time(now), MayAsk: req.MayAsk,
	}
	if req.Note != "" {
		v.Note = llm.Data("the planner", req.Note)
	}
	var worked, failed []plan.Outcome
	calls := 0
	for _, o := range req.Outcomes {
		switch {
		case !o.OK() && len(failed) < maxListed:
			failed = append(failed, o)
		case o.OK() && len(worked) < maxListed:
			worked = append(worked, o)
		case o.OK():
			v.Hidden++
			continue
		default:
			continue
		}
		calls += len(o.Calls())
	}
	w := newWriting(calls, mask)
	excerpts = map[string]*excerpt{}
	for i, e := range excerptsOf(req.Query, worked, w) {
		v.Results = append(v.Results, llm.Data(provenance(worked[i]), w.result(worked[i], e.text)))
		excerpts[worked[i].Step.ID] = e
	}
	for _, o := range failed {
		v.Failed = append(v.Failed, llm.Data(provenance(o)+", failed", w.failure(o)))
	}
	g := gapsOf(req)
	for i, part := range req.Unmet {
		if _, caused := g.step[i]; !caused && len(v.Unmet) < maxListed {
			line := quoted(part.Text) + ", because " + g.because(i)
			v.Unmet = append(v.Unmet, llm.Data(unmetID(i)+" not done", line))
		}
	}
	return prompts.Render("answer_system", v), prompts.Render("answer_user", v), excerpts
}

// provenance describes the source of a result.
func provenance(o plan.Outcome) string {
	from := "step " + o.Step.ID
	if o.Step.Computes() {
		return from + ", computed"
	}
	from += ", tool " + o.Step.Tool
	if o.Step.Server != "" {
		from += ", server " + o.Step.Server
	}
	return from
}

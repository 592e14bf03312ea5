package synth

import (
	"encoding/json"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/prompts"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Bounds of a prompt. excerptsOf bounds the bytes of the results.
const (
	maxListed = 64  // results, failures and unmet parts in the prompt, each
	maxSent   = 200 // bytes of the arguments of a call
)

// view is the data of the templates answer_system and answer_user.
type view struct {
	Query   string
	Context string   // data block, may be empty
	Results []string // data blocks
	Failed  []string // data blocks
	Unmet   []string // data blocks
	Hidden  int      // results beyond the bounds
	Note    string   // data block, may be empty
}

// promptOf returns the system prompt, the user message, and what the model reads of each step's result. mask removes
// secrets from results.
func promptOf(req Request, mask func(string) string) (system, user string, excerpts map[string]*excerpt) {
	v := view{Query: req.Query, Context: llm.Conversation(req.Context, prompts.MaxHistory)}
	if req.Note != "" {
		v.Note = llm.Data("the planner", req.Note)
	}
	var worked []plan.Outcome
	for _, o := range req.Outcomes {
		if o.OK() {
			worked = append(worked, o)
		} else if len(v.Failed) < maxListed {
			v.Failed = append(v.Failed, llm.Data("step "+o.Step.ID+" failed", failureLine(o)))
		}
	}
	if len(worked) > maxListed {
		v.Hidden = len(worked) - maxListed
		worked = worked[:maxListed]
	}
	values := make([]json.RawMessage, len(worked))
	for i, o := range worked {
		values[i] = o.Value
	}
	excerpts = map[string]*excerpt{}
	for i, e := range excerptsOf(req.Query, values, mask) {
		v.Results = append(v.Results, llm.Data(provenance(worked[i]), result(worked[i], e.text, mask)))
		excerpts[worked[i].Step.ID] = e
	}
	g := gapsOf(req)
	for i, part := range req.Unmet {
		if _, caused := g.step[i]; !caused && len(v.Unmet) < maxListed {
			line := texts.Line(part.Text, maxUnmetText) + ": " + g.because(i)
			v.Unmet = append(v.Unmet, llm.Data(unmetID(i)+" not done", line))
		}
	}
	return prompts.Render("answer_system", v), prompts.Render("answer_user", v), excerpts
}

// provenance describes the source of a result.
func provenance(o plan.Outcome) string {
	from := "step " + o.Step.ID + ", tool " + o.Step.Tool
	if o.Step.Server != "" {
		from += ", server " + o.Step.Server
	}
	return from
}

// result returns the arguments of a step and an excerpt of its result, for the model. Images and other non-text blocks
// are only named.
func result(o plan.Outcome, text string, mask func(string) string) string {
	if sent := llm.Excerpt(o.Sent, maxSent, mask); sent != "" && sent != "{}" {
		text = "called with " + sent + "\n" + text
	}
	if names := blockNames(o.Blocks); names != "" {
		text += "\nThe user also gets: " + names
	}
	return text
}

// blockNames lists the kinds of blocks, such as "image image/png".
func blockNames(blocks []json.RawMessage) string {
	var names []string
	for i, raw := range blocks {
		if i == 8 {
			names = append(names, "more")
			break
		}
		var b struct {
			Type     string `json:"type"`
			MimeType string `json:"mimeType"`
			URI      string `json:"uri"`
		}
		if json.Unmarshal(raw, &b) != nil {
			continue
		}
		names = append(names, texts.Line(strings.TrimSpace(b.Type+" "+b.MimeType+" "+b.URI), 120))
	}
	return strings.Join(names, ", ")
}

package synth

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

//go:embed prompts/*.tmpl
var promptFiles embed.FS

var prompts = template.Must(template.ParseFS(promptFiles, "prompts/*.tmpl"))

// Bounds of the parts of a prompt besides the results.
const (
	maxSteps   = 64      // results, failures and unmet parts, each
	maxSent    = 200     // bytes of the arguments of a call
	maxHistory = 8 << 10 // bytes of the conversation so far
)

// view is the data of the templates.
type view struct {
	Query   string
	Context string   // data block, may be empty
	Results []string // data blocks
	Failed  []string // data blocks
	Unmet   []string // data blocks
	Hidden  int      // results beyond the bounds
	Note    string   // data block, may be empty
}

// prompt returns the system prompt and the user message.
func prompt(req Request) (system, user string, err error) {
	v := viewOf(req)
	var out [2]strings.Builder
	for i, name := range []string{"answer_system.tmpl", "answer_user.tmpl"} {
		if err := prompts.ExecuteTemplate(&out[i], name, v); err != nil {
			return "", "", fmt.Errorf("writing the prompt: %w", err)
		}
	}
	return strings.TrimSpace(out[0].String()), strings.TrimSpace(out[1].String()), nil
}

func viewOf(req Request) view {
	v := view{Query: req.Query, Context: llm.Conversation(req.Context, maxHistory)}
	if req.Note != "" {
		v.Note = llm.Data("the planner", req.Note)
	}
	var worked []plan.Outcome
	for _, o := range req.Outcomes {
		if o.OK() {
			worked = append(worked, o)
		} else if len(v.Failed) < maxSteps {
			v.Failed = append(v.Failed, llm.Data("step "+o.Step.ID+" failed", failureLine(o)))
		}
	}
	if len(worked) > maxSteps {
		v.Hidden = len(worked) - maxSteps
		worked = worked[:maxSteps]
	}
	values := make([]json.RawMessage, len(worked))
	for i, o := range worked {
		values[i] = o.Value
	}
	for i, excerpt := range excerpts(req.Query, values) {
		v.Results = append(v.Results, llm.Data(provenance(worked[i]), result(worked[i], excerpt)))
	}
	undone := undoneOf(req)
	for i, part := range req.Unmet {
		if _, caused := undone.step[i]; !caused && len(v.Unmet) < maxSteps {
			line := short.Line(part.Text, maxUnmetText) + ": " + undone.because(i)
			v.Unmet = append(v.Unmet, llm.Data(unmetID(i)+" not done", line))
		}
	}
	return v
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
func result(o plan.Outcome, text string) string {
	if sent := llm.Excerpt(o.Sent, maxSent); sent != "" && sent != "{}" {
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
		names = append(names, short.Line(strings.TrimSpace(b.Type+" "+b.MimeType+" "+b.URI), 120))
	}
	return strings.Join(names, ", ")
}

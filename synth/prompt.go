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

// Bounds of what the model gets to read, in bytes.
const (
	maxResults = 32 << 10 // of all results together
	maxResult  = 8 << 10  // of one
	minResult  = 400      // of one, however many there are
	maxSteps   = 64       // results that are shown
	maxHistory = 8 << 10  // of the conversation so far
)

// shown is what the templates see of a request.
type shown struct {
	Query   string
	Context string   // data block, may be empty
	Results []string // data blocks
	Failed  []string // lines that name failed steps
	Hidden  int      // results beyond the bounds
	Note    string   // data block, may be empty
}

// prompt writes the instructions and the question.
func prompt(req Request) (system, user string, err error) {
	view := show(req)
	var out [2]strings.Builder
	for i, name := range []string{"answer_system.tmpl", "answer_user.tmpl"} {
		if err := prompts.ExecuteTemplate(&out[i], name, view); err != nil {
			return "", "", fmt.Errorf("writing the prompt: %w", err)
		}
	}
	return strings.TrimSpace(out[0].String()), strings.TrimSpace(out[1].String()), nil
}

func show(req Request) shown {
	view := shown{Query: req.Query, Context: llm.Conversation(req.Context, maxHistory)}
	if req.Note != "" {
		view.Note = llm.Data("the planner", req.Note)
	}
	var worked []plan.Outcome
	for _, o := range req.Outcomes {
		if o.OK() {
			worked = append(worked, o)
		} else if len(view.Failed) < maxSteps {
			view.Failed = append(view.Failed, llm.Data("step "+o.Step.ID+" failed", failureLine(o)))
		}
	}
	if len(worked) > maxSteps {
		view.Hidden = len(worked) - maxSteps
		worked = worked[:maxSteps]
	}
	limit := max(min(maxResult, maxResults/max(len(worked), 1)), minResult)
	for _, o := range worked {
		view.Results = append(view.Results, llm.Data(provenance(o), result(o, limit)))
	}
	return view
}

// provenance says where a result comes from.
func provenance(o plan.Outcome) string {
	from := "step " + o.Step.ID + ", tool " + o.Step.Tool
	if o.Step.Server != "" {
		from += ", server " + o.Step.Server
	}
	return from
}

// result is what the model reads of one step: what was asked for, and an excerpt of what came. Images and other
// blocks that are no text are only named.
func result(o plan.Outcome, limit int) string {
	text := llm.Excerpt(o.Value, limit)
	if sent := llm.Excerpt(o.Sent, 200); sent != "" && sent != "{}" {
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

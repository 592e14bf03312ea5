// Package synth turns a question and what the tools brought into an answer.
//
// With a model the answer is the model's, written from capped excerpts of the results that are marked as data, and
// with citations of the steps it rests on. Without one, or when it fails, the answer is a readable digest of the
// results. Either way every failed step is named. Compose never fails and runs no tool; a Synthesizer allows
// concurrent use and keeps nothing between calls.
package synth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

// Options are what a Synthesizer is made of. The zero value writes digests.
type Options struct {
	Model  llm.Model    // nil for none
	Logger *slog.Logger // nil discards
}

// Synthesizer writes answers.
type Synthesizer struct {
	model llm.Model
	log   *slog.Logger
}

// New returns a Synthesizer.
func New(opts Options) *Synthesizer {
	s := &Synthesizer{model: opts.Model, log: opts.Logger}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s
}

// Request is what an answer is written from.
type Request struct {
	Query    string
	Context  []llm.Message  // the conversation so far, untrusted
	Outcomes []plan.Outcome // of all rounds, in the order of the plan
	Note     string         // what the planner wants the user to know, such as why no tool fits
	Model    llm.Model      // used instead of the configured one; nil for that

	// OnText gets the growing answer, whole each time, from the goroutine that called Compose. What it got is void
	// if the model fails. May be nil.
	OnText func(text string)
}

// Citation says that an answer rests on a step.
type Citation struct {
	Step  string `json:"step"`
	Quote string `json:"quote,omitempty"` // verbatim from the step's result
}

// Answer is what the user gets.
type Answer struct {
	Text      string
	Degraded  bool // a model is there but failed, so this is the digest
	Citations []Citation
	Usage     llm.Usage
	Warnings  []string
}

// Compose writes the answer. A context that ends early costs the model's answer, not the digest.
func (s *Synthesizer) Compose(ctx context.Context, req Request) Answer {
	model := s.model
	if req.Model != nil {
		model = req.Model
	}
	if model == nil {
		return Answer{Text: digest(req), Citations: []Citation{}}
	}
	resp, err := ask(ctx, model, req)
	if err != nil {
		if !errors.Is(ctx.Err(), context.Canceled) { // nobody has gone away
			s.log.Error("Synthesis failed: " + err.Error())
		}
		return Answer{
			Text: digest(req), Degraded: true, Citations: []Citation{}, Usage: resp.Usage,
			Warnings: []string{fmt.Sprintf("the answer is a digest of the results, because the model failed: %v", err)},
		}
	}
	text, citations := cite(resp.Text, req.Outcomes)
	return Answer{Text: nameFailures(text, req.Outcomes), Citations: citations, Usage: resp.Usage}
}

// minGrowth is by how many bytes an answer grows before it is shown again; long ones grow by more, so that showing them
// costs little.
const minGrowth = 16

// ask gets the model's answer, without what it thought on the way.
func ask(ctx context.Context, model llm.Model, req Request) (llm.Response, error) {
	system, user, err := prompt(req)
	if err != nil {
		return llm.Response{}, err
	}
	question := llm.Request{System: system, Messages: []llm.Message{{Role: llm.RoleUser, Content: user}}}
	if req.OnText != nil {
		var raw strings.Builder
		next, shown := 0, ""
		question.OnRestart = func() {
			raw.Reset()
			next = 0
		}
		question.OnDelta = func(piece string) {
			raw.WriteString(piece)
			if raw.Len() < next {
				return
			}
			next = raw.Len() + max(minGrowth, raw.Len()/50)
			if text := presentable(raw.String(), req.Outcomes); text != "" && text != shown {
				shown = text
				req.OnText(text)
			}
		}
	}
	resp, err := model.Complete(ctx, question)
	if err != nil {
		return resp, err
	}
	if resp.Text = withoutThoughts(resp.Text); resp.Text == "" {
		return resp, fmt.Errorf("model %s: the answer is empty", resp.Usage.Model)
	}
	return resp, nil
}

// nameFailures adds the failed steps that the text does not name.
func nameFailures(text string, outcomes []plan.Outcome) string {
	succeeded := map[string]bool{}
	for _, o := range outcomes {
		if o.OK() {
			succeeded[o.Step.Tool] = true
		}
	}
	var missing strings.Builder
	for _, o := range outcomes {
		if o.OK() || names(text, o, succeeded[o.Step.Tool]) {
			continue
		}
		fmt.Fprintf(&missing, "\n- %s", failureLine(o))
	}
	if missing.Len() == 0 {
		return text
	}
	return text + "\n\nNot everything worked:" + missing.String()
}

// names reports whether the text speaks of a failed step. Where another step of the same tool worked, the tool's
// name alone does not tell.
func names(text string, o plan.Outcome, ambiguous bool) bool {
	if !strings.Contains(text, toolLabel(o)) {
		return false
	}
	return !ambiguous || strings.Contains(text, "["+o.Step.ID+"]")
}

// failureLine is "tool: reason" on one line.
func failureLine(o plan.Outcome) string {
	return toolLabel(o) + ": " + short.Line(strings.TrimPrefix(o.Err.Message, "Error: "), 300)
}

func toolLabel(o plan.Outcome) string {
	label := o.Step.Tool
	if label == "" {
		label = "step " + o.Step.ID
	}
	return short.Line(label, 120)
}

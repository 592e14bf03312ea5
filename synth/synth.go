// Package synth turns a question and the outcomes of tools into an answer.
//
// [Synthesizer.Compose] lets a model write the answer from results that are marked as data; of long results the model
// sees the passages that match the question. A quote is cited only if the model read it in the result. Without a
// model, or if it fails, the answer is a readable digest of the results. A refusal of the model is an answer. Every
// answer names every failed step and every unmet part of the question: Compose adds those that the model does not mark.
//
// Compose never fails and runs no tool. It uses a few MiB at most, besides the results. A Synthesizer is safe for
// concurrent use and keeps nothing between calls.
package synth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

// Options configure a Synthesizer. The zero value writes digests.
type Options struct {
	Model  llm.Model      // nil for none
	Logger *slog.Logger   // nil discards
	Mask   *redact.Masker // of results in prompts; nil knows no secrets

	Now func() time.Time // the time and zone that the model is told; nil is time.Now
}

// Synthesizer writes answers.
type Synthesizer struct {
	model llm.Model
	log   *slog.Logger
	mask  *redact.Masker
	now   func() time.Time
}

// New returns a Synthesizer.
func New(opts Options) *Synthesizer {
	s := &Synthesizer{
		model: opts.Model, log: cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)), mask: opts.Mask, now: opts.Now,
	}
	if s.now == nil {
		s.now = time.Now
	}
	return s
}

// Request has the input of an answer.
type Request struct {
	Query    string
	Context  []llm.Message  // the conversation so far, untrusted
	Outcomes []plan.Outcome // of all rounds, in the order of the plan
	Unmet    []plan.Unmet   // parts of the question that no successful step serves
	Note     string         // a message of the planner to the user, such as why no tool fits
	Model    llm.Model      // nil = the configured model
	MayAsk   bool           // the model may ask for more results instead of answering

	// OnText gets the whole answer so far, each time it grows, on the goroutine that called Compose. If the model fails,
	// these texts are void. May be nil.
	OnText func(text string)
}

// Answer is the answer to a question.
type Answer struct {
	Text      string
	Lacks     string // what the results lack, if the model asks for more; then there is no text
	Degraded  bool   // a model is there but failed, so this is the digest; the router sets it for other causes, too
	Citations []Citation
	Usage     llm.Usage
	Warnings  []string
}

// Compose writes the answer. If ctx ends early, the answer is the digest.
func (s *Synthesizer) Compose(ctx context.Context, req Request) Answer {
	model := s.model
	if req.Model != nil {
		model = req.Model
	}
	if model == nil {
		return Answer{Text: Digest(req) + modelHint(req.Unmet), Citations: []Citation{}}
	}
	d, excerpts, resp, err := s.ask(ctx, model, req)
	if err != nil {
		if !errors.Is(ctx.Err(), context.Canceled) { // the caller is still waiting
			s.log.ErrorContext(ctx, "Synthesis failed: "+err.Error())
		}
		return Answer{
			Text: Digest(req), Degraded: true, Citations: []Citation{}, Usage: resp.Usage,
			Warnings: []string{fmt.Sprintf("the answer is a digest of the results, because the model failed: %v", err)},
		}
	}
	if d.asks() {
		return Answer{Lacks: d.lacks, Citations: []Citation{}, Usage: resp.Usage}
	}
	return Answer{Text: complete(req, d), Citations: d.citations(excerpts), Usage: resp.Usage}
}

// complete adds to the model's answer the failed steps and unmet parts that it does not name, and the planner's note.
func complete(req Request, d *draft) string {
	parts := []string{d.shown()}
	if len(req.Unmet) > 0 && req.Note != "" && !strings.Contains(parts[0], req.Note) {
		parts = append(parts, req.Note)
	}
	parts = append(parts, gapsOf(req).lines(someFailed, d)...)
	return strings.Join(parts, "\n\n")
}

// minGrowth is the number of bytes by which an answer grows before it is shown again. Long answers grow by more, to
// limit the cost.
const minGrowth = 16

// ask gets the model's answer and shows it as it grows, without reasoning and half marks. It also returns what the
// model reads of the result of each step. A refusal is an answer.
func (s *Synthesizer) ask(
	ctx context.Context, model llm.Model, req Request,
) (*draft, map[string]*excerpt, llm.Response, error) {
	system, user, excerpts := promptOf(req, s.now(), s.mask.Text)
	prompt := llm.Request{System: system, Messages: []llm.Message{{Role: llm.RoleUser, Content: user}}}
	if req.OnText != nil {
		show(&prompt, req)
	}
	resp, err := model.Complete(ctx, prompt)
	var failure *llm.Error
	if errors.As(err, &failure) && failure.Refusal {
		resp.Text, err = failure.Message, nil
	}
	if err != nil {
		return nil, nil, resp, err
	}
	d := newDraft(req)
	d.add(resp.Text, true)
	if d.shown() == "" && d.lacks != "" && !d.mayAsk { // it asks again
		d.text.WriteString("Not found: " + d.lacks)
	}
	if d.shown() == "" && !d.asks() {
		return nil, nil, resp, fmt.Errorf("model %s: the answer is empty", resp.Usage.Model)
	}
	return d, excerpts, resp, nil
}

// show passes the growing answer on.
func show(prompt *llm.Request, req Request) {
	var d *draft
	var next, received int
	var shown string
	prompt.OnRestart = func() { d, next, received = newDraft(req), 0, 0 }
	prompt.OnRestart()
	prompt.OnDelta = func(piece string) {
		d.add(piece, false)
		if received += len(piece); received < next {
			return
		}
		next = received + max(minGrowth, received/50)
		if text := d.shown(); text != "" && text != shown {
			shown = text
			req.OnText(text)
		}
	}
}

package batch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/cases"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/checks"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/tape"
)

// one asks a question and checks the answer. The line is nil if the question never reached the router, so that it may
// be asked again. tokens counts all used tokens. The error ends the run.
func (r *runner) one(c *cases.Case, repeat int) (line *results.Line, tokens int, err error) {
	began := time.Now()
	line = &results.Line{
		Case: c.ID, Repeat: repeat, Checks: []results.Check{}, Fingerprint: r.opts.Fingerprint,
		About: results.About{Query: c.Query, Tags: c.Tags, Definition: c.Definition},
	}
	line.Started = began.UTC().Truncate(time.Millisecond)
	if c.Expect != nil && c.Expect.Judge != "" && r.opts.Judge == nil {
		line.Outcome = results.Skipped
		line.Error = &results.Failure{Reason: reasonNoModel, Message: "there is no model to judge; name one under llm in the configuration"}
		return line, 0, nil
	}
	ctx := tape.In(context.WithoutCancel(r.ctx), fmt.Sprintf("%s #%d", c.ID, repeat)) // the run's end cuts no question
	answer, failed := r.ask(ctx, c)
	took := answer.Took
	if failed != nil {
		took = time.Since(began)
	}
	line.Seconds = took.Round(time.Microsecond).Seconds()
	var lost *Failure
	if errors.As(failed, &lost) && lost.Lost {
		err = lost
		if !lost.Sent {
			return nil, 0, err
		}
	}
	content := &results.Content{}
	if failed == nil {
		var unreadable error
		if content, unreadable = results.Decode(answer.Content); unreadable != nil {
			failed = &Failure{Reason: reasonProtocol, Err: unreadable}
		}
	}
	if failed != nil {
		line.Outcome, line.Error = results.Errored, describe(failed)
		return line, 0, err
	}
	line.Result, line.TraceID, line.Tokens = answer.Content, content.TraceID, content.Tokens()
	line.Cost = r.cost(content)
	tokens = line.Tokens.Total() + r.check(ctx, c, line, content)
	return line, tokens, nil
}

func (r *runner) ask(ctx context.Context, c *cases.Case) (Answer, error) {
	q := Question{Case: *c, Limit: r.opts.Timeout, Stop: r.ctx.Done()}
	if c.Timeout > 0 {
		q.Limit = time.Duration(c.Timeout * float64(time.Second))
	}
	return r.opts.Ask(ctx, q)
}

// check sets the checks and the outcome of a line, and returns the tokens of the judge.
func (r *runner) check(
	ctx context.Context, c *cases.Case, line *results.Line, content *results.Content,
) (tokens int) {
	line.Checks = checks.Run(c.Expect, content, line.Seconds)
	line.Outcome = results.Passed
	for _, check := range line.Checks {
		if !check.Passed {
			line.Outcome = results.Failed
		}
	}
	if c.Expect == nil || c.Expect.Judge == "" {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	matter := checks.Matter{Rubric: c.Expect.Judge, Query: c.Query, Answer: content.Answer}
	verdict, tokens, err := r.opts.Judge.Decide(ctx, matter)
	if err != nil {
		line.Outcome, line.Error = results.Errored, &results.Failure{Reason: "judge", Message: err.Error()}
		return tokens
	}
	line.Checks = append(line.Checks, verdict)
	if !verdict.Passed {
		line.Outcome = results.Failed
	}
	return tokens
}

// cost returns the cost of a line, or nil if a model without a price was used.
func (r *runner) cost(c *results.Content) *float64 {
	if r.opts.Price == nil {
		return nil
	}
	sum := 0.0
	for _, u := range [...]results.Usage{c.Usage.Planner, c.Usage.Synthesizer} {
		if u.Input+u.Output == 0 {
			continue
		}
		cost, ok := r.opts.Price(u.Model, u.Input, u.Output)
		if !ok {
			return nil
		}
		sum += cost
	}
	return &sum
}

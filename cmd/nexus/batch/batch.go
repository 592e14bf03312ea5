// Package batch asks the router the questions in a file and writes the results: nexus batch run. To compare two
// configurations, it asks each question under both, one right after the other.
//
// [Run] asks Options.Concurrency questions in parallel. Each worker writes a result before it asks its next question,
// so that a killed process loses only the questions in progress. All goroutines have ended when Run returns.
package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/cases"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/tape"
)

// Question is a case and the time for its answer.
type Question struct {
	cases.Case
	Limit time.Duration   // sent to the router; 0 = as configured
	Stop  <-chan struct{} // closed when waiting questions must not start
}

const (
	longest = 11 * time.Minute // for an answer without a limit; the router's own limit is at most 10 minutes
	leeway  = 30 * time.Second // that a router may exceed its limit
)

// Bound returns how long to wait for a router that got Limit.
func (q Question) Bound() time.Duration {
	if q.Limit > 0 {
		return q.Limit + leeway
	}
	return longest
}

// Answer is the structured content of process_query, and the time it took.
type Answer struct {
	Content json.RawMessage
	Took    time.Duration
}

// Ask asks the router a question. Each attempt is limited by Bound. The error is a *Failure if its cause is known.
type Ask func(ctx context.Context, q Question) (Answer, error)

// Failure is a question without an answer.
type Failure struct {
	Reason string
	Err    error
	Lost   bool // the router is lost: no further question can be asked
	Sent   bool // the question may have reached the router
}

// Error implements error.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Reasons of failures that the batch itself finds.
const (
	reasonFailed   = "failed"
	reasonTimeout  = "timeout"
	reasonNoModel  = "no_model"
	reasonProtocol = "protocol"
)

// Price returns the cost of tokens of a model, and false if the model has no price.
type Price func(model string, input, output int) (cost float64, ok bool)

// Options of a run.
type Options struct {
	Cases       []cases.Case
	Repeat      int // at least 1
	Concurrency int // at least 1
	MaxTokens   int // no question starts after so many; 0 = no limit
	Timeout     time.Duration
	Sides       []Side      // at least one; of several, each begins as often as the others
	Progress    func(Tally) // of all sides; called by one goroutine at a time; may be nil
}

// Side is a router that is asked all questions, and the file of its results.
type Side struct {
	Fingerprint string
	Before      *Earlier // lines already in the file; nil = none
	Out         *results.Writer
	Ask         Ask
	Judge       *Judge // nil = no model
	Price       Price  // nil = no prices
}

// Tally counts the lines of a results file.
type Tally struct {
	Total int // expected lines
	results.Outcomes
	Tokens int // used in this run, judges included
	Cost   float64
	New    int // lines of this run
}

// sum adds tallies.
func sum(tallies []Tally) (all Tally) {
	for _, t := range tallies {
		all.Total += t.Total
		all.Passed += t.Passed
		all.Failed += t.Failed
		all.Errors += t.Errors
		all.Skipped += t.Skipped
		all.Tokens += t.Tokens
		all.Cost += t.Cost
		all.New += t.New
	}
	return all
}

// Done returns the number of lines.
func (t Tally) Done() int { return t.Passed + t.Failed + t.Errors + t.Skipped }

// Clean reports whether all lines passed.
func (t Tally) Clean() bool { return t.Done() == t.Passed }

// Errors of incomplete runs. The file can be resumed.
var (
	ErrInterrupted = errors.New("interrupted")
	ErrBudget      = errors.New("the tokens of --max-tokens are used up")
)

// runner is one run.
type runner struct {
	opts Options
	ctx  context.Context // ends when no further question must start

	mu      sync.Mutex
	next    int // number of the next case, repeat and side
	tallies []Tally
	err     error // why the run ends early
}

// task is one question of a run.
type task struct {
	side   int
	c      *cases.Case
	repeat int
}

// Run asks the questions of all cases and repeats without a line. When ctx ends, questions in progress finish. It
// returns the tally of each side. The error is ErrInterrupted, ErrBudget, a *Failure that is Lost, or an error of a
// file.
func Run(ctx context.Context, opts Options) ([]Tally, error) {
	r := &runner{opts: opts, ctx: ctx, tallies: make([]Tally, len(opts.Sides))}
	for i, s := range opts.Sides {
		t := &r.tallies[i]
		if s.Before != nil {
			*t = s.Before.Tally
		}
		t.Total = t.Done() + r.missing(s.Before)
	}
	r.progress()
	var workers sync.WaitGroup
	for range opts.Concurrency {
		workers.Go(r.work)
	}
	workers.Wait()
	if all := sum(r.tallies); r.err == nil && all.Done() < all.Total && ctx.Err() != nil {
		r.err = ErrInterrupted
	}
	return r.tallies, r.err
}

// missing counts the cases and repeats without a line.
func (r *runner) missing(before *Earlier) int {
	n := 0
	for _, c := range r.opts.Cases {
		for repeat := 1; repeat <= r.opts.Repeat; repeat++ {
			if !before.Has(c.ID, repeat) {
				n++
			}
		}
	}
	return n
}

// work asks one question after another.
func (r *runner) work() {
	for {
		t, ok := r.take()
		if !ok {
			return
		}
		line, used, err := r.one(t)
		if line != nil {
			if failed := r.opts.Sides[t.side].Out.Write(line); failed != nil {
				line, err = nil, failed
			}
		}
		r.finish(t.side, line, used, err)
	}
}

// take returns the next question without a line. The sides follow each other for each case and repeat, and take turns
// in being first, so that none always finds a provider's caches filled by another.
func (r *runner) take() (t task, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sides, n := len(r.opts.Sides), len(r.opts.Cases)
	for r.next < sides*n*r.opts.Repeat {
		if r.err != nil || r.ctx.Err() != nil {
			return task{}, false
		}
		i, earlier := r.next/sides%n, r.next/sides/n
		t = task{(r.next + i + earlier) % sides, &r.opts.Cases[i], earlier + 1}
		r.next++
		if r.opts.Sides[t.side].Before.Has(t.c.ID, t.repeat) {
			continue
		}
		if r.opts.MaxTokens > 0 && sum(r.tallies).Tokens >= r.opts.MaxTokens {
			r.err = ErrBudget
			return task{}, false
		}
		return t, true
	}
	return task{}, false
}

func (r *runner) finish(side int, line *results.Line, tokens int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &r.tallies[side]
	if line != nil {
		t.Count(line.Outcome)
		t.New++
		if line.Cost != nil {
			t.Cost += *line.Cost
		}
	}
	t.Tokens += tokens
	if r.err == nil {
		r.err = err
	}
	r.progress()
}

func (r *runner) progress() {
	if r.opts.Progress != nil {
		r.opts.Progress(sum(r.tallies))
	}
}

// describe returns an error in the form of a line.
func describe(err error) *results.Failure {
	reason := reasonFailed
	var failure *Failure
	switch {
	case errors.As(err, &failure) && failure.Reason != "":
		reason = failure.Reason
	case errors.Is(err, context.DeadlineExceeded):
		reason = reasonTimeout
	}
	return &results.Failure{Reason: reason, Message: fmt.Sprint(err)}
}

// Earlier has the lines of a results file from earlier runs.
type Earlier struct {
	Tally Tally
	lines map[results.Key]struct{}
}

// Has reports whether a case and repeat has a line. A nil Earlier has none.
func (e *Earlier) Has(id string, repeat int) bool {
	if e == nil {
		return false
	}
	_, has := e.lines[results.Key{Case: id, Repeat: repeat}]
	return has
}

// brief is the part of a line that resuming needs.
type brief struct {
	Case        string   `json:"case"`
	Repeat      int      `json:"repeat"`
	Outcome     string   `json:"outcome"`
	Definition  string   `json:"definition"`
	Fingerprint string   `json:"fingerprint"`
	Cost        *float64 `json:"cost"`
}

// ReadEarlier reads a results file to resume. It refuses a file with other cases or another fingerprint, because its
// lines are not comparable with new ones. all has all cases of the file of cases.
func ReadEarlier(path string, all []cases.Case, fingerprint string) (*Earlier, error) {
	e := &Earlier{lines: map[results.Key]struct{}{}}
	known := map[string]string{}
	for _, c := range all {
		known[c.ID] = c.Definition
	}
	number := 0
	_, err := results.Read(path, func(l *brief, _ results.Place) error {
		number++
		wrong := ""
		definition, is := known[l.Case]
		key := results.Key{Case: l.Case, Repeat: l.Repeat}
		_, again := e.lines[key]
		switch {
		case l.Case == "" || l.Repeat < 1 || l.Outcome == "":
			wrong = "not a result: it needs case, repeat and outcome"
		case again:
			wrong = fmt.Sprintf("case %s, repeat %d has a line already; remove one", l.Case, l.Repeat)
		case !is:
			wrong = fmt.Sprintf("case %s is not among the cases any more; write to another --out, or restore the case", l.Case)
		case l.Definition != definition:
			wrong = fmt.Sprintf("case %s has changed since; write to another --out, or restore the case", l.Case)
		case l.Fingerprint != fingerprint:
			wrong = "was written with another configuration, catalog or version; write to another --out, or restore what was used"
		}
		if wrong != "" {
			return &results.Error{Path: path, Line: number, Text: wrong}
		}
		e.lines[key] = struct{}{}
		e.Tally.Count(l.Outcome)
		if l.Cost != nil {
			e.Tally.Cost += *l.Cost
		}
		return nil
	})
	return e, err
}

// one asks a question and checks the answer. The line is nil if the question never reached the router, so that it may
// be asked again. tokens counts all used tokens. The error ends the run.
func (r *runner) one(t task) (line *results.Line, tokens int, err error) {
	side, c := &r.opts.Sides[t.side], t.c
	began := time.Now()
	line = &results.Line{
		Case: c.ID, Repeat: t.repeat, Checks: []results.Check{}, Fingerprint: side.Fingerprint,
		About: results.About{Query: c.Query, Tags: c.Tags, Definition: c.Definition},
	}
	line.Started = began.UTC().Truncate(time.Millisecond)
	if c.Expect != nil && c.Expect.Judge != "" && side.Judge == nil {
		line.Outcome = results.Skipped
		line.Error = &results.Failure{Reason: reasonNoModel, Message: "there is no model to judge; name one under llm in the configuration"}
		return line, 0, nil
	}
	ctx := tape.In(context.WithoutCancel(r.ctx), fmt.Sprintf("%s #%d", c.ID, t.repeat)) // the run's end cuts no question
	answer, failed := r.ask(ctx, side, c)
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
	line.Cost = side.cost(content)
	tokens = line.Tokens.Total() + side.check(ctx, c, line, content)
	return line, tokens, nil
}

func (r *runner) ask(ctx context.Context, side *Side, c *cases.Case) (Answer, error) {
	q := Question{Case: *c, Limit: r.opts.Timeout, Stop: r.ctx.Done()}
	if c.Timeout > 0 {
		q.Limit = time.Duration(c.Timeout * float64(time.Second))
	}
	return side.Ask(ctx, q)
}

// check sets the checks and the outcome of a line, and returns the tokens of the judge.
func (s *Side) check(
	ctx context.Context, c *cases.Case, line *results.Line, content *results.Content,
) (tokens int) {
	line.Checks = Check(c.Expect, content, line.Seconds)
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
	matter := Matter{Rubric: c.Expect.Judge, Query: c.Query, Answer: content.Answer}
	verdict, tokens, err := s.Judge.Decide(ctx, matter)
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
func (s *Side) cost(c *results.Content) *float64 {
	if s.Price == nil {
		return nil
	}
	sum := 0.0
	for _, u := range [...]results.Usage{c.Usage.Planner, c.Usage.Synthesizer} {
		if u.Input+u.Output == 0 {
			continue
		}
		cost, ok := s.Price(u.Model, u.Input, u.Output)
		if !ok {
			return nil
		}
		sum += cost
	}
	return &sum
}

// Package batch asks the router the questions of a file and writes what comes of each: nexus batch run.
//
// Run keeps Options.Concurrency questions under way and nothing but their results in memory. A result is written
// before the next question of its worker begins, so that a process that is killed loses the questions under way at
// most. All goroutines have ended when Run returns.
package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/cases"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/checks"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
)

// Question is a case and the time for its answer.
type Question struct {
	cases.Case
	Limit time.Duration   // that the router is told; 0 = as configured
	Stop  <-chan struct{} // closed when a question that waits for its turn shall not begin any more
}

const (
	longest = 11 * time.Minute // for an answer, where no limit is given; the router's own is 10 minutes at most
	leeway  = 30 * time.Second // that a router may answer after its limit
)

// Bound is when a router that was told Limit is given up.
func (q Question) Bound() time.Duration {
	if q.Limit > 0 {
		return q.Limit + leeway
	}
	return longest
}

// Answer is what the router answers: the structured content of process_query, and how long that took.
type Answer struct {
	Content json.RawMessage
	Took    time.Duration
}

// Ask has the router answer a question, each attempt within Bound. Its error is a *Failure where more is known than a
// text.
type Ask func(ctx context.Context, q Question) (Answer, error)

// Failure is a question without an answer.
type Failure struct {
	Reason string
	Err    error
	Lost   bool // nothing more can be asked
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

// Price returns what tokens of a model cost; false where its price is not known.
type Price func(model string, input, output int) (cost float64, ok bool)

// Options of a run.
type Options struct {
	Cases       []cases.Case
	Repeat      int // at least 1
	Concurrency int // at least 1
	MaxTokens   int // begin no question after so many; 0 = no limit
	Timeout     time.Duration
	Fingerprint string
	Before      *Earlier // what the file has; nil = nothing
	Out         *results.Writer
	Ask         Ask
	Judge       *checks.Judge // nil = there is no model to judge
	Price       Price         // nil = no prices
	Progress    func(Tally)   // called by one goroutine at a time; nil = no one looks
}

// Tally counts the lines of a file of results.
type Tally struct {
	Total int // that there shall be
	results.Outcomes
	Tokens int // with those of judges, in this run
	Cost   float64
	New    int // lines of this run
}

// Done is how many lines there are.
func (t Tally) Done() int { return t.Passed + t.Failed + t.Errors + t.Skipped }

// Clean reports whether all lines have passed.
func (t Tally) Clean() bool { return t.Done() == t.Passed }

// Why a run ends before all is done. Each leaves a file that can be resumed.
var (
	ErrInterrupted = errors.New("interrupted")
	ErrBudget      = errors.New("the tokens of --max-tokens are used up")
)

// runner is one run.
type runner struct {
	opts Options
	ctx  context.Context // ends when no question shall begin any more

	mu    sync.Mutex
	next  int // number of the next case and repeat
	tally Tally
	err   error // why no more begin
}

// Run asks what has no line yet. When ctx ends, the questions under way are finished. The error is ErrInterrupted,
// ErrBudget, a *Failure that is Lost, or that of the file.
func Run(ctx context.Context, opts Options) (Tally, error) {
	r := &runner{opts: opts, ctx: ctx}
	if opts.Before != nil {
		r.tally = opts.Before.Tally
	}
	r.tally.Total = r.tally.Done() + r.missing()
	r.progress()
	var workers sync.WaitGroup
	for range opts.Concurrency {
		workers.Go(r.work)
	}
	workers.Wait()
	if r.err == nil && r.tally.Done() < r.tally.Total && ctx.Err() != nil {
		r.err = ErrInterrupted
	}
	return r.tally, r.err
}

// missing counts what has no line yet.
func (r *runner) missing() int {
	n := 0
	for _, c := range r.opts.Cases {
		for repeat := 1; repeat <= r.opts.Repeat; repeat++ {
			if !r.opts.Before.Has(c.ID, repeat) {
				n++
			}
		}
	}
	return n
}

// work asks one question after the other.
func (r *runner) work() {
	for {
		c, repeat, ok := r.take()
		if !ok {
			return
		}
		line, used, err := r.one(c, repeat)
		if line != nil {
			if failed := r.opts.Out.Write(line); failed != nil {
				line, err = nil, failed
			}
		}
		r.finish(line, used, err)
	}
}

// take returns the next case and repeat without a line.
func (r *runner) take() (c *cases.Case, repeat int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := len(r.opts.Cases); r.next < n*r.opts.Repeat; {
		if r.err != nil || r.ctx.Err() != nil {
			return nil, 0, false
		}
		if r.opts.MaxTokens > 0 && r.tally.Tokens >= r.opts.MaxTokens {
			r.err = ErrBudget
			return nil, 0, false
		}
		c, repeat = &r.opts.Cases[r.next%n], r.next/n+1
		r.next++
		if !r.opts.Before.Has(c.ID, repeat) {
			return c, repeat, true
		}
	}
	return nil, 0, false
}

func (r *runner) finish(line *results.Line, tokens int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if line != nil {
		r.tally.Count(line.Outcome)
		r.tally.New++
		if line.Cost != nil {
			r.tally.Cost += *line.Cost
		}
	}
	r.tally.Tokens += tokens
	if r.err == nil {
		r.err = err
	}
	r.progress()
}

func (r *runner) progress() {
	if r.opts.Progress != nil {
		r.opts.Progress(r.tally)
	}
}

// describe is the error of a question for its line.
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

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/cases"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
)

type batchCmd struct {
	Init    batchInitCmd    `cmd:"" help:"Write cases to start from, one for each tool."`
	Run     batchRunCmd     `cmd:"" help:"Ask the questions in a file and write the results."`
	Report  batchReportCmd  `cmd:"" help:"Report on results."`
	Compare batchCompareCmd `cmd:"" help:"Compare the results of two runs."`
}

type batchRunCmd struct {
	source
	remote
	against
	taped
	Cases       string        `arg:"" help:"The cases: JSON Lines, a JSON array, CSV or YAML; - is standard input."`
	Out         string        `required:"" help:"File to append the results to, one per line." placeholder:"RESULTS"`
	Concurrency int           `help:"Number of questions asked in parallel." default:"4"`
	Repeat      int           `help:"Number of times to ask each question." default:"1"`
	Filter      string        `help:"Run only cases that satisfy this expression over id, query, tags, servers, plan and expect." placeholder:"EXPR"`
	Limit       int           `help:"Run only the first N cases." placeholder:"N"`
	Resume      bool          `help:"Continue a results file: run only cases without a line in it."`
	MaxTokens   int           `help:"Start no more questions after N tokens." placeholder:"N"`
	Timeout     time.Duration `help:"Time limit of an answer, unless the case sets one." placeholder:"D"`
	Judges      int           `help:"Number of judgments per rubric; the majority decides." enum:"1,3" default:"1"`
	Yes         bool          `help:"Allow every call that needs consent."`
}

// against names a second side.
type against struct {
	Against    []string `help:"Ask each question under this configuration, too, right before or after the first; may be repeated." placeholder:"PATH" sep:"none"`
	AgainstOut string   `help:"File to append the results of --against to." placeholder:"RESULTS"`
}

// taped has the flags of recordings.
type taped struct {
	Record string `help:"Record every exchange with models and servers in this folder." placeholder:"DIR"`
	Replay string `help:"Replay a folder written by --record, without models, servers or network." placeholder:"DIR"`
}

func (c *batchRunCmd) Run(w *world) error {
	if err := c.check(); err != nil {
		return err
	}
	all, err := cases.Load(c.Cases, w.stdin)
	if err != nil {
		return err
	}
	chosen, err := c.choose(w.ctx, all)
	if err != nil {
		return err
	}
	sides := c.sides()
	for _, s := range sides {
		if info, err := os.Stat(s.Out); err == nil && info.Size() > 0 && !c.Resume {
			return s.taken(results.ErrExists)
		}
	}
	opts := batch.Options{
		Cases: chosen, Repeat: c.Repeat, Concurrency: c.Concurrency, MaxTokens: c.MaxTokens, Timeout: c.Timeout,
	}
	var started []func() error
	closed := sync.OnceValue(func() (err error) {
		for _, f := range started {
			err = errors.Join(err, f())
		}
		return err
	})
	defer func() { _ = closed() }() // if the batch does not start
	for _, s := range sides {
		side, done, err := s.start(w, all, chosen)
		if err != nil {
			return err
		}
		opts.Sides, started = append(opts.Sides, side), append(started, done)
	}
	tallies, err := c.run(w, opts)
	return c.end(w, sides, tallies, errors.Join(err, closed()))
}

// sides returns the command of each side: this one, or one for --config and one for --against, whose recordings are in
// folders of their own.
func (c *batchRunCmd) sides() []*batchRunCmd {
	if len(c.Against) == 0 {
		return []*batchRunCmd{c}
	}
	a, b := *c, *c
	b.Config, b.Out = c.Against, c.AgainstOut
	for _, folder := range [...]struct{ a, b *string }{{&a.Record, &b.Record}, {&a.Replay, &b.Replay}} {
		if *folder.a != "" {
			*folder.a, *folder.b = filepath.Join(*folder.a, "a"), filepath.Join(*folder.b, "b")
		}
	}
	return []*batchRunCmd{&a, &b}
}

// start opens the router and the file of results. done closes both.
func (c *batchRunCmd) start(w *world, all, chosen []cases.Case) (side batch.Side, done func() error, err error) {
	asked, err := c.router(w, chosen)
	if err != nil {
		return side, nil, err
	}
	out, err := c.open()
	if err != nil {
		return side, nil, errors.Join(err, asked.close())
	}
	out.Clean = asked.mask.JSON
	side = batch.Side{Fingerprint: asked.fingerprint, Out: out, Ask: asked.ask, Judge: asked.judge, Price: asked.price}
	done = func() error { return errors.Join(out.Close(), asked.close()) }
	if c.Resume { // the lock is held: no other process writes the file
		if side.Before, err = batch.ReadEarlier(c.Out, all, asked.fingerprint); err != nil {
			return side, nil, errors.Join(err, done())
		}
	}
	return side, done, nil
}

// check refuses invalid combinations of flags.
func (c *batchRunCmd) check() error {
	for _, flag := range []struct {
		name         string
		value, least int
	}{{"concurrency", c.Concurrency, 1}, {"repeat", c.Repeat, 1}, {"limit", c.Limit, 0}, {"max-tokens", c.MaxTokens, 0}} {
		if flag.value < flag.least {
			return &exitError{exitUsage, fmt.Sprintf("--%s must be at least %d", flag.name, flag.least)}
		}
	}
	switch {
	case c.Timeout < 0:
		return &exitError{exitUsage, "--timeout must not be below 0"}
	case c.Record != "" && c.Replay != "":
		return &exitError{exitUsage, "use either --record or --replay, not both"}
	case c.Remote != "" && c.Record+c.Replay != "":
		return &exitError{exitUsage, "--record and --replay cannot be used with --remote"}
	case (len(c.Against) > 0) != (c.AgainstOut != ""):
		return &exitError{exitUsage, "--against and --against-out need each other"}
	case c.AgainstOut != "" && filepath.Clean(c.AgainstOut) == filepath.Clean(c.Out):
		return &exitError{exitUsage, "--out and --against-out must be two files"}
	case c.Remote != "" && c.AgainstOut != "":
		return &exitError{exitUsage, "--against cannot be used with --remote"}
	case c.Remote != "" && c.Demo:
		return &exitError{exitUsage, "use either --remote or --demo, not both"}
	}
	return nil
}

// choose returns the cases to run.
func (c *batchRunCmd) choose(ctx context.Context, all []cases.Case) (chosen []cases.Case, err error) {
	chosen = all
	if c.Filter != "" {
		if chosen, err = cases.Filter(ctx, all, c.Filter); err != nil {
			return nil, &exitError{exitUsage, err.Error()}
		}
	}
	if c.Limit > 0 && c.Limit < len(chosen) {
		chosen = chosen[:c.Limit]
	}
	if len(chosen) == 0 {
		return nil, &exitError{exitUsage, "no case matches --filter"}
	}
	return chosen, nil
}

// open opens the file of results.
func (c *batchRunCmd) open() (*results.Writer, error) {
	var out *results.Writer
	var err error
	if c.Resume {
		out, err = results.Resume(c.Out)
	} else {
		out, err = results.Create(c.Out)
	}
	switch {
	case errors.Is(err, results.ErrExists):
		return nil, c.taken(err)
	case err != nil:
		return nil, &exitError{exitUsage, err.Error()}
	}
	return out, nil
}

// taken is the error for a file that already has results.
func (c *batchRunCmd) taken(err error) error {
	return &exitError{exitUsage, fmt.Sprintf("%s %v; continue it with --resume, or name another file", c.Out, err)}
}

// run runs the batch and shows progress. After the first signal, questions in progress finish; the second signal ends
// the program.
func (c *batchRunCmd) run(w *world, opts batch.Options) ([]batch.Tally, error) {
	bar := newBar(w)
	defer bar.close()
	forget := context.AfterFunc(w.ctx, func() {
		signal.Reset(os.Interrupt, syscall.SIGTERM)
		bar.hide(true)
		fmt.Fprintln(w.stderr, "nexus: finishing the questions in progress; interrupt again to discard them")
		bar.hide(false)
	})
	defer forget()
	opts.Progress = tallies(w, bar)
	return batch.Run(w.ctx, opts)
}

// tallies shows every tally on a terminal's bar; elsewhere it prints a line after each twentieth of the work.
func tallies(w *world, b *bar) func(batch.Tally) {
	began := time.Now()
	shown := -1
	return func(t batch.Tally) {
		now := 20 * t.Done() / max(t.Total, 1)
		if !w.terminal && now <= shown {
			return
		}
		shown = now
		text := fmt.Sprintf("%d/%d, %d passed, %d failed", t.Done(), t.Total, t.Passed, t.Failed+t.Errors)
		if took := time.Since(began); t.New > 0 && took > 0 {
			rate := float64(t.New) / took.Seconds()
			left := time.Duration(float64(t.Total-t.Done())/rate) * time.Second
			text += fmt.Sprintf(", %.1f/s, %v left", rate, left)
		}
		if t.Cost > 0 {
			text += fmt.Sprintf(", cost %.2f", t.Cost)
		}
		b.show(float64(t.Done())/float64(max(t.Total, 1)), text)
	}
}

// end prints the tally of each side and, for an incomplete run, the command that resumes it.
func (c *batchRunCmd) end(w *world, sides []*batchRunCmd, tallies []batch.Tally, err error) error {
	clean, see, text := true, "report", ""
	var outs string
	for i, t := range tallies {
		clean = clean && t.Clean()
		if len(sides) > 1 {
			see = "compare"
			text += sides[i].Out + ": "
		}
		text += fmt.Sprintf("%d of %d done: %d passed, %d failed, %d errors", t.Done(), t.Total, t.Passed, t.Failed, t.Errors)
		if t.Skipped > 0 {
			text += fmt.Sprintf(", %d skipped", t.Skipped)
		}
		text += "; "
		outs += " " + quoteArg(sides[i].Out)
	}
	if _, failed := fmt.Fprintln(w.stdout, text+"see nexus batch "+see+outs); failed != nil && err == nil {
		err = failed
	}
	code := exitFailed
	switch {
	case err == nil && clean:
		return nil
	case err == nil:
		return &exitError{code: exitPartly}
	case errors.Is(err, batch.ErrInterrupted), errors.Is(err, batch.ErrBudget):
		code = exitPartly
	}
	return &exitError{code, firstLine(strings.ReplaceAll(err.Error(), "\n", "; "), 500) + "; resume with: " + c.command(w)}
}

// command returns the command line that resumes the run.
func (c *batchRunCmd) command(w *world) string {
	args := []string{"nexus"}
	for _, arg := range w.args {
		args = append(args, quoteArg(arg))
	}
	if !c.Resume {
		args = append(args, "--resume")
	}
	return strings.Join(args, " ")
}

// quoteArg quotes an argument for a shell.
func quoteArg(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@%+", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

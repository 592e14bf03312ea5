// Command eval measures tool search, planning and execution on files of questions, in the formats of
// docs/evaluation.md:
//
//	go run ./tests/eval retrieval|planning|dag --help
//
// Each evaluation reads JSON Lines, writes one prediction per line for an independent scorer, reports progress on
// standard error and prints a summary.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"github.com/agenticnexus/agenticnexus/config"
)

// cli defines the commands.
type cli struct {
	Retrieval retrieval `cmd:"" help:"Measure whether questions find their tools."`
	Planning  planning  `cmd:"" help:"Measure whether questions become the right calls."`
	DAG       dag       `cmd:"" name:"dag" help:"Measure whether plans run as fast as their dependencies allow."`
}

// figures are the flags that all evaluations have.
type figures struct {
	Out    string   `help:"File to write the predictions to, one per line." placeholder:"FILE"`
	JSON   bool     `name:"json" help:"Print the figures as JSON."`
	Config []string `help:"Configuration file or folder that names the model; may be repeated (default: config/ if it exists)." placeholder:"PATH" sep:"none"`
}

// env is the environment of an evaluation.
type env struct {
	ctx            context.Context
	stdout, stderr io.Writer
	shown          int // twentieths of the work
}

// usageError is a mistake of the user; the exit code is 2.
type usageError struct{ error }

// errPartly is for tasks that could not be planned; the exit code is 3.
var errPartly = errors.New("tasks could not be planned")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run parses and runs the command line, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	exited := false
	parser, err := kong.New(&cli{}, kong.Name("eval"), kong.Writers(stdout, stderr), kong.UsageOnError(),
		kong.Exit(func(int) { exited = true }), kong.Bind(&env{ctx, stdout, stderr, -1}))
	if err != nil {
		panic(err) // the definition of the command line is wrong
	}
	parsed, err := parser.Parse(args)
	switch {
	case exited:
		return 0 // --help
	case err != nil:
		err = usageError{err}
	default:
		err = parsed.Run()
	}
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "eval: "+err.Error())
	var usage usageError
	var wrong *config.Error
	switch {
	case errors.As(err, &usage), errors.As(err, &wrong):
		return 2
	case errors.Is(err, errPartly):
		return 3
	}
	return 1
}

// report shows progress, one line per twentieth of the work.
func (e *env) report(done, total int) {
	if now := 20 * done / max(total, 1); now > e.shown {
		e.shown = now
		fmt.Fprintf(e.stderr, "%3.0f%% %d of %d\n", 100*float64(done)/float64(max(total, 1)), done, total)
	}
}

// print prints a summary: as JSON, or as lines of name and figure.
func (e *env) print(summary any, asJSON bool) error {
	raw, err := json.MarshalIndent(summary, "", "  ")
	if err != nil {
		return err
	}
	if asJSON {
		_, err = fmt.Fprintf(e.stdout, "%s\n", raw)
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	_, _ = d.Token() // the brace; the text was just written
	for d.More() {
		var value float64
		name, _ := d.Token()
		if err := d.Decode(&value); err != nil {
			return err
		}
		text := fmt.Sprintf("%.3f", value)
		if value == float64(int64(value)) {
			text = fmt.Sprint(int64(value))
		}
		fmt.Fprintf(e.stdout, "%-20v %s\n", name, text)
	}
	return nil
}

// maxLine bounds one line of a file.
const maxLine = 64 << 20

// readLines decodes a JSON Lines file.
func readLines[T any](path string) ([]T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, usageError{err}
	}
	defer f.Close()
	var out []T
	s := bufio.NewScanner(f)
	s.Buffer(nil, maxLine)
	for line := 1; s.Scan(); line++ {
		if len(s.Bytes()) == 0 {
			continue
		}
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			return nil, fmt.Errorf("reading %s line %d: %w", path, line, err)
		}
		out = append(out, v)
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return out, nil
}

// predictions is a file with one prediction a line.
type predictions struct {
	*json.Encoder
	io.Closer
}

// create creates a file of predictions; an empty path discards them.
func create(path string) (predictions, error) {
	f, err := os.Create(cmp.Or(path, os.DevNull))
	if err != nil {
		return predictions{}, fmt.Errorf("creating %s: %w", path, err)
	}
	enc := json.NewEncoder(f)
	enc.SetEscapeHTML(false)
	return predictions{enc, f}, nil
}

// beside resolves a path in a line of another file, relative to that file's folder or to a folder above it.
func beside(file, name string) string {
	dir := filepath.Dir(file)
	for range 3 {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
		dir = filepath.Join(dir, "..")
	}
	return name
}

// percentile returns the p-quantile (0 to 1) of durations in milliseconds; 0 if there are none.
func percentile(times []time.Duration, p float64) float64 {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return milliseconds(sorted[min(int(p*float64(len(sorted))), len(sorted)-1)])
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

package cases

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan/expression"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// maxFile bounds a file of cases, in bytes.
const maxFile = 256 << 20

// maxShown bounds what a message repeats of a file, in bytes.
const maxShown = 60

// item is an undecoded case of a file.
type item struct {
	line   int
	object []byte // JSON
}

// Load reads the cases of a file; "-" is standard input. The error is an *Error for mistakes in the file.
func Load(path string, stdin io.Reader) ([]Case, error) {
	text, err := read(path, stdin)
	if err != nil {
		return nil, &Error{Problems: []Problem{{File: path, Text: reason(err)}}}
	}
	c := &collector{file: path, lines: map[string]int{}}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	formatOf(path, text)(text, c)
	if len(c.cases) == 0 && len(c.problems) == 0 {
		c.problem(0, "has no cases")
	}
	if len(c.problems) > 0 {
		return nil, &Error{Problems: c.problems, More: c.more}
	}
	return c.cases, nil
}

func read(path string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("is larger than %d MiB; split it", maxFile>>20)
	}
	return text, err
}

// reason returns why a file cannot be read, without its name.
func reason(err error) string {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return "cannot be read: " + failed.Err.Error()
	}
	return err.Error()
}

// formatOf returns the reader for a file by its name, or else by its first character.
func formatOf(path string, text []byte) func([]byte, *collector) {
	text = bytes.TrimSpace(text)
	switch strings.ToLower(filepath.Ext(path)) {
	case ".csv":
		return readCSV
	case ".yaml", ".yml":
		return readYAML
	case ".jsonl", ".ndjson":
		return readLines
	}
	switch {
	case bytes.HasPrefix(text, []byte("{")):
		return readLines
	case bytes.HasPrefix(text, []byte("[")), bytes.HasPrefix(text, []byte("- ")), bytes.HasPrefix(text, []byte("#")),
		bytes.HasPrefix(text, []byte("---")):
		return readYAML
	}
	return readCSV
}

// collector gathers cases and mistakes.
type collector struct {
	file     string
	cases    []Case
	lines    map[string]int // of ids
	problems []Problem
	more     int
}

func (c *collector) problem(line int, format string, args ...any) {
	if len(c.problems) == maxProblems {
		c.more++
		return
	}
	text := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	c.problems = append(c.problems, Problem{File: c.file, Line: line, Text: text})
}

// take decodes an item.
func (c *collector) take(i item) {
	d := &decoder{problem: func(format string, args ...any) { c.problem(i.line, format, args...) }}
	one := d.decode(i.object)
	one.Line = i.line
	if one.ID == "" {
		return
	}
	if before, again := c.lines[one.ID]; again {
		c.problem(i.line, "id %q is already used by the case in line %d", shown(one.ID), before)
		return
	}
	c.lines[one.ID] = i.line
	c.cases = append(c.cases, one)
}

// shown cuts text of a file for a message.
func shown(s string) string { return texts.Line(s, maxShown) }

// filterable lists the names in an expression of --filter. plan and expect are true if the case has one.
var filterable = []string{"id", "query", "tags", "servers", "plan", "expect"}

// Filter returns the cases for which an expression is true. The bounds are those of expressions in plans.
func Filter(ctx context.Context, all []Case, text string) ([]Case, error) {
	e, err := expression.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("--filter %s: %w", text, err)
	}
	for _, name := range e.Names() {
		if !slices.Contains(filterable, name) {
			return nil, fmt.Errorf("--filter %s: a case has no %s; it has %s", text, name, strings.Join(filterable, ", "))
		}
	}
	var kept []Case
	for _, c := range all {
		value, err := e.Eval(ctx, map[string]any{
			"id": c.ID, "query": c.Query, "tags": list(c.Tags), "servers": list(c.Servers),
			"plan": c.Plan != nil, "expect": c.Expect != nil,
		})
		if err != nil {
			return nil, fmt.Errorf("--filter %s: case %s: %w", text, shown(c.ID), err)
		}
		holds, ok := value.(bool)
		if !ok {
			return nil, fmt.Errorf("--filter %s: case %s: got %v, want true or false", text, shown(c.ID), shown(fmt.Sprint(value)))
		}
		if holds {
			kept = append(kept, c)
		}
	}
	return kept, nil
}

func list(texts []string) []any {
	values := make([]any, len(texts))
	for i, text := range texts {
		values[i] = text
	}
	return values
}

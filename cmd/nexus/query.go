package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/router/limit"
)

type queryCmd struct {
	source
	remote
	JSON   bool     `name:"json" help:"Print the structured content."`
	DryRun bool     `help:"Plan only; no tool is called."`
	Plan   string   `help:"Run the plan in this file instead of planning." placeholder:"FILE" type:"existingfile"`
	Text   []string `arg:"" help:"The question."`
}

func (c *queryCmd) Run(w *world) error {
	q := router.Query{Text: strings.Join(c.Text, " "), DryRun: c.DryRun}
	if strings.TrimSpace(q.Text) == "" {
		return &exitError{exitUsage, "Query is empty; write a question"}
	}
	if c.Plan != "" {
		plan, err := os.ReadFile(c.Plan)
		if err != nil {
			return &exitError{exitUsage, err.Error()}
		}
		if !json.Valid(plan) {
			return &exitError{exitUsage, c.Plan + " is no JSON; give the plan of an earlier result"}
		}
		if inside := jsonrpc.Get(plan, "plan"); len(inside) > 0 && inside[0] == '{' {
			plan = inside // the whole result of an earlier query
		}
		q.Plan = plan
	}
	bar := newBar(w)
	if c.Remote != "" {
		return c.ask(w, q, bar)
	}
	a, done, err := c.open(w)
	if err != nil {
		return err
	}
	defer done()
	q.Report = router.NewReporter(bar.show)
	record, err := a.Router().Query(w.ctx, q)
	q.Report.Close()
	bar.close()
	var refusal *router.Refusal
	if errors.As(err, &refusal) {
		return &exitError{exitUsage, refusal.Text}
	}
	if err != nil {
		return err
	}
	for _, warning := range record.Warnings {
		fmt.Fprintln(w.stderr, "nexus: "+firstLine(warning, 300))
	}
	var content bytes.Buffer
	enc := json.NewEncoder(&content)
	enc.SetEscapeHTML(false) // the bytes of arguments stay as they are, for plans that are replayed
	if err := enc.Encode(record.Content(c.JSON)); err != nil {
		return fmt.Errorf("encoding the result: %w", err)
	}
	return c.print(w, record.Answer.Text, content.Bytes())
}

// print prints an answer or, with --json, its structured content. An answer that is less than it should be is an error
// without a text.
func (c *queryCmd) print(w *world, answer string, content json.RawMessage) error {
	text := answer
	if c.JSON {
		text = string(indent(content))
	}
	if _, err := fmt.Fprintln(w.stdout, text); err != nil {
		return err
	}
	if string(jsonrpc.Get(content, "degraded")) == "true" {
		return &exitError{code: exitPartly}
	}
	return nil
}

// ask has a router elsewhere answer.
func (c *queryCmd) ask(w *world, q router.Query, bar *bar) error {
	args := map[string]any{"query": q.Text}
	if q.DryRun {
		args["dry_run"] = true
	}
	if c.JSON {
		args["detail"] = "full"
	}
	if q.Plan != nil {
		args["plan"] = q.Plan
	}
	result, err := c.call(w.ctx, router.ToolProcessQuery, args, bar)
	bar.close()
	var refused *exitError
	if errors.As(err, &refused) && refused.code == exitFailed && !strings.HasPrefix(refused.text, limit.Exceeded) {
		refused.code = exitUsage // as in this process: what else it refuses is the question's fault
	}
	if err != nil {
		return err
	}
	return c.print(w, result.Text(), result.StructuredContent)
}

// indent breaks JSON into lines and changes nothing else.
func indent(raw json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Indent(&out, bytes.TrimSpace(raw), "", "  ") != nil {
		return raw
	}
	return out.Bytes()
}

type toolsCmd struct {
	source
	Search string `help:"Only tools that fit this description, best first." placeholder:"TEXT"`
	JSON   bool   `name:"json" help:"Print the structured content."`
}

func (c *toolsCmd) Run(w *world) error {
	a, done, err := c.open(w)
	if err != nil {
		return err
	}
	defer done()
	var tools []router.ToolInfo
	var hits []router.FoundTool
	if c.Search == "" {
		tools, err = a.Router().Tools(w.ctx, nil, "")
	} else {
		hits, err = found(w.ctx, a.Router(), c.Search)
	}
	if err != nil {
		return err
	}
	if missing := a.Router().Missing(w.ctx); len(missing) > 0 {
		fmt.Fprintf(w.stderr, "nexus: left out because they could not be listed: %s; see nexus health\n", strings.Join(missing, ", "))
	}
	switch {
	case c.JSON && c.Search == "": // as list_available_tools
		return printJSON(w, map[string]any{"tools": tools})
	case c.JSON: // as search_available_tools
		return printJSON(w, map[string]any{"tools": hits})
	}
	for _, h := range hits {
		tools = append(tools, router.ToolInfo{Name: h.Name, Server: h.Server, Description: h.Description})
	}
	for _, t := range tools {
		fmt.Fprintf(w.stdout, "%-32s %-16s %s\n", t.Name, t.Server, firstLine(t.Description, 100))
	}
	return nil
}

func found(ctx context.Context, r *router.Router, text string) ([]router.FoundTool, error) {
	hits, err := r.Search(ctx, text, 20, nil)
	tools := []router.FoundTool{}
	for _, h := range hits {
		tools = append(tools, router.FoundTool{Name: h.Name, Server: h.Server, Description: h.Description, InputSchema: h.InputSchema, Score: h.Score})
	}
	return tools, err
}

func printJSON(w *world, v any) error {
	enc := json.NewEncoder(w.stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// firstLine returns the first line of untrusted text for a terminal: without control characters, cut.
func firstLine(s string, max int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > max {
		return string(runes[:max-1]) + "…"
	}
	return s
}

type callCmd struct {
	source
	Tool      string `arg:"" help:"The tool, by any of its names."`
	Arguments string `arg:"" optional:"" help:"Its arguments as a JSON object." default:"{}"`
	JSON      bool   `name:"json" help:"Print the whole result."`
}

func (c *callCmd) Run(w *world) error {
	arguments := []byte(strings.TrimSpace(c.Arguments))
	if err := jsonrpc.Valid(arguments); err != nil || arguments[0] != '{' {
		return &exitError{exitUsage, `the arguments are no JSON object; write them like '{"name": "value"}'`}
	}
	a, done, err := c.open(w)
	if err != nil {
		return err
	}
	defer done()
	raw, err := a.Router().Call(w.ctx, c.Tool, arguments)
	if err != nil {
		return err
	}
	var result toolResult
	if err := json.Unmarshal(raw, &result); err != nil {
		return fmt.Errorf("reading the result: %w", err)
	}
	out, others := result.Text(), result.others()
	failure := &exitError{exitFailed, out}
	whole := c.JSON || out == ""
	if whole {
		out, others = string(indent(raw)), nil
	}
	if result.IsError && !whole {
		return failure
	}
	if _, err := fmt.Fprintln(w.stdout, out); err != nil {
		return err
	}
	if len(others) > 0 {
		fmt.Fprintf(w.stderr, "nexus: not shown: %s; see --json\n", firstLine(strings.Join(others, ", "), 300))
	}
	if result.IsError {
		return failure
	}
	return nil
}

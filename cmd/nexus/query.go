package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/terminal"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/router"
)

type queryCmd struct {
	source
	remote
	JSON   bool     `name:"json" help:"Print the structured content."`
	DryRun bool     `help:"Plan only; no tool is called."`
	Plan   string   `help:"Run the plan in this file instead of planning." placeholder:"FILE" type:"existingfile"`
	Yes    bool     `help:"Allow every call that needs your consent."`
	Text   []string `arg:"" help:"The question."`
}

func (c *queryCmd) Run(w *world) error {
	q := router.Query{Text: strings.Join(c.Text, " "), DryRun: c.DryRun}
	if strings.TrimSpace(q.Text) == "" {
		return &exitError{exitUsage, "Query is empty; write a question"}
	}
	if c.Plan != "" {
		given, err := os.ReadFile(c.Plan)
		if err != nil {
			return &exitError{exitUsage, err.Error()}
		}
		if !json.Valid(given) {
			return &exitError{exitUsage, c.Plan + " is not JSON; give the plan of an earlier result"}
		}
		if inside := jsonrpc.Get(given, "plan"); len(inside) > 0 && inside[0] == '{' {
			given = inside // the file has the whole result of an earlier query
		}
		q.Plan = given
	}
	bar := newBar(w)
	user := &prompt{w: w, bar: bar, yes: c.Yes}
	if c.Remote != "" {
		return c.ask(w, q, bar, user)
	}
	if q.Approved = c.Yes; w.asks {
		q.Elicit = user.elicit
	}
	c.calls = true
	a, done, err := c.open(w)
	if err != nil {
		return err
	}
	defer done()
	if w.terminal && !c.JSON && !a.Settings().LLM.Plans() {
		suggestModel(w, a.Settings())
	}
	waiting, cancel := context.WithTimeout(w.ctx, a.Settings().Query.Timeout)
	health, err := await(waiting, w, local{a}, "")
	cancel()
	if err == nil && !health.listed() { // there is nothing to ask yet
		_, err = await(w.ctx, w, local{a}, "")
	}
	if err != nil {
		return err
	}
	q.Report = router.NewReporter(bar.show)
	q.Report.OnRunning(bar.running)
	record, err := a.Router().Query(w.ctx, q)
	q.Report.Close()
	bar.close()
	if refusal, ok := errors.AsType[*router.Refusal](err); ok {
		return &exitError{exitUsage, advised(refusal.Text)}
	}
	if err != nil {
		return err
	}
	content, err := plainJSON(record.Content(c.JSON))
	if err != nil {
		return err
	}
	return c.print(w, record.Answer.Text, content)
}

// print prints the warnings and the answer or, with --json, its structured content. For a degraded answer it returns
// an error without a text.
func (c *queryCmd) print(w *world, answer string, content json.RawMessage) error {
	var warnings []string
	_ = json.Unmarshal(jsonrpc.Get(content, "warnings"), &warnings) // unreadable warnings are not shown
	for _, warning := range warnings {
		fmt.Fprintln(w.stderr, "nexus: "+firstLine(warning, 300))
	}
	out := w.stdout
	if c.JSON {
		answer = string(indent(content))
	} else {
		printFlows(w, content)
		if plain, columns, ok := w.styled(); ok {
			layOut := terminal.Digest
			if usage := jsonrpc.Get(jsonrpc.Get(content, "usage"), "synthesizer"); string(jsonrpc.Get(usage, "calls")) != "0" {
				layOut = terminal.Markdown
			}
			out, answer = plain, layOut(answer, columns)
		}
	}
	if _, err := fmt.Fprintln(out, answer); err != nil {
		return err
	}
	if string(jsonrpc.Get(content, "degraded")) == "true" {
		return &exitError{code: exitPartly}
	}
	return nil
}

// suggestModel says how to name a model, once for a state folder.
func suggestModel(w *world, s *config.Settings) {
	folder, err := s.StateFolder()
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	if err != nil {
		return
	}
	mark, err := os.OpenFile(filepath.Join(folder, "model-suggested"), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return // it was made before, or cannot be
	}
	_ = mark.Close() // it is empty
	fmt.Fprintln(w.stderr, "nexus: no model is configured, so rules plan and the answer lists results; a model understands "+
		"more: name one as llm.planner in config/settings.yaml (nexus config init writes an example)")
}

// maxFlows is the maximum number of flows that are printed.
const maxFlows = 20

// printFlows prints the flows of a query: the calls that sent data of one server to another.
func printFlows(w *world, content json.RawMessage) {
	p, err := plan.ParseJSON(jsonrpc.Get(content, "plan"))
	var calls []router.StepResult
	if err != nil || json.Unmarshal(jsonrpc.Get(content, "steps"), &calls) != nil {
		return // the answer is complete without
	}
	flows, printed := p.Flows(), 0
	for _, s := range p.Steps {
		sources := plan.Others(flows[s.ID], s.Server)
		made := slices.ContainsFunc(calls, func(c router.StepResult) bool { return c.ID == s.ID && c.Attempts > 0 })
		if len(sources) == 0 || !made {
			continue
		}
		if printed++; printed > maxFlows {
			fmt.Fprintln(w.stderr, "nexus: and more flows; see --json")
			return
		}
		fmt.Fprintf(w.stderr, "nexus: data of %s went to %s (%s)\n", firstLine(strings.Join(sources, ", "), 300),
			firstLine(s.Server, 100), firstLine(s.ID+" "+s.Tool, 100))
	}
}

// ask asks a remote router.
func (c *queryCmd) ask(w *world, q router.Query, bar *bar, user *prompt) error {
	args := question{Query: q.Text, DryRun: q.DryRun, Plan: q.Plan}
	if c.JSON {
		args.Detail = "full"
	}
	if !w.asks && !c.Yes {
		user = nil
	}
	p, err := c.connect(w.ctx, user)
	if err != nil {
		return err
	}
	defer p.close()
	result, err := p.answer(w.ctx, router.ToolProcessQuery, args, bar)
	bar.close()
	var refused *exitError
	if errors.As(err, &refused) && refused.code == exitFailed && !strings.HasPrefix(refused.text, limit.Exceeded) {
		refused.code = exitUsage // as in this process: other refusals are caused by the question
		refused.text = advised(refused.text)
	}
	if err != nil {
		return err
	}
	return c.print(w, result.Text(), result.StructuredContent)
}

// advised adds advice to the texts of refusals that clients get without it.
func advised(refusal string) string {
	switch refusal {
	case "Query too long":
		return refusal + "; shorten it, or raise limits.query_chars"
	case "Invalid query content":
		return refusal + "; write it in other words, or change validation.deny_patterns"
	}
	return refusal
}

// indent indents JSON without changing its values.
func indent(raw json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Indent(&out, bytes.TrimSpace(raw), "", "  ") != nil {
		return raw
	}
	return out.Bytes()
}

func printJSON(w *world, v any) error {
	raw, err := plainJSON(v)
	if err == nil {
		_, err = fmt.Fprintln(w.stdout, string(indent(raw)))
	}
	return err
}

// plainJSON encodes v without escaping &, < and >, so that arguments and plans keep their bytes.
func plainJSON(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding JSON: %w", err)
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// firstLine returns the first line of untrusted text for a terminal: without control characters, cut.
func firstLine(s string, most int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}

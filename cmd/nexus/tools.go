package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

type toolsCmd struct {
	source
	remote
	Search string `help:"List only tools that match this description, best first." placeholder:"TEXT"`
	JSON   bool   `name:"json" help:"Print the structured content."`
}

// Columns of the list of tools.
const (
	nameColumns    = 32
	serverColumns  = 16
	maxDescription = 100
)

func (c *toolsCmd) Run(w *world) error {
	b, done, err := c.backend(w, c.remote)
	if err != nil {
		return err
	}
	defer done()
	if _, err := await(w.ctx, w, b, ""); err != nil {
		return err
	}
	raw, err := b.tools(w.ctx, c.Search)
	if err != nil {
		return err
	}
	missing, err := b.missing(w.ctx)
	if err != nil {
		return err
	}
	if err := c.print(w, raw); err != nil {
		return err
	}
	for _, m := range missing {
		fmt.Fprintln(w.stderr, "nexus: not listed: "+firstLine(m, 300))
	}
	if len(missing) > 0 {
		return &exitError{code: exitPartly}
	}
	return nil
}

func (c *toolsCmd) print(w *world, raw json.RawMessage) error {
	if c.JSON {
		_, err := fmt.Fprintln(w.stdout, string(indent(raw)))
		return err
	}
	var listed struct {
		Tools []struct{ Name, Server, Description string }
	}
	if err := json.Unmarshal(raw, &listed); err != nil {
		return fmt.Errorf("reading the tools: %w", err)
	}
	room := maxDescription
	if columns, ok := width(w.stdout); ok {
		room = max(20, min(room, columns-nameColumns-serverColumns-2))
	}
	if len(listed.Tools) == 0 && c.Search != "" {
		fmt.Fprintf(w.stderr, "nexus: no tool matches %q; try other words, or nexus tools to list all\n", firstLine(c.Search, 100))
	}
	for _, t := range listed.Tools {
		if _, err := fmt.Fprintf(w.stdout, "%-*s %-*s %s\n", nameColumns, t.Name, serverColumns, t.Server,
			firstLine(t.Description, room)); err != nil {
			return err
		}
	}
	return nil
}

type callCmd struct {
	source
	remote
	Tool      string `arg:"" help:"The tool: its bare name, or server__tool."`
	Arguments string `arg:"" optional:"" help:"Its arguments as a JSON object." default:"{}"`
	JSON      bool   `name:"json" help:"Print the structured content or, without any, the whole result."`
}

func (c *callCmd) Run(w *world) error {
	arguments := []byte(strings.TrimSpace(c.Arguments))
	if err := jsonrpc.Valid(arguments); err != nil || arguments[0] != '{' {
		return &exitError{exitUsage, `the arguments are not a JSON object; write them like '{"name": "value"}'`}
	}
	b, done, err := c.backend(w, c.remote)
	if err != nil {
		return err
	}
	defer done()
	health, err := await(w.ctx, w, b, c.Tool)
	switch {
	case err != nil:
		return err
	case c.Remote == "" && health.idle():
		return &exitError{code: exitFailed} // idleHint was already printed
	}
	raw, err := b.call(w.ctx, c.Tool, arguments)
	if err != nil {
		return err
	}
	var result toolResult
	if err := json.Unmarshal(raw, &result); err != nil {
		return fmt.Errorf("reading the result: %w", err)
	}
	return c.print(w, raw, &result)
}

func (c *callCmd) print(w *world, raw json.RawMessage, result *toolResult) error {
	out, others := result.Text(), result.others()
	failure := &exitError{exitFailed, out}
	whole := c.JSON || out == ""
	if whole {
		if structured := jsonrpc.Get(raw, "structuredContent"); c.JSON && structured != nil {
			raw = structured
		}
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

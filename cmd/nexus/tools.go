package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/terminal"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/pins"
)

type toolsCmd struct {
	List    toolsListCmd    `cmd:"" default:"withargs" help:"List or search the tools of all servers."`
	Approve toolsApproveCmd `cmd:"" help:"Show and approve what has changed at the tools of a server."`
}

type toolsListCmd struct {
	source
	remote
	Search string   `help:"List only tools that match this description, best first." placeholder:"TEXT"`
	Wait   patience `help:"Print nothing before all servers have started; --wait=DURATION, such as 5s, waits at most so long."`
	JSON   bool     `name:"json" help:"Print the structured content, once all servers have started."`
}

// patience is a flag with an optional duration.
type patience struct {
	given bool
	most  *time.Duration // nil = without a limit
}

// IsBool lets the flag stand alone.
func (*patience) IsBool() bool { return true }

// Decode implements kong.MapperValue.
func (p *patience) Decode(ctx *kong.DecodeContext) error {
	p.given = true
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		return nil
	}
	text := ctx.Scan.Pop().String()
	most, err := time.ParseDuration(text)
	if err != nil || most < 0 {
		return fmt.Errorf("want a duration such as 5s, got %q", text)
	}
	p.most = &most
	return nil
}

// Columns of the list of tools.
const (
	nameColumns    = 32
	serverColumns  = 16
	maxDescription = 100
)

// Run prints the tools once all servers have started. If they take longer than a list, it first prints the tools of
// those that have, and then those of each that comes, unless one whole list is wanted.
func (c *toolsListCmd) Run(w *world) error {
	c.names = true
	b, done, err := c.backend(w, c.remote)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithCancel(w.ctx)
	if c.Wait.most != nil {
		cancel()
		ctx, cancel = context.WithTimeout(w.ctx, *c.Wait.most)
	}
	l := toolList{c, w, b, map[string]bool{}}
	var early chan struct{} // closed when the router has waited for its servers as long as it does for a list
	defer func() {
		if cancel(); early != nil {
			<-early
		}
	}()
	left := 0
	if _, err := awaitWith(ctx, w, b, "", func(bar *bar, starting []string) error {
		if c.JSON || c.Wait.given {
			return nil
		}
		if early == nil {
			early = make(chan struct{})
			go func() {
				defer close(early)
				_, _ = b.tools(ctx, c.Search) // it is listed again
			}()
		}
		select {
		case <-early:
		default:
			return nil
		}
		if left == len(starting) {
			return nil
		}
		left = len(starting)
		return l.printReady(bar, starting)
	}); err != nil {
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
	health, err := healthOf(w.ctx, b) // after the list, which compares the tools
	if err != nil && !errors.Is(err, errNotOffered) {
		return err
	}
	if err := l.print(raw, health.changed(), true); err != nil {
		return err
	}
	missing = append(missing, health.mistaken()...)
	for _, m := range missing {
		fmt.Fprintln(w.stderr, "nexus: not listed: "+firstLine(m, 300))
	}
	if len(missing) > 0 {
		return &exitError{code: exitPartly}
	}
	return nil
}

// toolList prints tools, each once.
type toolList struct {
	cmd   *toolsListCmd
	w     *world
	b     backend
	shown map[string]bool // servers whose tools were printed
}

// printReady prints the tools of the servers that do not start any more, and names those that do.
func (l *toolList) printReady(bar *bar, starting []string) error {
	raw, err := l.b.tools(l.w.ctx, l.cmd.Search)
	if err != nil {
		return context.Cause(l.w.ctx) // nothing is listed yet
	}
	health, err := healthOf(l.w.ctx, l.b)
	if err != nil {
		return err
	}
	bar.close()
	if err := l.print(raw, health.changed(), false); err != nil {
		return err
	}
	if len(l.shown) == 0 {
		fmt.Fprintf(l.w.stderr, "nexus: still starting: %s; their tools follow\n", strings.Join(starting, ", "))
	}
	for name := range health.Servers {
		l.shown[name] = l.shown[name] || !slices.Contains(starting, name)
	}
	return nil
}

// print prints the tools of the servers that are not shown yet; last means that no others follow.
func (l *toolList) print(raw json.RawMessage, changed changedTools, last bool) error {
	c, w := l.cmd, l.w
	if c.JSON {
		marked, err := changed.mark(raw, c.Search == "")
		if err == nil {
			_, err = fmt.Fprintln(w.stdout, string(indent(marked)))
		}
		return err
	}
	var listed struct {
		Tools []struct{ Name, Server, Description string }
	}
	if err := json.Unmarshal(raw, &listed); err != nil {
		return fmt.Errorf("reading the tools: %w", err)
	}
	if last && len(listed.Tools) == 0 && c.Search != "" {
		fmt.Fprintf(w.stderr, "nexus: no tool matches %q; try other words, or nexus tools to list all\n", firstLine(c.Search, 100))
	}
	var rows []*toolRow
	for _, t := range listed.Tools {
		if changed.take(t.Server, t.Name) {
			t.Description = "[changed] " + t.Description
		}
		if l.shown[t.Server] {
			continue
		}
		rows = append(rows, &toolRow{t.Name, t.Server, t.Description})
	}
	if c.Search == "" && last {
		for _, server := range slices.Sorted(maps.Keys(changed)) { // quarantined, or not listed any more
			for _, tool := range changed[server] {
				rows = append(rows, &toolRow{tool, server, "[changed] see " + pins.ApproveCommand(server, "")})
			}
		}
	}
	if out, columns, ok := w.styled(); ok && c.Search == "" {
		return printGroups(out, rows, columns)
	}
	room := maxDescription
	if columns, ok := width(w.stdout); ok {
		room = max(20, min(room, columns-nameColumns-serverColumns-2))
	}
	for _, r := range rows {
		if _, err := fmt.Fprintf(w.stdout, "%-*s %-*s %s\n", nameColumns, firstLine(r.name, 200), serverColumns, r.server,
			firstLine(r.text, room)); err != nil {
			return err
		}
	}
	return nil
}

// toolRow is a line of a list of tools.
type toolRow struct{ name, server, text string }

// printGroups prints the tools of each server below its name, on a terminal.
func printGroups(out io.Writer, rows []*toolRow, columns int) error {
	slices.SortStableFunc(rows, func(a, b *toolRow) int { return strings.Compare(a.server, b.server) })
	names := 0
	for _, r := range rows {
		r.name = firstLine(r.name, 200)
		names = max(names, min(terminal.Columns(r.name), columns/2))
	}
	var page strings.Builder
	server := ""
	for _, r := range rows {
		if r.server != server {
			server = r.server
			page.WriteString(terminal.Bold(server) + "\n")
		}
		gap := strings.Repeat(" ", max(0, names-terminal.Columns(r.name)))
		page.WriteString(terminal.Cut("  "+r.name+gap+"  "+firstLine(r.text, 1000), columns) + "\n")
	}
	_, err := io.WriteString(out, page.String())
	return err
}

// changedTools are the own names of tools that are not as approved, by server.
type changedTools map[string][]string

// changed returns the changed tools; h may be nil.
func (h *state) changed() changedTools {
	out := changedTools{}
	if h != nil {
		for name, s := range h.Servers {
			if len(s.Changed) > 0 {
				out[name] = s.Changed
			}
		}
	}
	return out
}

// take reports whether a listed tool has changed, and removes it.
func (c changedTools) take(server, name string) bool {
	for _, own := range []string{name, strings.TrimPrefix(name, server+".")} {
		if i := slices.Index(c[server], own); i >= 0 {
			if c[server] = slices.Delete(c[server], i, i+1); len(c[server]) == 0 {
				delete(c, server)
			}
			return true
		}
	}
	return false
}

// mark adds to the structured content of a list what the text form shows: changed: true to each changed tool and, if
// the list is whole, the other changed tools by server.
func (c changedTools) mark(list json.RawMessage, whole bool) (json.RawMessage, error) {
	var edits []jsonrpc.Edit
	for _, tool := range jsonrpc.Elements(jsonrpc.Get(list, "tools")) {
		if c.take(jsonrpc.Text(jsonrpc.Get(tool, "server")), jsonrpc.Text(jsonrpc.Get(tool, "name"))) {
			edits = append(edits, jsonrpc.Edit{Span: jsonrpc.At(list, tool), With: jsonrpc.Set(tool, "changed", []byte("true"))})
		}
	}
	list = jsonrpc.Splice(list, edits...)
	if !whole || len(c) == 0 {
		return list, nil
	}
	others, err := json.Marshal(c)
	return jsonrpc.Set(list, "changed", others), err
}

type callCmd struct {
	source
	remote
	Tool      string `arg:"" help:"The tool: its bare name, or server__tool." completes:"tool"`
	Arguments string `arg:"" optional:"" help:"Its arguments as a JSON object." default:"{}"`
	JSON      bool   `name:"json" help:"Print the structured content or, without any, the whole result."`
}

func (c *callCmd) Run(w *world) error {
	c.calls = true
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
		return &exitError{code: exitFailed} // what to do was already printed
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

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/terminal"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/schema"
	"github.com/agenticnexus/agenticnexus/router"
)

const (
	maxTries = 3    // attempts to enter a valid value
	maxLabel = 300  // longest label of a field, in characters
	maxLine  = 4096 // longest input line, in bytes
)

// errNoTerminal means that the user cannot be asked.
var errNoTerminal = errors.New("there is no terminal to ask on")

// prompt asks the user on the terminal, one request at a time.
type prompt struct {
	w   *world
	bar *bar
	yes bool // gives consent without asking

	mu    sync.Mutex
	lines chan string // of standard input; nil before the first prompt
}

// elicit implements router.Elicit. A form without fields asks for consent.
func (p *prompt) elicit(ctx context.Context, message string, form []byte) ([]byte, error) {
	s, err := schema.Read(form)
	if err != nil {
		return nil, fmt.Errorf("reading the form: %w", err)
	}
	switch {
	case p.yes && string(jsonrpc.Get(form, "properties")) == "{}":
		return []byte(`{}`), nil
	case !p.w.asks:
		return nil, errNoTerminal
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bar.hide(true)
	defer p.bar.hide(false)
	fmt.Fprintln(p.w.stderr, terminal.Harmless(message))
	if len(s.Required) == 0 {
		return []byte(`{}`), p.confirm(ctx, "")
	}
	content := []byte(`{}`)
	for _, name := range s.Required {
		value, err := p.field(ctx, name, s.Field(name))
		if err != nil {
			return nil, err
		}
		content = jsonrpc.Set(content, name, value)
	}
	return content, nil
}

// confirm asks for consent. Only "yes" or "y" gives it; else the error is router.ErrDeclined.
func (p *prompt) confirm(ctx context.Context, question string) error {
	line, err := p.line(ctx, question+"[y/N] ")
	if err == nil && line != "y" && line != "Y" && !strings.EqualFold(line, "yes") {
		err = router.ErrDeclined
	}
	return err
}

// field asks for one value. An empty line declines.
func (p *prompt) field(ctx context.Context, name string, s *schema.Schema) ([]byte, error) {
	label := firstLine(name, maxLabel)
	if s != nil && s.Description != "" {
		label += " (" + firstLine(s.Description, maxLabel) + ")"
	}
	if s != nil && len(s.Enum) > 0 {
		var choices []string
		for _, v := range s.Enum {
			choices = append(choices, jsonrpc.Text(v))
		}
		label += ", one of " + firstLine(strings.Join(choices, ", "), maxLabel)
	}
	for range maxTries {
		line, err := p.line(ctx, label+": ")
		if err != nil {
			return nil, err
		}
		if line == "" {
			return nil, router.ErrDeclined
		}
		if value, ok := valueOf(line, s); ok {
			return value, nil
		}
		fmt.Fprintln(p.w.stderr, "Invalid value. Enter an empty line to skip.")
	}
	return nil, router.ErrDeclined
}

// valueOf returns a line as a JSON value of the field's type.
func valueOf(line string, s *schema.Schema) (value []byte, ok bool) {
	quoted := []byte(jsonrpc.StringID(line))
	switch {
	case s == nil:
		return quoted, true
	case len(s.Enum) > 0:
		return quoted, slices.ContainsFunc(s.Enum, func(v json.RawMessage) bool { return jsonrpc.Text(v) == line })
	case slices.Contains(s.Types, "boolean"):
		yes := slices.Contains([]string{"y", "yes", "true"}, strings.ToLower(line))
		no := slices.Contains([]string{"n", "no", "false"}, strings.ToLower(line))
		return fmt.Append(nil, yes), yes || no
	case slices.Contains(s.Types, "number"), slices.Contains(s.Types, "integer"):
		var n json.Number
		return []byte(line), json.Unmarshal([]byte(line), &n) == nil && line[0] != '"' && line != "null"
	}
	return quoted, true
}

// line shows a prompt and reads a line.
func (p *prompt) line(ctx context.Context, text string) (string, error) {
	if p.lines == nil {
		p.lines = make(chan string)
		go p.read() // cannot be interrupted; ends with standard input or the program
	}
	fmt.Fprint(p.w.stderr, terminal.Harmless(text))
	select {
	case line, ok := <-p.lines:
		if !ok {
			return "", errNoTerminal
		}
		return strings.TrimSpace(line), nil
	case <-ctx.Done():
		fmt.Fprintln(p.w.stderr)
		return "", context.Cause(ctx)
	}
}

func (p *prompt) read() {
	defer close(p.lines)
	in := bufio.NewScanner(p.w.stdin)
	in.Buffer(make([]byte, 0, maxLine), maxLine)
	for in.Scan() {
		p.lines <- in.Text()
	}
}

// answer answers a remote router's requests for consent and for arguments.
func (p *prompt) answer(ctx context.Context, method string, params []byte) (result, rpcErr []byte) {
	if method != "elicitation/create" {
		e := &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + method}
		return nil, e.Encode()
	}
	content, err := p.elicit(ctx, jsonrpc.Text(jsonrpc.Get(params, "message")), jsonrpc.Get(params, "requestedSchema"))
	switch {
	case err == nil:
		return jsonrpc.Set([]byte(`{"action":"accept"}`), "content", content), nil
	case errors.Is(err, router.ErrDeclined):
		return []byte(`{"action":"decline"}`), nil
	}
	e := &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: err.Error()}
	return nil, e.Encode()
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/router/execution"
)

// remote has the flags of commands that can ask a remote router.
type remote struct {
	Remote   string `help:"Use the router at this URL (base or /mcp), with the key in NEXUS_API_KEY." placeholder:"URL"`
	Insecure bool   `help:"Send the key over plain HTTP beyond this machine, too."`
}

// toolResult is the part of a tools/call result that is printed.
type toolResult struct {
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent"`
	IsError           bool            `json:"isError"`
}

// Text joins the text blocks.
func (r *toolResult) Text() string {
	var texts []string
	for _, c := range r.Content {
		if c.Type == "text" {
			texts = append(texts, c.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// others returns the types of the non-text blocks.
func (r *toolResult) others() []string {
	var types []string
	for _, c := range r.Content {
		if c.Type != "text" {
			types = append(types, c.Type)
		}
	}
	return types
}

// errNotOffered means that router.tools of the remote router leaves out a tool.
var errNotOffered = errors.New("the router does not offer")

// peer is a session with a remote router.
type peer struct {
	session   *link.Session
	transport *http.Transport
}

// target returns the base URL of the remote router, and the headers of requests to it.
func (r *remote) target() (base string, headers map[string]redact.Secret, err error) {
	base = strings.TrimSuffix(strings.TrimSuffix(r.Remote, "/"), "/mcp")
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", nil, &exitError{exitUsage, fmt.Sprintf("--remote %s is not a URL; write it like http://127.0.0.1:8002", r.Remote)}
	}
	headers = map[string]redact.Secret{}
	if key := os.Getenv("NEXUS_API_KEY"); key != "" {
		if u.Scheme == "http" && !oauth.OnLoopback(u) && !r.Insecure {
			return "", nil, &exitError{exitUsage, fmt.Sprintf("refusing to send the key in NEXUS_API_KEY to %s over plain HTTP; "+
				"use https, or add --insecure if the network is trusted", u.Host)}
		}
		headers["Authorization"] = redact.Secret("Bearer " + key)
	}
	return base, headers, nil
}

// connect opens a session with the remote router. user answers its requests; nil declines them.
func (r *remote) connect(ctx context.Context, user *prompt) (*peer, error) {
	base, headers, err := r.target()
	if err != nil {
		return nil, err
	}
	capabilities, handler := map[string]any{}, asked{user}
	if user != nil {
		capabilities["elicitation"] = map[string]any{}
	}
	hello, _ := json.Marshal(map[string]any{
		"protocolVersion": downstream.ProtocolVersion, "capabilities": capabilities,
		"clientInfo": map[string]string{"name": "nexus", "version": version},
	})
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	session, err := link.Connect(ctx, link.Options{
		Server: r.Remote, Target: link.Target{URL: base + "/mcp", Headers: headers}, Initialize: hello, Handler: handler,
		MaxMessage: 64 << 20, HTTP: transport, Logger: slog.New(slog.DiscardHandler),
		Handshake: true, // only a session has requests of the router
	})
	if err != nil {
		transport.CloseIdleConnections()
		return nil, helped(err)
	}
	return &peer{session, transport}, nil
}

func (p *peer) close() {
	p.session.Close()
	p.transport.CloseIdleConnections()
}

// ask calls a tool of the remote router and returns its raw result.
func (p *peer) ask(ctx context.Context, tool string, args any, bar *bar) (json.RawMessage, error) {
	params, err := plainJSON(map[string]any{"name": tool, "arguments": args})
	if err != nil {
		return nil, err
	}
	reply, err := p.session.Call(ctx, &link.Call{
		Method: "tools/call", Params: params,
		Progress: func(params []byte) {
			var p struct {
				Progress, Total float64
				Message         string
			}
			if bar != nil && json.Unmarshal(params, &p) == nil {
				bar.show(execution.Fraction(p.Progress, p.Total), p.Message)
			}
		},
	})
	switch {
	case err != nil:
		return nil, helped(err)
	case jsonrpc.Text(jsonrpc.Get(reply.Err, "message")) == "Unknown tool: "+tool:
		return nil, fmt.Errorf("%w %s; see router.tools in its settings", errNotOffered, tool)
	case reply.Err != nil:
		return nil, fmt.Errorf("the router refused: %s", jsonrpc.Text(jsonrpc.Get(reply.Err, "message")))
	}
	return reply.Result, nil
}

// question has the arguments of process_query. Fields are in alphabetical order.
type question struct {
	Context json.RawMessage `json:"context,omitempty"`
	Detail  string          `json:"detail,omitempty"`
	DryRun  bool            `json:"dry_run,omitempty"`
	Rounds  int             `json:"max_rounds,omitempty"`
	Plan    json.RawMessage `json:"plan,omitempty"`
	Query   string          `json:"query"`
	Servers []string        `json:"servers,omitempty"`
	Seconds float64         `json:"timeout_seconds,omitempty"`
}

// answer calls one of the remote router's own tools. A failed result is an error.
func (p *peer) answer(ctx context.Context, tool string, args any, bar *bar) (*toolResult, error) {
	raw, err := p.ask(ctx, tool, args, bar)
	if err != nil {
		return nil, err
	}
	var result toolResult
	if err := json.Unmarshal(raw, &result); err != nil {
		return nil, fmt.Errorf("reading the result: %w", err)
	}
	if result.IsError {
		return nil, &exitError{exitFailed, result.Text()}
	}
	return &result, nil
}

// helped adds advice to errors of a refused key or an unreachable router.
func helped(err error) error {
	var failure *link.Failure
	switch {
	case !errors.As(err, &failure):
	case failure.Reason == reason.Unauthorized:
		return fmt.Errorf("%w; set NEXUS_API_KEY to one of its keys", err)
	case failure.Reason == reason.Unavailable && failure.MaybeDelivered: // it was an answer
		return fmt.Errorf("%w: it runs, but cannot serve this now; try again, or ask another replica if it is one of several", err)
	case failure.Reason == reason.Unavailable:
		return fmt.Errorf("%w; start a router there with nexus serve, or correct --remote", err)
	}
	return err
}

// asked handles notifications and requests of the remote router.
type asked struct{ user *prompt }

// Notified implements link.Handler.
func (asked) Notified(jsonrpc.Message, []*link.Call) {}

// Asked implements link.Handler.
func (a asked) Asked(ctx context.Context, m jsonrpc.Message, _ []*link.Call) (result, err []byte) {
	if a.user == nil {
		e := &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "The command line does not answer requests"}
		return nil, e.Encode()
	}
	return a.user.answer(ctx, m.Method, m.Params)
}

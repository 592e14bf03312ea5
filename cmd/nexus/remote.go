package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/downstream/progress"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/secret"
)

// remote are the flags of commands that can ask a router elsewhere.
type remote struct {
	Remote string `help:"Ask the router at this URL, its base or its /mcp; NEXUS_API_KEY is its key." placeholder:"URL"`
}

// toolResult is a result of tools/call as far as it is printed.
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

// others returns the types of the blocks that are no text.
func (r *toolResult) others() []string {
	var types []string
	for _, c := range r.Content {
		if c.Type != "text" {
			types = append(types, c.Type)
		}
	}
	return types
}

// call calls a tool of the remote router.
func (r *remote) call(ctx context.Context, tool string, args map[string]any, bar *bar) (*toolResult, error) {
	url := strings.TrimSuffix(r.Remote, "/")
	if !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") {
		return nil, &exitError{exitUsage, fmt.Sprintf("--remote %s is no URL; write it like http://127.0.0.1:8002", r.Remote)}
	}
	if !strings.HasSuffix(url, "/mcp") {
		url += "/mcp"
	}
	headers := map[string]secret.String{}
	if key := os.Getenv("NEXUS_API_KEY"); key != "" {
		headers["Authorization"] = secret.String("Bearer " + key)
	}
	hello, _ := json.Marshal(map[string]any{
		"protocolVersion": downstream.ProtocolVersion, "capabilities": map[string]any{},
		"clientInfo": map[string]string{"name": "nexus", "version": version},
	})
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	defer transport.CloseIdleConnections()
	session, err := link.Connect(ctx, link.Options{
		Server: r.Remote, Target: link.Target{URL: url, Headers: headers}, Initialize: hello, Handler: nobody{},
		MaxMessage: 64 << 20, HTTP: transport, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, keyed(err)
	}
	defer session.Close()
	var params bytes.Buffer
	enc := json.NewEncoder(&params)
	enc.SetEscapeHTML(false) // the bytes of a plan stay as they are
	if err := enc.Encode(map[string]any{"name": tool, "arguments": args}); err != nil {
		return nil, fmt.Errorf("encoding the arguments: %w", err)
	}
	reply, err := session.Call(ctx, &link.Call{
		Method: "tools/call", Params: bytes.TrimSpace(params.Bytes()),
		Progress: func(params []byte) {
			var p struct {
				Progress, Total float64
				Message         string
			}
			if bar != nil && json.Unmarshal(params, &p) == nil {
				bar.show(progress.Fraction(p.Progress, p.Total), p.Message)
			}
		},
	})
	switch {
	case err != nil:
		return nil, keyed(err)
	case reply.Err != nil:
		return nil, fmt.Errorf("the router refused: %s", jsonrpc.Text(jsonrpc.Get(reply.Err, "message")))
	}
	var result toolResult
	if err := json.Unmarshal(reply.Result, &result); err != nil {
		return nil, fmt.Errorf("reading the result: %w", err)
	}
	if result.IsError {
		return nil, &exitError{exitFailed, result.Text()}
	}
	return &result, nil
}

// keyed says where the key comes from to whom the remote router refuses.
func keyed(err error) error {
	var failure *link.Failure
	if errors.As(err, &failure) && failure.Reason == link.ReasonUnauthorized {
		return fmt.Errorf("%w; set NEXUS_API_KEY to one of its keys", err)
	}
	return err
}

// nobody takes what the remote router sends of its own accord.
type nobody struct{}

func (nobody) Notified(jsonrpc.Message, []*link.Call) {}

func (nobody) Asked(context.Context, jsonrpc.Message, []*link.Call) (result, err []byte) {
	e := &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "The command line cannot be asked"}
	return nil, e.Encode()
}

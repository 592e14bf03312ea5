package mcptest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
)

// Modern is the protocol version without sessions.
const Modern = string(protocol.V20260728)

// Client is a client of one surface over streamable HTTP, or over HTTP+SSE after OpenSSE. Without a Session it is
// served as one that says nothing about itself, or as one of 2026-07-28 if that is its Version.
type Client struct {
	URL          string // takes messages
	HTTP         *http.Client
	Session      string
	Version      string                 // of the protocol; empty = not said
	Capabilities string                 // raw JSON; empty = roots alone
	Answers      func(m Message) string // raw results for requests of the server; nil = there are no roots

	last atomic.Int64

	mu      sync.Mutex
	heard   []Message
	replies map[string]chan Message // by id; nil but over HTTP+SSE
}

// WithKey returns a transport that adds an API key to requests, none if it is empty.
func WithKey(t http.RoundTripper, key string) Keyed { return Keyed{t, key} }

// Keyed is a transport of WithKey.
type Keyed struct {
	http.RoundTripper
	key string
}

// RoundTrip implements http.RoundTripper.
func (k Keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	if k.key != "" {
		r = r.Clone(r.Context())
		r.Header.Set("X-API-Key", k.key)
	}
	return k.RoundTripper.RoundTrip(r)
}

// CloseIdleConnections is for the method of http.Client.
func (k Keyed) CloseIdleConnections() {
	(&http.Client{Transport: k.RoundTripper}).CloseIdleConnections()
}

// Dial opens a session.
func Dial(ctx context.Context, hc *http.Client, url string) (*Client, error) {
	c := &Client{URL: url, HTTP: hc}
	return c, c.Initialize(ctx)
}

// Initialize opens a session of the client's version, or of 2025-11-25.
func (c *Client) Initialize(ctx context.Context) error {
	r := c.DoAs(ctx, "0", "initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"clientInfo":%s}`,
		cmp.Or(c.Version, "2025-11-25"), c.capabilities(), clientInfo))
	if r.Err != nil || c.Session == "" && c.replies == nil {
		return fmt.Errorf("initialize: got status %d and session %q: %w", r.Status, c.Session, r.Err)
	}
	return c.Notify(ctx, "notifications/initialized", "{}")
}

// Notify sends a notification.
func (c *Client) Notify(ctx context.Context, method, params string) error {
	resp, err := c.Post(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params))
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return resp.Body.Close()
}

const clientInfo = `{"name":"mcptest","version":"1"}`

func (c *Client) capabilities() string { return cmp.Or(c.Capabilities, `{"roots":{}}`) }

// Close ends the session.
func (c *Client) Close(ctx context.Context) error {
	resp, err := c.send(ctx, http.MethodDelete, "")
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// Post sends a raw message.
func (c *Client) Post(ctx context.Context, raw string) (*http.Response, error) {
	return c.send(ctx, http.MethodPost, raw)
}

func (c *Client) send(ctx context.Context, method, raw string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.URL, strings.NewReader(raw))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.Session != "" {
		req.Header.Set("Mcp-Session-Id", c.Session)
		if c.Version >= "2025-06-18" {
			req.Header.Set("MCP-Protocol-Version", c.Version)
		}
	}
	if c.Version == Modern {
		var m Message
		if err := json.Unmarshal([]byte(raw), &m); err != nil {
			return nil, err
		}
		req.Header.Set("MCP-Protocol-Version", Modern)
		req.Header.Set("Mcp-Method", m.Method)
		of := func(member string) string { return jsonrpc.Text(jsonrpc.Get(m.Params, member)) }
		if name := cmp.Or(m.Call().Name, of("uri"), of("taskId")); name != "" {
			req.Header.Set("Mcp-Name", name)
		}
	}
	return c.HTTP.Do(req)
}

// Reply is what came for a request. All but Err is empty where nothing came.
type Reply struct {
	Status int       // of HTTP
	Notes  []Message // notifications before the response
	Message
	After int   // messages after the response, of which there should be none
	Err   error // why there is no response
}

// Call calls a tool and asks for progress.
func (c *Client) Call(ctx context.Context, tool, arguments string) Reply {
	return c.Do(ctx, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s,"_meta":{"progressToken":"p"}}`, tool,
		arguments))
}

// Do sends a request with an id of its own and waits for what comes of it.
func (c *Client) Do(ctx context.Context, method, params string) Reply {
	return c.DoAs(ctx, strconv.FormatInt(c.last.Add(1), 10), method, params)
}

// DoAs is Do with a raw id. In 2026-07-28 it answers what the server asks and sends the request again, with a new id.
func (c *Client) DoAs(ctx context.Context, id, method, params string) Reply {
	if c.Version != Modern {
		return c.doOnce(ctx, id, method, params)
	}
	meta := jsonrpc.Get([]byte(params), "_meta")
	for name, value := range map[string]string{"protocolVersion": `"` + Modern + `"`, "clientInfo": clientInfo,
		"clientCapabilities": c.capabilities()} {
		meta = jsonrpc.Set(meta, "io.modelcontextprotocol/"+name, []byte(value))
	}
	params = string(jsonrpc.Set([]byte(params), "_meta", meta))
	for {
		r := c.doOnce(ctx, id, method, params)
		if jsonrpc.Text(jsonrpc.Get(r.Result, "resultType")) != "input_required" {
			return r
		}
		var asked struct {
			InputRequests map[string]Message
			RequestState  json.RawMessage
		}
		if r.Err = json.Unmarshal(r.Result, &asked); r.Err != nil {
			return r
		}
		var answers []byte
		for key, m := range asked.InputRequests {
			answers = jsonrpc.Set(answers, key, []byte(c.result(m)))
		}
		again := jsonrpc.Set([]byte(params), "inputResponses", answers)
		if asked.RequestState != nil {
			again = jsonrpc.Set(again, "requestState", asked.RequestState)
		}
		id, params = strconv.FormatInt(c.last.Add(1), 10), string(again)
	}
}

func (c *Client) doOnce(ctx context.Context, id, method, params string) Reply {
	came := make(chan Message, 1)
	c.mu.Lock()
	if c.replies != nil {
		c.replies[id] = came
	}
	c.mu.Unlock()
	resp, err := c.Post(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	if err != nil {
		return Reply{Err: err}
	}
	defer resp.Body.Close()
	if method == "initialize" {
		c.Session = resp.Header.Get("Mcp-Session-Id")
	}
	if c.replies == nil || resp.StatusCode != http.StatusAccepted {
		return c.Read(ctx, resp)
	}
	select {
	case m := <-came:
		return Reply{Status: resp.StatusCode, Message: m}
	case <-ctx.Done():
		return Reply{Status: resp.StatusCode, Err: ctx.Err()}
	}
}

// Read reads an answer to its end. What the server asks meanwhile is answered.
func (c *Client) Read(ctx context.Context, resp *http.Response) Reply {
	r := Reply{Status: resp.StatusCode}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		body, err := io.ReadAll(resp.Body)
		if err == nil && len(body) > 0 {
			err = json.Unmarshal(body, &r.Message)
		}
		if r.Err = err; err == nil && r.Result == nil && r.Error == nil {
			r.Err = fmt.Errorf("no response in %.200q", body)
		}
		return r
	}
	var bad error
	err := Events(resp.Body, func(_, data string) {
		var m Message
		err := json.Unmarshal([]byte(data), &m)
		switch {
		case bad != nil:
		case err == nil && m.Method != "":
			if m.ID == nil {
				r.take(m)
			}
			bad = c.hear(ctx, m)
		case err == nil:
			r.take(m)
		default:
			bad = err
		}
	})
	if r.Result == nil && r.Error == nil {
		r.Err = fmt.Errorf("the stream has no response: %w", cmp.Or(bad, err))
	}
	return r
}

// hear notes a notification and answers a request of the server.
func (c *Client) hear(ctx context.Context, m Message) error {
	if m.ID == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.heard = append(c.heard, m)
		return nil
	}
	resp, err := c.Post(ctx, m.Response(c.result(m)))
	if err != nil {
		return fmt.Errorf("answering %s: %w", m.Method, err)
	}
	return resp.Body.Close()
}

func (c *Client) result(m Message) string {
	if c.Answers == nil {
		return `{"roots":[]}`
	}
	return c.Answers(m)
}

// Heard reports whether a notification of a method with a part has come, on any stream.
func (c *Client) Heard(method, part string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.heard, func(m Message) bool {
		return m.Method == method && strings.Contains(string(m.Params), part)
	})
}

func (r *Reply) take(m Message) {
	switch {
	case r.Result != nil || r.Error != nil:
		r.After++
	case m.Method != "":
		r.Notes = append(r.Notes, m)
	default:
		r.Message = m
	}
}

// Failure is the error of a response as the contract defines it.
type Failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    struct {
		Server    string `json:"server"`
		Reason    string `json:"reason"`
		Retryable bool   `json:"retryable"`
	} `json:"data"`
}

// Failure returns the error of the response; zero if there is none.
func (r Reply) Failure() (f Failure) {
	_ = json.Unmarshal(r.Error, &f)
	return f
}

// Outcome says in a few words what came: "result", "tool error", "-32000 timeout", "HTTP 400 -32600",
// or "no answer".
func (r Reply) Outcome() string {
	var words []string
	if r.Status >= 300 {
		words = append(words, "HTTP "+strconv.Itoa(r.Status))
	}
	var result struct {
		IsError bool `json:"isError"`
	}
	switch f := r.Failure(); {
	case r.Error != nil:
		words = append(words, strconv.Itoa(f.Code))
		if f.Data.Reason != "" {
			words = append(words, f.Data.Reason)
		}
	case r.Result != nil && json.Unmarshal(r.Result, &result) == nil && result.IsError:
		words = append(words, "tool error")
	case r.Result != nil:
		words = append(words, "result")
	case len(words) == 0:
		words = append(words, "no answer")
	}
	return strings.Join(words, " ")
}

// Text returns the first text of a tool's result.
func (r Reply) Text() string {
	var result struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(r.Result, &result) != nil || len(result.Content) == 0 {
		return ""
	}
	return result.Content[0].Text
}

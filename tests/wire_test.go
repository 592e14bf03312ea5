package tests

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/sse"
)

// message is a JSON-RPC message as a client reads it.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    struct {
		Server    string `json:"server"`
		Reason    string `json:"reason"`
		Retryable bool   `json:"retryable"`
	} `json:"data"`
}

// toolResult is the result of a tools/call.
type toolResult struct {
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent"`
	IsError           bool            `json:"isError"`
}

// text joins the text blocks.
func (r toolResult) text() string {
	var texts []string
	for _, c := range r.Content {
		if c.Type == "text" {
			texts = append(texts, c.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// answer is the structuredContent of process_query as far as tests look at it.
type answer struct {
	Answer   string   `json:"answer"`
	Degraded bool     `json:"degraded"`
	Warnings []string `json:"warnings"`
	Plan     struct {
		Source string `json:"source"`
		Steps  []struct {
			ID        string          `json:"id"`
			Tool      string          `json:"tool"`
			Server    string          `json:"server"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"steps"`
	} `json:"plan"`
	Steps []step `json:"steps"`
}

// step is what came of a step of a plan. Times are milliseconds.
type step struct {
	ID      string          `json:"id"`
	Server  string          `json:"server"`
	Success bool            `json:"success"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
	} `json:"error"`
	Attempts int     `json:"attempts"`
	Started  float64 `json:"started_ms"`
	Duration float64 `json:"duration_ms"`
}

// post sends a message to a URL. seen gets the notifications that come before the response, as they come;
// nil asks for none.
func post(t *testing.T, url string, body any, seen func(message)) message {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(encode(t, body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if seen != nil {
		req.Header.Set("Accept", "application/json, text/event-stream")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("posting to %s: %v", url, err)
	}
	defer resp.Body.Close()
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media != "text/event-stream" {
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("reading the answer: %v", err)
		}
		return decode[message](t, raw)
	}
	events := sse.NewReader(resp.Body, 64<<20)
	defer events.Free()
	for {
		e, err := events.Next()
		if err != nil {
			t.Fatalf("the event stream ended without a response: %v", err)
		}
		if len(e.Data) == 0 {
			continue // it only has an id
		}
		m := decode[message](t, e.Data)
		if m.Method == "" {
			return m
		}
		if seen != nil {
			seen(m)
		}
	}
}

// call calls a tool of the router and fails the test if that is answered with an error.
func (r *router) call(tool string, arguments any) toolResult {
	r.t.Helper()
	m := r.tryCall(tool, arguments, nil)
	if m.Error != nil {
		r.t.Fatalf("calling %s: got error %+v, want a result", tool, *m.Error)
	}
	return decode[toolResult](r.t, m.Result)
}

// tryCall calls a tool and returns the response. With seen it asks for progress.
func (r *router) tryCall(tool string, arguments any, seen func(message)) message {
	r.t.Helper()
	params := map[string]any{"name": tool, "arguments": arguments}
	if seen != nil {
		params["_meta"] = map[string]any{"progressToken": "p"}
	}
	return post(r.t, r.url+"/mcp", request(1, "tools/call", params), seen)
}

// run calls a tool of a server through the tool run.
func (r *router) run(tool string, parameters any) toolResult {
	r.t.Helper()
	return r.call("run", map[string]any{"tool": tool, "parameters": parameters})
}

func request(id any, method string, params any) map[string]any {
	return map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// decode reads JSON and shows it if it is none.
func decode[T any](t *testing.T, raw []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("got %q, want JSON for %T: %v", raw, v, err)
	}
	return v
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

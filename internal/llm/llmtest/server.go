// Package llmtest is a scripted model behind a real HTTP server on loopback. It speaks Chat Completions, the
// Responses API, the Messages API of Anthropic and Embeddings, streams at a given pace, fails in the ways real
// endpoints fail, and keeps what it was asked.
//
// Rules are tried in the order of their addition; the first one whose condition holds answers. It gives its replies
// one after another and repeats the last one. A request without a rule gets HTTP 404. A Server is safe for concurrent
// use. Close waits until no request is being answered.
package llmtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// TB is the part of testing.TB that New needs.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Limits of a Server.
const (
	maxBody     = 16 << 20
	maxRecorded = 1000 // requests; older ones are forgotten
)

// Server is a scripted model.
type Server struct {
	BaseURL string // for llm.Config, ends in /v1

	http    *http.Server
	stop    context.CancelFunc
	serving sync.WaitGroup

	mu       sync.Mutex
	rules    []*rule
	requests []Request
}

type rule struct {
	when    func(Request) bool
	replies []Reply
	script  func(Request) (Reply, bool) // instead of when and replies
}

// New starts a Server that ends with the test.
func New(tb TB) *Server {
	tb.Helper()
	s, err := Start("127.0.0.1:0")
	if err != nil {
		tb.Fatalf("starting the scripted model: %v", err)
	}
	tb.Cleanup(s.Close)
	return s
}

// Start starts a Server at an address such as 127.0.0.1:9300; port 0 picks a free one.
func Start(addr string) (*Server, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("starting the scripted model: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{BaseURL: "http://" + listener.Addr().String() + "/v1", stop: stop}
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second,
	}
	s.serving.Go(func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			stop()
		}
	})
	return s, nil
}

// Close cancels running responses and waits for them.
func (s *Server) Close() {
	s.stop()
	_ = s.http.Close() // closes listener and connections; there is nobody to tell
	s.serving.Wait()
}

// Answer adds a rule for every request.
func (s *Server) Answer(replies ...Reply) { s.When(nil, replies...) }

// When adds a rule for requests that satisfy when; nil matches all.
func (s *Server) When(when func(Request) bool, replies ...Reply) {
	if len(replies) == 0 {
		replies = []Reply{{}}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, &rule{when: when, replies: slices.Clone(replies)})
}

// Script adds a rule that computes its replies; false passes the request to the next rule. Calls are serialized.
func (s *Server) Script(script func(Request) (Reply, bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, &rule{script: script})
}

// Reset removes all rules and recorded requests.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules, s.requests = nil, nil
}

// Requests returns the recorded requests, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Request is a recorded request.
type Request struct {
	At     time.Time
	Path   string // with the query
	Header http.Header
	Body   []byte

	Model  string
	Stream bool
	Form   string // type of the response format: "", json_schema, json_object
	Strict bool   // of a json_schema
	System string // the instructions
	Users  []string
	Text   string   // all text for the model, without roles
	Inputs []string // texts to embed
	Tools  []string // names of the tools that the model may call
}

// Responses reports whether the request came over the Responses API.
func (r Request) Responses() bool {
	return r.endpoint("/responses")
}

// Embeddings reports whether the request asks for embeddings.
func (r Request) Embeddings() bool { return r.endpoint("/embeddings") }

func (r Request) endpoint(name string) bool {
	path, _, _ := strings.Cut(r.Path, "?")
	return strings.HasSuffix(path, name)
}

// Has reports whether the body has a parameter at its top level.
func (r Request) Has(parameter string) bool {
	var body map[string]json.RawMessage
	_ = json.Unmarshal(r.Body, &body) // no object has no parameters
	_, ok := body[parameter]
	return ok
}

// Contains returns a condition: the model's text contains the given text.
func Contains(text string) func(Request) bool {
	return func(r Request) bool { return strings.Contains(r.Text, text) }
}

// Structured reports whether a request asks for JSON, which distinguishes planning from answering.
func Structured(r Request) bool { return r.Form != "" }

type wireMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type wireFormat struct {
	Type       string `json:"type"`
	Strict     bool   `json:"strict"`
	JSONSchema struct {
		Strict bool `json:"strict"`
	} `json:"json_schema"`
}

func parse(r *http.Request, body []byte) (Request, error) {
	req := Request{At: time.Now(), Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body}
	var wire struct {
		Model        string          `json:"model"`
		Stream       bool            `json:"stream"`
		Messages     []wireMessage   `json:"messages"`
		Instructions string          `json:"instructions"`
		System       json.RawMessage `json:"system"`
		Tools        []wireTool      `json:"tools"`
		OutputConfig struct {
			Format wireFormat `json:"format"`
		} `json:"output_config"`
		Input          json.RawMessage `json:"input"`
		ResponseFormat wireFormat      `json:"response_format"`
		Text           struct {
			Format wireFormat `json:"format"`
		} `json:"text"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return req, err
	}
	format := wire.ResponseFormat
	switch {
	case req.Embeddings():
		if err := json.Unmarshal(wire.Input, &req.Inputs); err != nil {
			return req, err
		}
	case req.Messages():
		format = wire.OutputConfig.Format
		format.Strict = format.Type != ""
		wire.Instructions = blocks(wire.System)
	case req.Responses():
		format = wire.Text.Format
		if err := json.Unmarshal(wire.Input, &wire.Messages); err != nil {
			return req, err
		}
	}
	req.Model, req.Stream, req.System = wire.Model, wire.Stream, wire.Instructions
	req.Tools = names(wire.Tools)
	req.Form, req.Strict = format.Type, format.Strict || format.JSONSchema.Strict
	all := []string{req.System}
	for _, m := range wire.Messages {
		text := blocks(m.Content)
		all = append(all, text)
		switch m.Role {
		case "system", "developer":
			req.System += text
		case "user":
			req.Users = append(req.Users, text)
		}
	}
	req.Text = strings.Join(all, "\n")
	return req, nil
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.serving.Add(1)
	defer s.serving.Done()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		refuse(w, http.StatusBadRequest, "the body cannot be read: "+err.Error(), "")
		return
	}
	req, err := parse(r, body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "the body is not JSON of the expected form: "+err.Error(), "")
		return
	}
	reply, ok := s.pick(req)
	if !ok {
		refuse(w, http.StatusNotFound, "no rule of the script takes this request", "")
		return
	}
	reply.write(w, r, req)
}

// reply returns the next reply of the rule if the rule matches the request.
func (r *rule) reply(req Request) (Reply, bool) {
	if r.script != nil {
		return r.script(req)
	}
	return r.replies[0], r.when == nil || r.when(req)
}

// pick records the request and returns the next reply of the first matching rule.
func (s *Server) pick(req Request) (Reply, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) == maxRecorded {
		s.requests = s.requests[1:]
	}
	s.requests = append(s.requests, req)
	for _, rule := range s.rules {
		reply, ok := rule.reply(req)
		if !ok {
			continue
		}
		if parameter, refused := reply.refuses(req); refused {
			return Reply{Status: http.StatusBadRequest, refused: parameter}, true
		}
		if len(rule.replies) > 1 {
			rule.replies = rule.replies[1:]
		}
		return reply, true
	}
	return Reply{}, false
}

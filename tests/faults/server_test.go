package faults

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// serverFaults are those of a server over streamable HTTP.
func serverFaults() []fault {
	const lost, proto = "-32000 outcome_unknown, then result", "-32000 protocol, then result"
	return []fault{
		{name: "half an event, then the stream ends", outcome: lost, run: broken(func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) {
			mcptest.BeginEvents(w)
			raw := "data: " + m.Response(`{"content":[]}`)
			_, _ = io.WriteString(w, raw[:len(raw)/2])
		})},
		{name: "half an event, then the connection breaks", outcome: lost, run: broken(func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) {
			mcptest.BeginEvents(w)
			_, _ = io.WriteString(w, `data: {"jsonrpc":"2.0",`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})},
		{name: "the stream of a call ends without a response", outcome: lost, run: broken(func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) {
			mcptest.BeginEvents(w)
			mcptest.WriteEvent(w, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"bye"}}`)
		})},
		{name: "an answer of 500 to a call", outcome: lost, run: broken(func(w http.ResponseWriter, _ *http.Request, _ mcptest.Message) {
			w.WriteHeader(http.StatusInternalServerError)
		})},
		{name: "an event of 128 MiB", outcome: "-32000 too_large, then result", run: broken(func(w http.ResponseWriter, _ *http.Request, _ mcptest.Message) {
			mcptest.BeginEvents(w)
			_, _ = io.WriteString(w, "data: ")
			flood(w)
		})},
		{name: "a JSON body of 128 MiB", outcome: "-32000 too_large, then result", run: broken(func(w http.ResponseWriter, _ *http.Request, _ mcptest.Message) {
			w.Header().Set("Content-Type", "application/json")
			flood(w)
		})},
		{name: "a response with invalid UTF-8", outcome: proto, run: body(`{"jsonrpc":"2.0","id":ID,"result":{"text":"` + "\xff" + `"}}`)},
		{name: "a response nested a million deep", outcome: proto, run: body(`{"jsonrpc":"2.0","id":ID,"result":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + `}`)},
		{name: "a response with a member twice", outcome: proto, run: body(`{"jsonrpc":"2.0","id":ID,"result":{},"result":{}}`)},
		{name: "a response with a member in two cases", outcome: proto, run: body(`{"jsonrpc":"2.0","id":ID,"result":{},"Result":{}}`)},
		{name: "a response with the id of another call", outcome: proto, run: body(`{"jsonrpc":"2.0","id":1ID,"result":{}}`)},
		{name: "an HTML page instead of a response", outcome: proto, run: broken(func(w http.ResponseWriter, _ *http.Request, _ mcptest.Message) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<!doctype html><title>Sign in</title>")
		})},
		{name: "10,000 progress notifications at once", outcome: "result, then result", run: broken(func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) {
			mcptest.BeginEvents(w)
			for n := range 10_000 {
				fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s,\"progress\":%d}}\n\n", m.Call().Meta.Token, n+1)
			}
			mcptest.WriteEvent(w, m.Response(`{"content":[]}`))
		})},
		{name: "401 in the middle of a session", outcome: "-32000 unauthorized, then result", run: broken(func(w http.ResponseWriter, _ *http.Request, _ mcptest.Message) {
			w.WriteHeader(http.StatusUnauthorized)
		})},
		{name: "a redirect to a private address", outcome: "-32000 protocol, then result", run: redirected},
		{name: "404 for the session: the server was restarted", outcome: "result, then result", run: func(w *world) string {
			s := &mcptest.Server{}
			w.start(nil, w.serve(subject, s))
			w.ready()
			s.Forget()
			return w.write("write", 0).Outcome() + ", then " + w.write("slow", 0).Outcome()
		}},
		{name: "the definition of a tool changes", outcome: "the new definition is listed, then result", run: func(w *world) string {
			s := &mcptest.Server{}
			w.start(nil, w.serve(subject, s))
			w.ready()
			const added = "No longer what it was"
			s.SetTools(strings.Replace(mcptest.Tools, "Writes a key", added, 1))
			w.wait("the new definition", func() bool {
				return strings.Contains(string(w.within(ample, w.list).Result), added)
			})
			return "the new definition is listed, then " + w.write("write", 0).Outcome()
		}},
		{name: "a definition that is of no use", outcome: "the other tools are listed, then result", run: func(w *world) string {
			s := &mcptest.Server{}
			s.SetTools(strings.Replace(mcptest.Tools, `"name":"pid"`, `"name":7`, 1))
			w.start(nil, w.serve(subject, s))
			w.ready()
			if r := w.within(ample, w.list); strings.Count(string(r.Result), subject+"__") != 5 {
				return string(r.Result)
			}
			return "the other tools are listed, then " + w.write("write", 0).Outcome()
		}},
	}
}

// broken calls write while the subject misbehaves, and again when it no longer does.
func broken(misbehave func(rw http.ResponseWriter, r *http.Request, m mcptest.Message)) func(w *world) string {
	return func(w *world) string {
		w.start(nil, w.serve(subject, w.breaking(&mcptest.Server{}, misbehave)))
		w.ready()
		return w.brokenWrite()
	}
}

func (w *world) brokenWrite() string {
	w.broken.Store(true)
	got := w.write("write", 0)
	w.broken.Store(false)
	if got.After > 0 {
		w.t.Errorf("got %d messages after the response, want none", got.After)
	}
	return got.Outcome() + ", then " + w.write("write", 0).Outcome()
}

// body answers with a JSON body in which ID stands for the id of the call.
func body(raw string) func(w *world) string {
	return broken(func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, strings.Replace(raw, "ID", string(m.ID), 1))
	})
}

// flood writes a line of 128 MiB, unless the reader leaves before.
func flood(w io.Writer) {
	block := strings.Repeat("x", 1<<20)
	for range longLine / len(block) {
		if _, err := io.WriteString(w, block); err != nil {
			return
		}
	}
}

// redirected has the subject redirect to another server, which nobody may follow it to.
func redirected(w *world) string {
	var visits atomic.Int64
	private := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	w.t.Cleanup(private.Close)
	got := broken(func(rw http.ResponseWriter, r *http.Request, _ mcptest.Message) {
		http.Redirect(rw, r, private.URL, http.StatusTemporaryRedirect)
	})(w)
	if n := visits.Load(); n > 0 {
		w.t.Errorf("requests at the address redirected to: got %d, want none", n)
	}
	return got
}

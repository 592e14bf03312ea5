package faults

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// refusalFaults are answers of a server, or of a proxy before it, that say little about the request.
func refusalFaults() []fault {
	return []fault{
		{name: "503 after a write: a proxy lost its server", outcome: "-32000 outcome_unknown, then result", run: broken(func(w http.ResponseWriter, _ *http.Request, _ mcptest.Message) {
			w.WriteHeader(http.StatusServiceUnavailable)
		})},
		{name: "a vendor's method whose answer is lost", outcome: "-32000 outcome_unknown, then result", run: vendorMethod},
		{name: "400 with another id to ten calls", outcome: "-32602 each in one session, then result", run: badRequests},
		{name: "401 during the upload", outcome: "-32000 unauthorized, then result", run: hasty("401 Unauthorized")},
		{name: "413 during the upload", outcome: "-32000 too_large, then result", run: hasty("413 Content Too Large")},
	}
}

// vendorMethod has a method that no specification knows write a key and lose its answer.
func vendorMethod(w *world) string {
	s := &mcptest.Server{OnHTTP: func(_ http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
		if m.Method != "vendor/pay" {
			return false
		}
		if err := w.ledger.Add(m.Key()); err != nil {
			w.t.Error(err)
		}
		panic(http.ErrAbortHandler)
	}}
	w.start(nil, w.serve(subject, s))
	w.ready()
	c := &mcptest.Client{URL: w.base + "/servers/" + subject + "/mcp", HTTP: w.http}
	key := w.key()
	r := w.within(ample, func(ctx context.Context) mcptest.Reply {
		return c.Do(ctx, "vendor/pay", fmt.Sprintf(`{"arguments":{"key":%q}}`, key))
	})
	w.done(key, r)
	return r.Outcome() + ", then " + w.write("write", 0).Outcome()
}

// badRequests has calls refused as some servers refuse arguments that do not fit.
func badRequests(w *world) string {
	s := w.breaking(&mcptest.Server{}, func(rw http.ResponseWriter, _ *http.Request, _ mcptest.Message) {
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(rw, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32602,"message":"no"}}`)
	})
	var sessions atomic.Int64
	misbehave := s.OnHTTP
	s.OnHTTP = func(rw http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		if m.Method == "initialize" {
			sessions.Add(1)
		}
		return misbehave(rw, r, m)
	}
	w.start(nil, w.serve(subject, s))
	w.ready()
	before := sessions.Load()
	w.broken.Store(true)
	outcomes := make([]string, 10)
	var wg sync.WaitGroup
	for i := range outcomes {
		wg.Go(func() { outcomes[i] = w.write("write", 0).Outcome() })
	}
	wg.Wait()
	w.broken.Store(false)
	for _, got := range outcomes {
		if got != outcomes[0] {
			return strings.Join(outcomes, ", ")
		}
	}
	after := w.write("write", 0).Outcome()
	if n := sessions.Load() - before; n > 0 {
		return fmt.Sprintf("%s each in %d more sessions, then %s", outcomes[0], n, after)
	}
	return outcomes[0] + " each in one session, then " + after
}

// hasty refuses a call before it has read the arguments, and closes the connection.
func hasty(status string) func(w *world) string {
	return func(w *world) string {
		s := &mcptest.Server{Ledger: w.ledger}
		srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if !w.broken.Load() || r.ContentLength < 1<<20 {
				s.ServeHTTP(rw, r)
				return
			}
			nc, _, err := http.NewResponseController(rw).Hijack()
			if err != nil {
				panic(err)
			}
			_, _ = io.WriteString(nc, "HTTP/1.1 "+status+"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
			_ = nc.Close() // the rest of the arguments is lost
		}))
		w.t.Cleanup(srv.Close)
		w.start(nil, downstream.ServerConfig{Name: subject, Type: downstream.TransportHTTP, URL: srv.URL})
		w.ready()
		w.broken.Store(true)
		key := w.key()
		got := w.call("write", fmt.Sprintf(`{"key":%q,"text":%q}`, key, strings.Repeat("x", 3<<20)))
		w.done(key, got)
		w.broken.Store(false)
		return got.Outcome() + ", then " + w.write("write", 0).Outcome()
	}
}

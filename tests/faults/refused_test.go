package faults

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// refusalFaults are answers of a server, or of a proxy before it, that say little about the request.
func refusalFaults() []fault {
	return []fault{
		{name: "503 after a write: a proxy lost its server", outcome: "-32000 outcome_unknown, then result", run: broken(func(w http.ResponseWriter, _ *http.Request, _ mcptest.Message) {
			w.WriteHeader(http.StatusServiceUnavailable)
		})},
		{name: "401 during the upload", outcome: "-32000 unauthorized, then result", run: hasty("401 Unauthorized")},
		{name: "413 during the upload", outcome: "-32000 too_large, then result", run: hasty("413 Content Too Large")},
	}
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

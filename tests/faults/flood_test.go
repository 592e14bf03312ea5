package faults

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// floodFaults are those of clients that open sessions as fast as they can.
func floodFaults() []fault {
	return []fault{
		{name: "1,000 initialize without a key", outcome: "200, no session; a newcomer: result, then result", run: func(w *world) string {
			w.http.Transport = keyed{w.http.Transport, theKey}
			w.start(func(o *app.Options) {
				o.Config.Limits.Sessions = 10
				o.Config.Auth.APIKeys = []auth.KeyConfig{{Name: "test", Key: redact.Secret(theKey)}}
			}, w.serve(subject, &mcptest.Server{}))
			w.ready()
			status := w.flood(1000, nil)
			return fmt.Sprintf("%s, no session; a newcomer: %s", status, w.newcomer())
		}},
		{name: "a caller that opens sessions until there are no more", outcome: "503; a newcomer: result, then result", run: func(w *world) string {
			w.start(func(o *app.Options) {
				o.Config.Limits.Sessions = 100
				o.Config.TrustedProxies = []string{"127.0.0.1"}
			}, w.serve(subject, &mcptest.Server{}))
			w.ready()
			status := w.flood(200, http.Header{"X-Forwarded-For": {"203.0.113.9"}})
			return status + "; a newcomer: " + w.newcomer()
		}},
	}
}

const theKey = "key-of-the-test"

// flood sends so many initialize and returns the status of the last.
func (w *world) flood(n int, header http.Header) (status string) {
	w.t.Helper()
	c := &http.Client{Transport: &http.Transport{}}
	defer c.CloseIdleConnections()
	for range n {
		r, err := http.NewRequest(http.MethodPost, w.base+"/mcp", strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"flood","version":"1"}}}`))
		if err != nil {
			w.t.Fatal(err)
		}
		for name, values := range header {
			r.Header[name] = values
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := c.Do(r)
		if err != nil {
			w.t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body) // only the status counts
		resp.Body.Close()
		status = fmt.Sprint(resp.StatusCode)
	}
	return status
}

// newcomer opens a session and calls a tool in it; then the world's own client calls one.
func (w *world) newcomer() string {
	w.t.Helper()
	c := w.dial()
	first := w.within(ample, func(ctx context.Context) mcptest.Reply { return c.Call(ctx, subject+"__echo", `{}`) })
	return first.Outcome() + ", then " + w.write("write", 0).Outcome()
}

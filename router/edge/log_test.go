package edge_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// Refusals with an HTTP error are logged as messages too.
func TestRefusalsAreLogged(t *testing.T) {
	var log mcptest.Log
	w := newWire(t, edge.Options{Logger: slog.New(slog.NewJSONHandler(&log,
		&slog.HandlerOptions{Level: jsonrpc.LevelTrace}))})
	for _, tt := range []struct{ method, path, body, part string }{
		{"POST", "/mcp", `{{{`, `-32700`}, {"PUT", "/mcp", ``, `Method not allowed`},
		{"POST", "/messages/?session_id=none", `{}`, `Session not found`},
	} {
		w.do(context.Background(), tt.method, tt.path, tt.body, nil)
		if !log.Has(tt.part) {
			t.Errorf("%s %s: the log lacks %s", tt.method, tt.path, tt.part)
		}
	}
}

// At level trace every message is logged without its key. At level debug only claimed session ids are.
func TestLogs(t *testing.T) {
	const trace = slog.Level(-8)
	for _, level := range []slog.Level{trace, slog.LevelDebug, slog.LevelInfo} {
		var log mcptest.Log
		w := newWire(t, edge.Options{Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: level}))})
		p := newStdio(t, w.edge, w.srv)
		p.send(`{"jsonrpc":"2.0","id":"in","method":"tools/call","params":{"name":"burst","arguments":{"n":1},` +
			`"_meta":{"api_key":"hidden-key","session_id":"s\n1","progressToken":"out"}}}`)
		p.line()
		p.line()
		p.finish()
		w.post(call("8", "echo", `"over http"`), header{"Authorization": "Bearer hidden-key"})
		for text, from := range map[string]slog.Level{
			`id\":\"in\",\"method`: trace, `progressToken\":\"out\",\"progress\":0`: trace,
			`result\":{\"done`: trace, `echo\":\"over http`: trace, `"session_id":"s\\n1"`: slog.LevelDebug,
		} {
			if got, want := log.Has(text), level <= from; got != want {
				t.Errorf("level %v: the log has %s: %v, want %v", level, text, got, want)
			}
		}
		if log.Has("hidden-key") {
			t.Errorf("level %v: the log has a key", level)
		}
	}
}

// Log lines cannot be forged.
func TestLogInjection(t *testing.T) {
	var log mcptest.Log
	w := newWire(t, edge.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	w.post(cancelOf(`"a\nlevel=ERROR\u001b[31m"`, "null"), w.open("2025-11-25"))
	if got := log.String(); strings.Count(got, "\n") != 1 || strings.Contains(got, "\x1b") {
		t.Errorf("got %q, want one line without control characters", got)
	}
}

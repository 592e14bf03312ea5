package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/telemetry"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// asChild makes the test binary a downstream server on stdio.
const asChild = "NEXUS_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		newPeer(floodTool(), echoTool("echo")).ServeLines(os.Stdin, os.Stdout)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// deadline bounds everything that a test waits for.
const deadline = 20 * time.Second

// running is an App that serves a test.
type running struct {
	*app.App
	t    *testing.T
	base string // http://127.0.0.1:PORT
	logs *logs
	ends error // with which Stop is to end

	level *slog.LevelVar
	opts  app.Options
}

// start starts an App on loopback, changed as the test wants it, and stops it with the test.
func start(t *testing.T, change func(*app.Options)) *running {
	t.Helper()
	r := prepare(t, change)
	if err := r.Listen(t.Context()); err != nil {
		t.Fatalf("Listen: got %v, want nil", err)
	}
	r.base = "http://" + r.Addr()
	return r
}

// prepare makes an App that nobody can reach yet.
func prepare(t *testing.T, change func(*app.Options)) *running {
	t.Helper()
	r := &running{t: t, logs: &logs{}}
	opts := app.Options{Config: config.Default(), Version: "1.2.3", Mask: &redact.Masker{}}
	opts.Config.Listen = "127.0.0.1:0"
	opts.Config.State = t.TempDir()
	opts.Config.Log.Level = "debug"
	opts.Config.Execution.RetryDelay = 10 * time.Millisecond
	if change != nil {
		change(&opts)
	}
	var err error
	if opts.Logger, r.level, err = telemetry.NewLogger(telemetry.LogConfig{Level: opts.Config.Log.Level, Format: "json"}, r.logs, opts.Mask); err != nil {
		t.Fatal(err)
	}
	opts.Level, r.opts = r.level, opts
	if r.App, err = app.New(t.Context(), opts); err != nil {
		t.Fatalf("New: got %v, want nil", err)
	}
	t.Cleanup(func() { r.stop(5 * time.Second) })
	return r
}

// stop stops the App within the grace period.
func (r *running) stop(grace time.Duration) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if err := r.Stop(ctx); !errors.Is(err, r.ends) {
		r.t.Errorf("Stop: got %v, want %v", err, r.ends)
	}
}

// server configures a downstream server over streamable HTTP.
func server(name, url string) downstream.ServerConfig {
	return downstream.ServerConfig{Name: name, Type: downstream.TransportHTTP, URL: url}
}

// model makes the scripted model the planner and the synthesizer.
func model(o *app.Options, m *llmtest.Server) {
	o.Config.LLM = &config.LLM{Planner: llm.Config{BaseURL: m.BaseURL, Model: "stub", Timeout: 5 * time.Second}}
}

// scripted is a model that plans as given, one plan a round, and answers with the text.
func scripted(t *testing.T, answer string, plans ...string) *llmtest.Server {
	t.Helper()
	m := llmtest.New(t)
	var replies []llmtest.Reply
	for _, p := range plans {
		replies = append(replies, llmtest.Reply{Text: p, Chunk: len(p)})
	}
	if len(replies) > 0 {
		m.When(llmtest.Structured, replies...)
	}
	m.Answer(llmtest.Reply{Text: answer, Chunk: len(answer)})
	return m
}

// logs keeps the log of an App.
type logs struct{ mcptest.Log }

// line returns the attributes of the first line whose message starts with prefix, nil if there is none.
func (l *logs) line(prefix string) map[string]any {
	for line := range strings.SplitSeq(l.String(), "\n") {
		var record map[string]any
		if json.Unmarshal([]byte(line), &record) != nil {
			continue
		}
		if message, _ := record[slog.MessageKey].(string); strings.HasPrefix(message, prefix) {
			return record
		}
	}
	return nil
}

// want fails the test unless a line starts with prefix.
func (l *logs) want(t *testing.T, prefix string) map[string]any {
	t.Helper()
	record := l.line(prefix)
	if record == nil {
		t.Errorf("log: got no line that starts with %q, want one", prefix)
	}
	return record
}

// quote writes a JSON string.
func quote(s string) string {
	b, _ := json.Marshal(s) // strings always marshal
	return string(b)
}

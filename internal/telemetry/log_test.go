package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

func TestNewLogger(t *testing.T) {
	for _, cfg := range []LogConfig{{"loud", "text"}, {"info", "xml"}, {}} {
		if _, _, err := NewLogger(cfg, &bytes.Buffer{}, nil); err == nil {
			t.Errorf("%+v: got no error, want one", cfg)
		}
	}
	var out bytes.Buffer
	log, level, err := NewLogger(DefaultLog(), &out, nil)
	if err != nil {
		t.Fatalf("the default: got %v, want no error", err)
	}
	log.Debug("hidden")
	level.Set(jsonrpc.LevelTrace)
	log.Log(context.Background(), jsonrpc.LevelTrace, "shown", "n", 1)
	if got := out.String(); strings.Contains(got, "hidden") || !strings.Contains(got, "level=TRACE msg=shown n=1\n") {
		t.Errorf("got %q, want the trace line only", got)
	}
	for name, want := range map[string]slog.Level{"trace": -8, "DEBUG": -4, "info": 0, "warn": 4, "error": 8} {
		if got, err := ParseLevel(name); err != nil || got != want {
			t.Errorf("ParseLevel(%s): got %v, %v, want %v", name, got, err, want)
		}
	}
}

type group struct{ key string }

func (g group) LogValue() slog.Value { return slog.GroupValue(slog.String("api_key", g.key)) }

func TestLogRedactsSecrets(t *testing.T) {
	const key = "s3cr3t-v4lue"
	attrs := map[string]any{
		"Authorization": "Bearer " + key,
		"x-api-key":     key,
		"api_key":       key,
		"APIKey":        []byte(key),
		"password":      key,
		"text":          "Authorization: Bearer " + key,
		"bare":          "bearer " + key + " was refused",
		"headers":       http.Header{"Authorization": {"Bearer " + key}, "X-Api-Key": {key}, "Accept": {"*/*"}},
		"message":       json.RawMessage(`{"params":{"_meta":{"api_key":"` + key + `","x":1}}}`),
		"bytes":         []byte(`{"api_key" : "` + key + `\" more"}`),
		"nested":        `{"text":"{\"api_key\":\"` + key + `\",\"a\":1}"}`,
		"cut":           `{"api_key":"` + key,
		"list":          `{"Authorization":["Bearer ` + key + `"]}`,
		"url":           &url.URL{Scheme: "https", User: url.UserPassword("me", key), Host: "example.com", RawQuery: "token=" + key},
		"query":         "POST https://example.com/v1?api_key=" + key + "&x=1",
		"error":         fmt.Errorf("calling: %w", errors.New("header X-API-Key: "+key)),
		"map":           map[string]string{"api_key": key},
		"struct":        struct{ Password string }{key},
		"secret":        redact.Secret(key),
		"typed":         redact.Secret(key),
		"logvaluer":     group{key},
		"grouped":       slog.GroupValue(slog.String("Cookie", key), slog.String("ok", "visible")),
	}
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		log, _, err := NewLogger(LogConfig{"trace", format}, &out, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range attrs {
			out.Reset()
			log.Info("message", name, value)
			log.With(name, value).WithGroup("g").Info("message", name, value)
			if got := out.String(); strings.Contains(got, key) || !strings.Contains(got, "[redacted]") {
				t.Errorf("%s, %s: got %q, want it redacted", format, name, got)
			}
		}
		out.Reset()
		log.WithGroup("api_key").Info("got api_key="+key, "value", key)
		if got := out.String(); strings.Contains(got, key) {
			t.Errorf("%s, message and group: got %q, want both redacted", format, got)
		}
	}
}

func TestLogKeepsTheRest(t *testing.T) {
	var out bytes.Buffer
	log, _, err := NewLogger(LogConfig{"info", "text"}, &out, nil)
	if err != nil {
		t.Fatal(err)
	}
	log.Info("Query processed in 1.23s", "query_length", 12, "took", 1500*time.Millisecond, "err", errors.New("no route"),
		"monkey", "banana", "author", "me", "progress_token", "abc", "who", struct{ A int }{1}, "nothing", nil,
		"url", "http://127.0.0.1:8002/mcp")
	want := ` msg="Query processed in 1.23s" query_length=12 took=1.5s err="no route" monkey=banana author=me progress_token=abc who={A:1} nothing=<nil> url=http://127.0.0.1:8002/mcp` + "\n"
	if got := out.String(); !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want it to end in %q", got, want)
	}
}

func TestJSONLogKeepsStructuresAndLetters(t *testing.T) {
	var out bytes.Buffer
	log, _, err := NewLogger(LogConfig{"info", "json"}, &out, nil)
	if err != nil {
		t.Fatal(err)
	}
	const words = "Grüße, 世界 — “ok” 🙂"
	log.Info(words, "who", struct{ A []int }{[]int{1, 2}}, "note", words)
	want := `"msg":"` + words + `","who":{"A":[1,2]},"note":"` + words + `"}` + "\n"
	if got := out.String(); !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want it to end in %q", got, want)
	}
	out.Reset()
	log.Info("message", "value", struct {
		Password string
		F        func()
	}{Password: "s3cr3t-v4lue"})
	if got := out.String(); strings.Contains(got, "s3cr3t") || !strings.Contains(got, "[redacted]") {
		t.Errorf("a value that JSON cannot hold: got %q, want it redacted", got)
	}
}

func TestLogEscapesControlCharacters(t *testing.T) {
	const evil = "a\nb\x1b[31mc\u0085d\u202ee\x7f"
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		log, _, err := NewLogger(LogConfig{"info", format}, &out, nil)
		if err != nil {
			t.Fatal(err)
		}
		log.Info("Cannot route cancellation for unknown request "+evil, "id", evil, "err", errors.New(evil))
		got := out.String()
		if strings.Count(got, "\n") != 1 || strings.ContainsAny(strings.TrimSuffix(got, "\n"), "\n\x1b\x7f\u0085\u202e") {
			t.Errorf("%s: got %q, want one line without control characters", format, got)
		}
	}
}

// Lines within a request have the ids of its trace, in both formats, also those of derived loggers.
func TestLogHasTraceIDs(t *testing.T) {
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	ctx := trace.ContextWithSpanContext(t.Context(), parent)
	for format, want := range map[string]string{
		"text": "msg=m server=a trace_id=01000000000000000000000000000000 span_id=0200000000000000\n",
		"json": `"msg":"m","server":"a","trace_id":"01000000000000000000000000000000","span_id":"0200000000000000"}` + "\n",
	} {
		var out bytes.Buffer
		log, _, err := NewLogger(LogConfig{"info", format}, &out, nil)
		if err != nil {
			t.Fatal(err)
		}
		log.With("server", "a").InfoContext(ctx, "m")
		if got := out.String(); !strings.HasSuffix(got, want) {
			t.Errorf("got %q, want it to end in %q", got, want)
		}
		out.Reset()
		log.Info("m")
		if got := out.String(); strings.Contains(got, "trace_id") {
			t.Errorf("without a trace: got %q, want no ids", got)
		}
	}
}

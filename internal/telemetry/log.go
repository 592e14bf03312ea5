package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"go.opentelemetry.io/otel/trace"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

// LogConfig controls the log.
type LogConfig struct {
	Level  string `yaml:"level"`  // trace, debug, info, warn or error
	Format string `yaml:"format"` // text or json
}

// DefaultLog returns the default: text at level info.
func DefaultLog() LogConfig { return LogConfig{Level: "info", Format: "text"} }

// ParseLevel parses trace, debug, info, warn or error.
func ParseLevel(name string) (slog.Level, error) {
	switch strings.ToLower(name) {
	case "trace":
		return jsonrpc.LevelTrace, nil
	case "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("log.level %q is not one of trace, debug, info, warn, error", name)
}

// NewLogger returns a logger that writes lines to w, and the variable that holds its level. It masks secrets and
// escapes control characters in messages and attributes, and adds trace_id and span_id from the context. mask may be
// nil.
func NewLogger(cfg LogConfig, w io.Writer, mask *redact.Masker) (*slog.Logger, *slog.LevelVar, error) {
	level, err := ParseLevel(cfg.Level)
	if err != nil {
		return nil, nil, err
	}
	variable := &slog.LevelVar{}
	variable.Set(level)
	options := &slog.HandlerOptions{Level: variable, ReplaceAttr: masking{mask}.replace}
	switch cfg.Format {
	case "text":
		return slog.New(traced{slog.NewTextHandler(w, options)}), variable, nil
	case "json":
		options.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
			if a = (masking{mask}).replace(groups, a); a.Value.Kind() == slog.KindString {
				a.Value = slog.StringValue(escape(a.Value.String()))
			}
			return a
		}
		return slog.New(traced{slog.NewJSONHandler(w, options)}), variable, nil
	}
	return nil, nil, fmt.Errorf("log.format %q is neither text nor json", cfg.Format)
}

// traced adds the trace and span ids of the context to records.
type traced struct{ slog.Handler }

// Handle implements slog.Handler.
func (t traced) Handle(ctx context.Context, r slog.Record) error {
	if c := trace.SpanContextFromContext(ctx); c.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", c.TraceID().String()), slog.String("span_id", c.SpanID().String()))
	}
	return t.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (t traced) WithAttrs(attrs []slog.Attr) slog.Handler { return traced{t.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (t traced) WithGroup(name string) slog.Handler { return traced{t.Handler.WithGroup(name)} }

// masking removes secrets from attributes.
type masking struct{ *redact.Masker }

// replace redacts one attribute and names the trace level.
func (m masking) replace(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.LevelKey {
		if level, ok := a.Value.Any().(slog.Level); ok && level == jsonrpc.LevelTrace {
			return slog.String(a.Key, "TRACE")
		}
		return a
	}
	if redact.Name(a.Key) || slices.ContainsFunc(groups, redact.Name) {
		return slog.String(a.Key, redact.Mark)
	}
	a.Value = m.value(a.Value)
	return a
}

// value redacts values that may hold secrets. Numbers and times are unchanged.
func (m masking) value(v slog.Value) slog.Value {
	switch v.Kind() {
	case slog.KindString:
		return slog.StringValue(m.Text(v.String()))
	case slog.KindAny:
	default:
		return v
	}
	switch x := v.Any().(type) {
	case nil, *slog.Source:
		return v
	case http.Header:
		return slog.StringValue(m.header(x))
	case error:
		return slog.StringValue(m.Text(x.Error()))
	case json.RawMessage:
		return slog.StringValue(m.Text(string(x)))
	case []byte:
		return slog.StringValue(m.Text(string(x)))
	case fmt.Stringer:
		return slog.StringValue(m.Text(x.String()))
	}
	text, err := json.Marshal(v.Any())
	if err != nil {
		return slog.StringValue(m.Text(fmt.Sprintf("%+v", v.Any())))
	}
	if clean := m.Text(string(text)); clean != string(text) {
		return slog.StringValue(clean)
	}
	return v
}

func (m masking) header(h http.Header) string {
	clean := make(map[string]string, len(h))
	for name, values := range h {
		if clean[name] = redact.Mark; !redact.Name(name) {
			clean[name] = m.Text(strings.Join(values, ", "))
		}
	}
	text, err := json.Marshal(clean)
	if err != nil {
		return redact.Mark
	}
	return string(text)
}

// escape escapes characters that terminals interpret and JSON does not escape: C1 controls, DEL and direction marks.
func escape(text string) string {
	dangerous := func(r rune) bool { return r >= 0x7f && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) }
	if !strings.ContainsFunc(text, dangerous) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if dangerous(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

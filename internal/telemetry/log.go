// Package telemetry provides the router's log, traces and metrics: [NewLogger], [Setup] and [NewMetrics].
//
// It redacts the secrets known to package redact in everything that it writes or exports. All its values are safe for
// concurrent use.
package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

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

// NewLogger returns a logger that writes lines to w, and the variable that holds its level. It redacts secrets and
// escapes control characters in messages and attributes, and adds trace_id and span_id from the context.
func NewLogger(cfg LogConfig, w io.Writer) (*slog.Logger, *slog.LevelVar, error) {
	level, err := ParseLevel(cfg.Level)
	if err != nil {
		return nil, nil, err
	}
	variable := &slog.LevelVar{}
	variable.Set(level)
	options := &slog.HandlerOptions{Level: variable, ReplaceAttr: replace}
	switch cfg.Format {
	case "text":
		return slog.New(traced{slog.NewTextHandler(w, options)}), variable, nil
	case "json":
		options.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
			if a = replace(groups, a); a.Value.Kind() == slog.KindString {
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

// replace redacts one attribute and names the trace level.
func replace(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.LevelKey {
		if level, ok := a.Value.Any().(slog.Level); ok && level == jsonrpc.LevelTrace {
			return slog.String(a.Key, "TRACE")
		}
		return a
	}
	if redact.Name(a.Key) || slices.ContainsFunc(groups, redact.Name) {
		return slog.String(a.Key, redact.Mark)
	}
	a.Value = redactValue(a.Value)
	return a
}

package telemetry

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"unicode"

	"github.com/agenticnexus/agenticnexus/internal/redact"
)

// redactValue redacts values that may hold secrets. Numbers and times are unchanged.
func redactValue(v slog.Value) slog.Value {
	switch v.Kind() {
	case slog.KindString:
		return slog.StringValue(redact.Text(v.String()))
	case slog.KindAny:
	default:
		return v
	}
	switch x := v.Any().(type) {
	case nil, *slog.Source:
		return v
	case http.Header:
		return slog.StringValue(redactHeader(x))
	case error:
		return slog.StringValue(redact.Text(x.Error()))
	case json.RawMessage:
		return slog.StringValue(redact.Text(string(x)))
	case []byte:
		return slog.StringValue(redact.Text(string(x)))
	case fmt.Stringer:
		return slog.StringValue(redact.Text(x.String()))
	}
	text, err := json.Marshal(v.Any())
	if err != nil {
		return slog.StringValue(redact.Text(fmt.Sprintf("%+v", v.Any())))
	}
	if clean := redact.Text(string(text)); clean != string(text) {
		return slog.StringValue(clean)
	}
	return v
}

func redactHeader(h http.Header) string {
	clean := make(map[string]string, len(h))
	for name, values := range h {
		if clean[name] = redact.Mark; !redact.Name(name) {
			clean[name] = redact.Text(strings.Join(values, ", "))
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

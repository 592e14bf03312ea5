// Package secret holds values that must not reach a log, an error or a trace.
package secret

import (
	"fmt"
	"io"
	"log/slog"
)

// String prints as "[redacted]" in every format, or as nothing if it is empty. Reveal returns the value. Do not use
// it in unexported fields: package fmt prints those without calling methods.
type String string

const redacted = "[redacted]"

// Reveal returns the secret itself. Call it only where the value goes onto the wire.
func (s String) Reveal() string { return string(s) }

// String implements fmt.Stringer.
func (s String) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// Format implements fmt.Formatter for verbs that do not call String.
func (s String) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue implements slog.LogValuer.
func (s String) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText implements encoding.TextMarshaler.
func (s String) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *String) UnmarshalText(b []byte) error {
	*s = String(b)
	return nil
}

package redact

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret prints as "[redacted]" in every format, or as nothing if it is empty. Reveal returns the value. Do not use
// it in unexported fields: package fmt prints those without calling methods.
type Secret string

// Reveal returns the secret itself. Call it only where the value goes onto the wire.
func (s Secret) Reveal() string { return string(s) }

// String implements fmt.Stringer.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return Mark
}

// Format implements fmt.Formatter for verbs that do not call String.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText implements encoding.TextMarshaler.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Secret) UnmarshalText(b []byte) error {
	*s = Secret(b)
	return nil
}

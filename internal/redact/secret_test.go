package redact_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/redact"
)

func TestSecretPrintsRedacted(t *testing.T) {
	const value = "hunter2"
	s := redact.Secret(value)
	outer := struct {
		Key  redact.Secret
		Keys map[string]redact.Secret
	}{s, map[string]redact.Secret{"a": s}}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10.3s"} {
		for _, v := range []any{s, &s, outer, []redact.Secret{s}} {
			if got := fmt.Sprintf(format, v); strings.Contains(got, value) || strings.Contains(got, fmt.Sprintf("%x", value)) {
				t.Errorf("Sprintf(%q, %T) = %q, which shows the value", format, v, got)
			}
		}
	}
	if got, want := fmt.Sprint(s), "[redacted]"; got != want {
		t.Errorf("Sprint = %q, want %q", got, want)
	}
	if got := fmt.Sprint(redact.Secret("")); got != "" {
		t.Errorf("Sprint of an empty secret = %q, want nothing", got)
	}
	encoded, err := json.Marshal(outer)
	if err != nil || strings.Contains(string(encoded), value) {
		t.Errorf("Marshal = %s, %v; want no value", encoded, err)
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "a", s, "b", outer)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "a", s, "b", outer)
	if strings.Contains(log.String(), value) || !strings.Contains(log.String(), "[redacted]") {
		t.Errorf("log = %s, want [redacted] for the value", log.String())
	}
}

func TestReveal(t *testing.T) {
	var s redact.Secret
	if err := json.Unmarshal([]byte(`"hunter2"`), &s); err != nil {
		t.Fatal(err)
	}
	if got := s.Reveal(); got != "hunter2" {
		t.Errorf("Reveal = %q, want hunter2", got)
	}
}

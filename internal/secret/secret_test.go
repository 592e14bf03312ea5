package secret_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/secret"
)

func TestStringPrintsRedacted(t *testing.T) {
	const value = "hunter2"
	s := secret.String(value)
	outer := struct {
		Key  secret.String
		Keys map[string]secret.String
	}{s, map[string]secret.String{"a": s}}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10.3s"} {
		for _, v := range []any{s, &s, outer, []secret.String{s}} {
			if got := fmt.Sprintf(format, v); strings.Contains(got, value) || strings.Contains(got, fmt.Sprintf("%x", value)) {
				t.Errorf("Sprintf(%q, %T) = %q, which shows the value", format, v, got)
			}
		}
	}
	if got, want := fmt.Sprint(s), "[redacted]"; got != want {
		t.Errorf("Sprint = %q, want %q", got, want)
	}
	if got := fmt.Sprint(secret.String("")); got != "" {
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
	var s secret.String
	if err := json.Unmarshal([]byte(`"hunter2"`), &s); err != nil {
		t.Fatal(err)
	}
	if got := s.Reveal(); got != "hunter2" {
		t.Errorf("Reveal = %q, want hunter2", got)
	}
}

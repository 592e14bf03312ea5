package safe_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/safe"
)

func TestRecover(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	run := func(f func()) (err error) {
		defer safe.Recover(logger, "testing", func(e error) { err = e })
		f()
		return nil
	}
	if err := run(func() {}); err != nil || log.Len() > 0 {
		t.Errorf("got %v and the log %q without a panic", err, &log)
	}
	err := run(func() { panic("out of order") })
	if err == nil || err.Error() != "internal error while testing" {
		t.Errorf("got %v, want an internal error", err)
	}
	for _, want := range []string{"level=ERROR", "doing=testing", "out of order", "safe_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log: got %q, want %q in it", &log, want)
		}
	}
}

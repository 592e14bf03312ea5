//go:build unix

package audit_test

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/audit"
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

// A log that nobody reads loses lines, tells how many, and delays no call.
func TestLog_Slow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	logs := &logbook{}
	l := audit.New(config(path), redact.Text, logs.logger())
	const calls = 10_000
	long := call()
	long.Tool, long.Server = strings.Repeat("x", 1<<10), strings.Repeat("y", 1<<10)
	slowest := time.Duration(0)
	for range calls {
		began := time.Now()
		if err := l.Begin(); err != nil {
			t.Fatal(err)
		}
		l.End(long, []byte("{}"))
		slowest = max(slowest, time.Since(began))
	}
	if slowest > 2*time.Second { // shorter ones are pauses of the scheduler: the disk never answers
		t.Errorf("a call waited for %v", slowest)
	}
	lost := l.Lost()
	if lost == 0 || lost >= calls || strings.Count(logs.String(), "cannot be written") != 1 {
		t.Fatalf("got %d lost, and the log %s, want some and one warning", lost, logs)
	}
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	done := make(chan string)
	go func() {
		var all strings.Builder
		for in := bufio.NewScanner(reader); in.Scan(); {
			all.WriteString(in.Text() + "\n")
			if strings.Contains(in.Text(), `"last"`) {
				break
			}
		}
		done <- all.String()
	}()
	until(t, "written again", func() bool { return strings.Contains(logs.String(), "written again") })
	end := call()
	end.Caller = "last"
	l.End(end, nil)
	place(t, copied, <-done)
	reader.Close()
	if r, err := audit.Verify(copied); err != nil || r.Lost != uint64(lost) || r.Lines+int(lost) != calls+1 {
		t.Errorf("got %+v, %v, want %d lost", r, err, lost)
	}
	if err := shut(l); err != nil {
		t.Error(err)
	}
}

// Close ends also if a write does not, and tells what is lost.
func TestLog_CloseBlocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	l := audit.New(config(path), redact.Text, slog.New(slog.DiscardHandler))
	record(t, l, 2000, "{}")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := l.Close(ctx); !errors.Is(err, audit.ErrLost) {
		t.Errorf("got %v, want the number of lost lines", err)
	}
}

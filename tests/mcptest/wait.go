package mcptest

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// Patience bounds what tests wait for. It is ample: only a test that fails waits so long.
const Patience = 30 * time.Second

// Eventually polls until ok holds, and fails the test if that takes too long. What says what is waited for. It polls
// less often the longer it waits, because what it waits for needs the processor, too.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	pause := time.Millisecond
	for end := time.Now().Add(Patience); !ok(); pause = min(2*pause, 50*time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v for this: %s", Patience, what)
		}
		time.Sleep(pause)
	}
}

// Log collects what a logger or a program writes. It may be read at any time. The zero value is ready.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// String returns all that was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Lines returns the lines that have all the parts.
func (l *Log) Lines(parts ...string) (all []string) {
lines:
	for line := range strings.Lines(l.String()) {
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue lines
			}
		}
		all = append(all, line)
	}
	return all
}

// Has reports whether a line has all the parts.
func (l *Log) Has(parts ...string) bool { return len(l.Lines(parts...)) > 0 }

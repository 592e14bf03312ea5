package downstream_test

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// term is a lease that can end.
type term struct{ over atomic.Bool }

func (l *term) Acts() error {
	if l.over.Load() {
		return errors.New("the lease has ended")
	}
	return nil
}

// Without its lease a server gets nothing, neither a call nor a session. A call that came too late goes to where the
// server runs then.
func TestLease(t *testing.T) {
	lease, s, l := &term{}, newServer(), &mcptest.Log{}
	o := pipes([]string{"work"}, s)
	o.Servers[0].Lease = lease
	o.Execution.RetryDelay = time.Hour
	o.Logger = slog.New(slog.NewTextHandler(l, nil))
	m := start(t, o)
	want := func(calls, sessions int) {
		t.Helper()
		if s.count("tools/call") != calls || s.count("initialize") != sessions {
			t.Errorf("got %d calls and %d sessions, want %d and %d", s.count("tools/call"), s.count("initialize"), calls, sessions)
		}
	}
	call := func() error { _, err := m.Call(t.Context(), request("work", "echo")); return err }
	if err := call(); err != nil {
		t.Fatal(err)
	}
	want(1, 1)
	lease.over.Store(true)
	late := make(chan error, 1)
	go func() { late <- call() }()
	mcptest.Eventually(t, "the call to be refused", func() bool { return l.Has("retrying call", "has lost the lease") })
	want(1, 1)
	m.Apply(pipes([]string{"work"}, s).Servers)
	if err := <-late; err != nil {
		t.Errorf("a call that came too late: %v", err)
	}
	want(2, 2)
}

//go:build unix

package link_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

func TestChildProcess(t *testing.T) {
	target := link.Target{Command: []string{os.Args[0]}, Env: map[string]redact.Secret{"LINK_TEST_CHILD": "1", "OWN": "x"}}
	t.Setenv("SECRET_OF_OURS", "hidden")

	t.Run("it sees no variables of ours", func(t *testing.T) {
		s := connect(t, target, &listener{}, 1<<20)
		got, err := call(t, s, "env")
		if err != nil {
			t.Fatal(err)
		}
		env := jsonrpc.Text(got.Result)
		if strings.Contains(env, "SECRET_OF_OURS") || !strings.Contains(env, "OWN=x") || !strings.Contains(env, "PATH=") {
			t.Errorf("got environment %q", env)
		}
	})
	t.Run("killed in mid-call", func(t *testing.T) {
		s := connect(t, target, &listener{}, 1<<20)
		got, err := call(t, s, "pid")
		if err != nil {
			t.Fatal(err)
		}
		var pid int
		fmt.Sscan(string(got.Result), &pid)
		done := make(chan error, 1)
		go func() { _, err := call(t, s, "hang"); done <- err }()
		mcptest.Eventually(t, "the call is in flight", func() bool { return s.InFlight() == 1 })
		// The request is with the child once it answers a later one.
		if _, err := call(t, s, "echo"); err != nil {
			t.Fatal(err)
		}
		syscall.Kill(pid, syscall.SIGKILL)
		select {
		case err := <-done:
			if f := failure(err); !f.MaybeDelivered || !f.Lost || f.Reason != reason.Disconnected {
				t.Errorf("got %v (%+v), want disconnected, delivered, lost", err, f)
			}
		case <-time.After(2 * time.Second):
			t.Error("the call did not end within 2 s")
		}
		s.Close()
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("the child is still there: %v", err)
		}
	})
}

// A child that does not end is killed when the time to close its session is up, even if it was already being
// ended more politely because it had closed its output.
func TestCloseWithinHurries(t *testing.T) {
	t.Parallel()
	target := link.Target{Command: []string{os.Args[0]}, Env: map[string]redact.Secret{"LINK_TEST_CHILD": "stubborn"}}
	fastest := time.Hour
	for range 3 { // a busy machine is not slow three times
		s := connect(t, target, &listener{}, 1<<20)
		got, err := call(t, s, "pid")
		if err != nil {
			t.Fatal(err)
		}
		var pid int
		fmt.Sscan(string(got.Result), &pid)
		if _, err := call(t, s, "mute"); err == nil {
			t.Fatal("got an answer of a child that has closed its output")
		}
		began := time.Now()
		s.CloseWithin(0)
		fastest = min(fastest, time.Since(began))
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("the child is still there: %v", err)
		}
	}
	if fastest > 3*time.Second { // being polite takes 4 s
		t.Errorf("CloseWithin(0) took %v, want next to nothing", fastest)
	}
}

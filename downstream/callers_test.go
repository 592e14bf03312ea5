package downstream_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// perCaller configures a server where callers log in themselves, and counts the sessions that are opened with it.
func perCaller(t *testing.T) (opts downstream.Options, opened *atomic.Int64) {
	opened = new(atomic.Int64)
	s := &mcptest.Server{OnHTTP: func(_ http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
		if m.Method == "initialize" {
			opened.Add(1)
		}
		return false
	}}
	opts, _ = authorizedBy(t, &mcptest.OAuth{}, downstream.TransportHTTP, s)
	opts.Servers[0].Auth.Scope = oauth.ScopePerCaller
	var err error
	if opts.Tokens, err = opts.Tokens.Sealed([]byte("secret")); err != nil {
		t.Fatal(err)
	}
	return opts, opened
}

// logInAs logs a caller in.
func logInAs(t *testing.T, opts downstream.Options, caller string) {
	t.Helper()
	own := opts
	own.Tokens = opts.Tokens.For(caller)
	logIn(t, own)
}

// callAs calls a tool for a caller.
func callAs(t *testing.T, m *downstream.Manager, caller string) error {
	t.Helper()
	r := request("hr", "echo")
	r.Login = caller
	_, err := m.Call(t.Context(), r)
	return err
}

// A request that names no caller, or one without a login, reaches nothing.
func TestCallerWithoutLogin(t *testing.T) {
	t.Parallel()
	opts, opened := perCaller(t)
	m := start(t, opts)
	logInAs(t, opts, "ann")
	for caller, want := range map[string]string{"": "each caller logs in", "bob": "log in at /login/hr of this router"} {
		if f := failureOf(callAs(t, m, caller)); f.Reason != reason.Unauthorized || !strings.Contains(f.Message, want) {
			t.Errorf("caller %q: got %v, want unauthorized: %s", caller, f, want)
		}
	}
	if got := opened.Load(); got != 0 {
		t.Errorf("got %d sessions, want none", got)
	}
	if err := callAs(t, m, "ann"); err != nil {
		t.Errorf("got %v, want the call of who has logged in to succeed", err)
	}
	if c, err := m.Catalog(t.Context()); err != nil || len(c.Of("hr")) > 0 || len(c.Missing) > 0 {
		t.Errorf("got %v, %v in the catalog of nobody, want no tools and no server missing", c, err)
	}
	if c, err := downstream.As(m, "ann").Catalog(t.Context()); err != nil || len(c.Of("hr")) < 2 {
		t.Errorf("got %v, %v in the catalog of ann, want her tools", c, err)
	}
	if st := m.Status()["hr"]; st.Status != downstream.StatePerCaller {
		t.Errorf("got the status %s, want %s", st.Status, downstream.StatePerCaller)
	}
}

// The sessions of the caller that was idle for longest are closed for those of others; its token stays.
func TestCallersAreBounded(t *testing.T) {
	t.Parallel()
	opts, opened := perCaller(t)
	m := start(t, opts)
	logInAs(t, opts, "ann")
	for round := range 2 {
		if err := callAs(t, m, "ann"); err != nil {
			t.Fatalf("round %d: got %v, want nil", round, err)
		}
		for i := range 1000 {
			if f := failureOf(callAs(t, m, fmt.Sprint("caller", i))); f.Reason != reason.Unauthorized {
				t.Fatalf("got %v, want unauthorized", f)
			}
		}
	}
	if got := opened.Load(); got != 2 {
		t.Errorf("got %d sessions of ann, want 2", got)
	}
}

// A call that waits for a login goes on in the session of who has logged in, and ends with the router.
func TestCallWaitsForLogin(t *testing.T) {
	t.Parallel()
	opts, _ := perCaller(t)
	m := start(t, opts)
	wait := func(ctx context.Context, tool string, then func()) error {
		asked := make(chan struct{})
		done := make(chan error, 1)
		go func() {
			r := request("hr", tool)
			r.Login, r.Logins = "ann", "http://router/login/"
			r.Ask = func(context.Context, downstream.ServerRequest) (result, rpcErr []byte) {
				close(asked)
				return []byte(`{"action":"accept"}`), nil
			}
			_, err := m.Call(ctx, r)
			done <- err
		}()
		select {
		case <-asked:
		case <-time.After(10 * time.Second):
			t.Fatal("nobody was asked")
		}
		then()
		return <-done
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("enough"))
	defer cancel()
	if err := wait(ctx, "echo", func() { <-ctx.Done() }); err == nil || err.Error() != "enough" {
		t.Errorf("got %v, want the cause of the context", err)
	}
	for _, tool := range []string{"echo", "login"} {
		dismissed := wait(t.Context(), tool, func() { downstream.DismissCallers(m) })
		if f := failureOf(dismissed); f.Reason != reason.Unauthorized || !strings.Contains(f.Message, "log in at http://router") {
			t.Errorf("%s, without a login: got %v, want where to log in", tool, dismissed)
		}
	}
	if err := wait(t.Context(), "echo", func() {
		logInAs(t, opts, "ann")
		downstream.LoginEnded(m, "hr", "ann", nil)
	}); err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

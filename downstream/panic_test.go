package downstream_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// A panic in a goroutine of a server is a failure of what it did, and nothing else.
func TestPanics(t *testing.T) {
	for _, tc := range []struct {
		name  string
		setup func(s *server, o *downstream.Options, r *downstream.Request, panics *atomic.Bool)
		check func(reply link.Reply, err error) bool
	}{
		{"connecting", func(s *server, _ *downstream.Options, _ *downstream.Request, panics *atomic.Bool) {
			s.dial = func(context.Context) error {
				if panics.Load() {
					panic("out of order")
				}
				return nil
			}
		}, func(_ link.Reply, err error) bool {
			return failureOf(err).Reason == reason.Unavailable && strings.Contains(err.Error(), "internal error")
		}},
		{"asking a client", func(s *server, _ *downstream.Options, r *downstream.Request, _ *atomic.Bool) {
			r.Tool, r.Params, r.Client = "ask", []byte(`{"name":"ask"}`), "c"
			r.Ask = func(context.Context, downstream.ServerRequest) (result, err []byte) { panic("out of order") }
		}, func(reply link.Reply, err error) bool { return err == nil && resultText(reply) == "error -32603" }},
		{"progress", func(s *server, _ *downstream.Options, r *downstream.Request, _ *atomic.Bool) {
			r.Tool, r.Params = "progress", []byte(`{"name":"progress"}`)
			r.Progress = func([]byte) { panic("out of order") }
		}, func(_ link.Reply, err error) bool { return failureOf(err).Reason == reason.OutcomeUnknown }},
		{"a notification", func(s *server, o *downstream.Options, _ *downstream.Request, _ *atomic.Bool) {
			o.OnNotification = func(downstream.Notification) { panic("out of order") }
			s.hello = func() string {
				s.say(`{"jsonrpc":"2.0","method":"notifications/x"}`)
				return ""
			}
		}, func(_ link.Reply, err error) bool { return err == nil }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(tool("echo"), tool("ask"), tool("progress"))
				var log mcptest.Log
				var panics atomic.Bool
				panics.Store(true)
				o := pipes([]string{"a"}, s)
				o.Logger = logger(&log)
				r := request("a", "echo")
				tc.setup(s, &o, r, &panics)
				m := start(t, o)
				defer m.Stop()
				if reply, err := m.Call(t.Context(), r); !tc.check(reply, err) {
					t.Errorf("got %s, %v", resultText(reply), err)
				}
				synctest.Wait()
				if !log.Has("level=ERROR", "recovered from a panic", "out of order") {
					t.Error("the log does not tell of the panic")
				}
				panics.Store(false)
				time.Sleep(time.Minute)
				if _, err := m.Call(t.Context(), request("a", "echo")); err != nil {
					t.Errorf("the next call: got %v", err)
				}
				if c := catalogOf(t, m); len(c.Missing) > 0 {
					t.Errorf("missing: %v", c.Missing)
				}
			})
		})
	}
}

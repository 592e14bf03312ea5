package downstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// Reconnect does not wait for the next attempt of supervision.
func TestReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, never := newServer(), newServer()
		well := away(s)
		well.Store(true)
		never.dial = func(context.Context) error { return errors.New("nobody there") }
		m := start(t, pipes([]string{"a", "never"}, s, never))
		catalogOf(t, m)
		well.Store(false)
		s.cut()
		time.Sleep(10 * time.Minute)
		attempts := never.connections()
		missing := catalogOf(t, m).Missing
		if len(missing) != 2 || m.Reconnect(t.Context(), missing) {
			t.Errorf("got %v or success, want both servers missing and neither back", missing)
		}
		item, ok, err := m.Find(t.Context(), "a", "", "tools/list", time.Time{}, func(item json.RawMessage) bool {
			return jsonrpc.Text(jsonrpc.Get(item, "name")) == "echo"
		})
		if !ok || err != nil {
			t.Errorf("Find: got %s, %v, want the item of the last list", item, err)
		}
		well.Store(true)
		if !m.Reconnect(t.Context(), missing) {
			t.Error("got failure, want the server back")
		}
		if got := names(catalogOf(t, m).See(nil)); got != "echo@a" {
			t.Errorf("got tools %q, want its tool", got)
		}
		if n := never.connections(); n > attempts+1 {
			t.Errorf("got %d attempts to reach the server that was never there, want none by Reconnect", n-attempts)
		}
		m.Stop()
	})
}

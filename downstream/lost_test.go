package downstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// The tools of a server that is lost are not listed but found by their names, so that a call of one connects anew.
func TestLookup_LostServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newServer(), newServer()
		wellA, wellB := away(a), away(b)
		wellA.Store(true)
		wellB.Store(true)
		m := start(t, pipes([]string{"a", "b"}, a, b))
		catalogOf(t, m)
		wellA.Store(false)
		a.cut()
		time.Sleep(time.Minute)
		c := catalogOf(t, m)
		if got := names(c.See(nil)); got != "echo@b" {
			t.Errorf("got tools %q, want those of the other server", got)
		}
		if tool, err := c.Lookup("echo", nil); err != nil || tool.Server != "b" {
			t.Errorf("got %v, %v, want the tool that is listed", tool, err)
		}
		for _, name := range []string{"a__echo", "a:echo", "a.echo"} {
			if tool, err := c.Lookup(name, nil); err != nil || tool.Server != "a" {
				t.Errorf("%s: got %v, %v, want the tool of the lost server", name, tool, err)
			} else if again, err := c.Lookup(tool.Name, nil); err != nil || again.Server != "a" {
				t.Errorf("%s: its name %s is found as %v, %v, want the tool of the lost server", name, tool.Name, again, err)
			}
		}
		only := func(server, _ string) bool { return server == "a" }
		if tool, err := c.Lookup("echo", only); err != nil || tool.Server != "a" {
			t.Errorf("got %v, %v, want the tool of the lost server", tool, err)
		}
		nobody := func(string, string) bool { return false }
		for _, name := range []string{"echo", "a__echo"} {
			if _, err := c.Lookup(name, nobody); err == nil || err.Reason != reason.UnknownTool {
				t.Errorf("%s: got %v for whom it is hidden, want it unknown", name, err)
			}
		}
		wellB.Store(false)
		b.cut()
		time.Sleep(time.Minute)
		c = catalogOf(t, m)
		if _, err := c.Lookup("echo", nil); err == nil || err.Reason != reason.AmbiguousTool {
			t.Errorf("got %v, want it ambiguous between two lost servers", err)
		}
		if tool, err := c.Lookup("a__echo", nil); err != nil || tool.Name != "a.echo" {
			t.Errorf("got %v, %v, want the tool under a name that only it has", tool, err)
		}
		m.Stop()
	})
}

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

// Every name of a lost server's tool means that tool, even if another one has such a name of its own.
func TestLookup_NamesOfLostServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newServer(tool("x"), tool("a__x"), tool("get.it"))
		b := newServer(tool("a.x"), tool("a__x"))
		wellA := away(a)
		wellA.Store(true)
		o := pipes([]string{"a", "b"}, a, b)
		o.NameLimit = 46
		m := start(t, o)
		catalogOf(t, m)
		wellA.Store(false)
		a.cut()
		time.Sleep(time.Minute)
		c := catalogOf(t, m)
		alias := catalog.Alias("a", "get.it", 46)
		for name, want := range map[string]string{
			"a__x": "x", "a.x": "x", "a:x": "x", "x": "x", "a__a__x": "a__x", "get.it": "get.it", alias: "get.it",
		} {
			found, err := c.Lookup(name, nil)
			if err != nil || found.Server != "a" || found.Tool.Tool != want {
				t.Errorf("%s: got %v, %v, want %s of the lost server", name, found, err, want)
				continue
			}
			again, err := c.Lookup(found.Name, nil)
			if err != nil || again.Server != "a" || again.Tool.Tool != want {
				t.Errorf("%s: its name %s is found as %v, %v", name, found.Name, again, err)
			}
		}
		item, ok, err := m.Find(t.Context(), "a", "", "tools/list", time.Time{}, func(item json.RawMessage) bool {
			return catalog.Alias("a", jsonrpc.Text(jsonrpc.Get(item, "name")), 46) == alias
		})
		if !ok || err != nil {
			t.Errorf("Find: got %s, %v, want the item of the last list", item, err)
		}
		m.Stop()
	})
}

package proxy_test

import (
	"cmp"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/pins"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/router/proxy"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// hold lets requests of the server wait until the returned function is called.
func (s *server) hold() (release func()) {
	until := make(chan struct{})
	s.change(func() {
		s.gate = func(_ http.ResponseWriter, r *http.Request) bool {
			select {
			case <-until:
			case <-r.Context().Done():
			}
			return false
		}
	})
	return func() {
		close(until)
		s.change(func() { s.gate = nil })
	}
}

const toolsChanged = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`

// remembered lists a server in a world that ends, and returns one that starts while the server is slow, and a function
// that ends that.
func remembered(t *testing.T, s *server, change func(o *setup)) (w *world, whole string, release func()) {
	t.Helper()
	folder, url := filepath.Join(t.TempDir(), "lists"), ""
	first := newWorld(t, func(o *setup) { o.downstream.Lists, url = folder, o.downstream.Servers[0].URL }, place{"s", overHTTP, s, "shared"})
	whole = first.dial(proxyPath).do("tools/list", "{}").result
	mcptest.Eventually(t, "the list is kept", func() bool {
		files, _ := os.ReadDir(folder)
		return len(files) == 1 && !strings.HasPrefix(files[0].Name(), ".")
	})
	first.stop()
	release = s.hold()
	return newWorld(t, func(o *setup) {
		o.returns, o.downstream.Lists, o.config.ListDeadline = true, folder, 250*time.Millisecond
		o.downstream.Servers[0].URL = url
		change(o)
	}, place{"s", overHTTP, s, "shared"}), whole, release
}

// TestMemory starts a router again while its server is slow: its lists are the last ones, and nothing else is.
func TestMemory(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(o *setup, s *server) // before the second start
		tools  []string                  // of the first list; nil = it waits for the server
		after  []string                  // of a later list, if it is another
	}{
		{name: "the same", tools: []string{"s__a", "s__b"}},
		{name: "other tools", change: func(_ *setup, s *server) {
			s.change(func() { s.lists["tools/list"] = newServer("a", "c").lists["tools/list"] })
		}, tools: []string{"s__a", "s__b"}, after: []string{"s__a", "s__c"}},
		{name: "another URL", change: func(o *setup, _ *server) { o.downstream.Servers[0].URL += "/mcp" }, after: []string{"s__a", "s__b"}},
		{name: "another header", change: func(o *setup, _ *server) {
			o.downstream.Servers[0].Headers = map[string]redact.Secret{"A": "b"}
		}, after: []string{"s__a", "s__b"}},
		{name: "sessions of clients", change: func(o *setup, _ *server) { o.downstream.Servers[0].Session = "per_client" }, after: []string{"s__a", "s__b"}},
		{name: "a damaged file", change: func(o *setup, _ *server) {
			files, _ := filepath.Glob(o.downstream.Lists + "/*")
			if err := os.WriteFile(files[0], []byte(`{"tools/list":["{\"name\":"]}`), 0o600); err != nil {
				t.Error(err)
			}
		}, after: []string{"s__a", "s__b"}},
		{name: "filtered", change: func(o *setup, _ *server) { o.downstream.Servers[0].Tools.Deny = []string{"a"} }, tools: []string{"s__b"}},
		{name: "restricted", change: func(o *setup, _ *server) {
			o.edge.Keys = restricted(t, auth.KeyConfig{Name: "k", Key: "secret-k", Tools: auth.Filter{Allow: []string{"s__b"}}})
		}, tools: []string{"s__b"}},
		{name: "not as approved", change: func(o *setup, _ *server) {
			store := pins.Open(pins.Options{Folder: o.downstream.Lists + "/../pins", Mode: pins.Enforce, Logger: slog.New(slog.DiscardHandler)})
			t.Cleanup(store.Close)
			a := pins.Tool{Name: "a", Raw: []byte(`{"name":"a",` + object + `}`)}
			store.Check("s", []pins.Tool{a, {Name: "b", Raw: []byte(`{"name":"b"}`)}}, true)
			o.downstream.Pins = store
		}, tools: []string{"s__a"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newServer("a", "b")
			var told atomic.Bool // that the lists of clients may be others
			w, whole, release := remembered(t, s, func(o *setup) {
				o.returns, o.downstream.OnReturn = false, func(string) { told.Store(true) }
				if row.change != nil {
					row.change(o, s)
				}
			})
			c := w.newClient(proxyPath)
			c.header.Set("X-API-Key", "secret-k")
			c.hello()
			a := c.start(c.next(), "tools/list", "{}")
			first := row.after
			if row.tools != nil {
				first = row.tools
				c.wait(a)
			}
			if n := w.manager.Status()["s"].Tools; n != 0 {
				t.Errorf("got %d tools of the server, want none that are known", n)
			}
			if row.after != nil { // clients are told of servers that a catalog lacks
				catalog, err := w.manager.Catalog(t.Context())
				if err != nil || catalog.SeesAny(nil) {
					t.Errorf("got tools to plan with, %v; want none", err)
				}
			}
			select {
			case <-a.done:
				if row.tools == nil {
					t.Errorf("got %s %s, want no answer yet", a.result, a.err)
				}
			default:
			}
			release()
			w.wait("s")
			if got := names(c.wait(a).result, "tools", "name"); !slices.Equal(got, first) {
				t.Errorf("got the tools %q, %s, want %q", got, a.err, first)
			}
			if row.change == nil && a.result != whole {
				t.Errorf("got %s, want the bytes of before: %s", a.result, whole)
			}
			want := row.tools
			if row.after != nil {
				want = row.after
				mcptest.Eventually(t, "the clients are told", told.Load)
			}
			if got := c.tools(); !slices.Equal(got, want) {
				t.Errorf("later: got %q, want %q", got, want)
			}
			if w.stop(); told.Load() != (row.after != nil) {
				t.Errorf("clients are told: got %t, want %t", told.Load(), row.after != nil)
			}
		})
	}
}

// TestListAtFirstStart lists servers of which nothing is kept.
func TestListAtFirstStart(t *testing.T) {
	for _, row := range []struct {
		name          string
		others        []string // servers that have started
		begins, later []string // the lists
	}{
		{"alone", nil, []string{"slow__b"}, []string{"slow__b"}},
		{"beside another", []string{"fine"}, []string{"fine__a"}, []string{"slow__b", "fine__a"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			slow := newServer("b")
			release := slow.hold()
			places := []place{{"slow", overHTTP, slow, "shared"}}
			for _, name := range row.others {
				places = append(places, place{name, overHTTP, newServer("a"), "shared"})
			}
			w := newWorld(t, func(o *setup) { o.returns, o.config.ListDeadline = true, 100*time.Millisecond }, places...)
			c := w.dial(proxyPath)
			a := c.start(c.next(), "tools/list", "{}")
			if row.others == nil {
				time.AfterFunc(3*w.config.ListDeadline, release)
			} else {
				c.wait(a)
				release()
			}
			if got := names(c.wait(a).result, "tools", "name"); !slices.Equal(got, row.begins) {
				t.Errorf("got %q %s, want %q", got, a.err, row.begins)
			}
			mcptest.Eventually(t, "the client is told", func() bool { return slices.Contains(c.heard(), toolsChanged) })
			if got := c.tools(); !slices.Equal(got, row.later) {
				t.Errorf("later: got %q, want %q", got, row.later)
			}
		})
	}
}

// TestListBesideStart lists a server that needs longer than the deadline once, while another one does not come.
func TestListBesideStart(t *testing.T) {
	slow, fine := newServer("b"), newServer("a")
	defer slow.hold()()
	var lists atomic.Int64
	fine.on = func(r *request) bool {
		if r.Method != "tools/list" || lists.Add(1) > 1 {
			return false
		}
		<-r.ctx.Done()
		return true
	}
	w := newWorld(t, func(o *setup) { o.config.ListDeadline = 100 * time.Millisecond },
		place{"slow", overHTTP, slow, "shared"}, place{"fine", overHTTP, fine, "shared"})
	w.wait("fine")
	if got := w.dial(proxyPath).tools(); !slices.Equal(got, []string{"fine__a"}) {
		t.Errorf("got %q, want the tool of the server that has started", got)
	}
}

// TestMemoryKeepsNewest lets an earlier request of a list end after a later one.
func TestMemoryKeepsNewest(t *testing.T) {
	s, folder, until := newServer("new"), filepath.Join(t.TempDir(), "lists"), make(chan struct{})
	var lists atomic.Int64
	s.on = func(r *request) bool {
		if r.Method != "tools/list" || lists.Add(1) > 1 {
			return false
		}
		<-until
		r.result(`{"tools":[{"name":"old",` + object + `}]}`)
		return true
	}
	w := newWorld(t, func(o *setup) { o.downstream.Lists = folder }, place{"s", overHTTP, s, "shared"})
	c := w.dial(proxyPath)
	first := c.start(c.next(), "tools/list", "{}")
	mcptest.Eventually(t, "the first request", func() bool { return lists.Load() == 1 })
	mcptest.Eventually(t, "the stream of the server", func() bool { return s.say(toolsChanged) > 0 })
	mcptest.Eventually(t, "the change", func() bool { return slices.Contains(c.heard(), toolsChanged) })
	if got := c.tools(); !slices.Equal(got, []string{"s__new"}) {
		t.Errorf("got %q, want the new tool", got)
	}
	close(until)
	c.wait(first)
	w.stop()
	files, _ := filepath.Glob(folder + "/*")
	if content, err := os.ReadFile(files[0]); err != nil || !strings.Contains(string(content), "new") {
		t.Errorf("got the file %s, %v; want the new list", content, err)
	}
}

// TestReturned announces servers that come one after the other once.
func TestReturned(t *testing.T) {
	w := newWorld(t, nil, place{"a", overHTTP, newServer(), ""}, place{"b", overHTTP, newServer(), ""})
	c := w.dial(proxyPath)
	for _, server := range []string{"a", "b", "a"} {
		proxy.Returned(w.proxy, server)
	}
	mcptest.Eventually(t, "the client is told", func() bool { return slices.Contains(c.heard(), toolsChanged) })
	w.proxy.ToolsChanged("a")
	mcptest.Eventually(t, "the client is told of another change", func() bool { return len(c.heard()) == 4 })
	if got := c.heard(); strings.Count(strings.Join(got, ""), "tools/list_changed") != 2 {
		t.Errorf("got %q, want the kinds of lists once, and the tools again", got)
	}
}

// TestCallOfRemembered calls tools of a server that is still starting.
func TestCallOfRemembered(t *testing.T) {
	for _, path := range []string{proxyPath, "/servers/s/mcp"} {
		t.Run(path, func(t *testing.T) {
			long := strings.Repeat("x", 60)
			w, whole, release := remembered(t, newServer("a", long), func(*setup) {})
			listed := names(whole, "tools", "name")
			if path != proxyPath {
				listed = []string{"a", long}
			}
			c := w.dial(path)
			var calls []*answer
			for _, tool := range listed {
				calls = append(calls, c.beginCall(tool))
			}
			time.AfterFunc(3*w.config.ListDeadline, release)
			for i, call := range calls {
				if a := c.wait(call); a.result == "" {
					t.Errorf("%s: got %s, want a result", listed[i], a.err)
				}
			}
		})
	}
	t.Run("fails", func(t *testing.T) {
		s := newServer("a")
		w, _, release := remembered(t, s, func(o *setup) { o.downstream.Servers[0].ConnectTimeout = time.Second })
		defer release()
		c := w.dial(proxyPath)
		c.tools()
		a := c.call("s__a")
		if !strings.Contains(a.err, `"reason":"timeout"`) || len(s.got("tools/call")) > 0 {
			t.Errorf("got %s %s, want a timeout of the connection", a.result, a.err)
		}
		mcptest.Eventually(t, "the client is told", func() bool { return slices.Contains(c.heard(), toolsChanged) })
	})
}

// TestMemoryOfPrivate starts again with a server whose data has become private: its lists of resources leave the file.
func TestMemoryOfPrivate(t *testing.T) {
	var folder string
	w, _, release := remembered(t, newServer("a"), func(o *setup) {
		folder = o.downstream.Lists
		o.downstream.Servers[0].Data = "private"
		files, _ := filepath.Glob(folder + "/*")
		content := `{"tools/list":["{\"name\":\"a\"}"],"resources/list":["{\"uri\":\"secret\"}"]}`
		if err := os.WriteFile(files[0], []byte(content), 0o600); err != nil {
			t.Error(err)
		}
	})
	defer release()
	if got := w.dial(proxyPath).tools(); !slices.Equal(got, []string{"s__a"}) {
		t.Errorf("got the tools %q, want the one that is kept", got)
	}
	files, _ := filepath.Glob(folder + "/*")
	content, err := os.ReadFile(files[0])
	if text := string(content); err != nil || strings.Contains(text, "secret") || !strings.Contains(text, "tools/list") {
		t.Errorf("got the file %s, %v; want no resources", text, err)
	}
}

// TestCallInOwnSession calls a server in the client's session while the router's own is still starting.
func TestCallInOwnSession(t *testing.T) {
	s := newServer("a")
	until, held := make(chan struct{}), make(chan struct{})
	var requests atomic.Int64
	s.change(func() {
		s.gate = func(_ http.ResponseWriter, r *http.Request) bool {
			if requests.Add(1) == 1 {
				close(held)
				select {
				case <-until:
				case <-r.Context().Done():
				}
			}
			return false
		}
	})
	w := newWorld(t, func(o *setup) { o.downstream.Servers[0].ConnectTimeout = 3 * time.Second },
		place{"s", overHTTP, s, "per_client"})
	defer close(until)
	<-held
	for _, path := range []string{proxyPath, "/servers/s/mcp"} {
		name := map[string]string{proxyPath: "s__a"}[path]
		if a := w.dial(path).call(cmp.Or(name, "a")); a.result == "" {
			t.Errorf("%s: got %s, want a result", path, a.err)
		}
	}
}

// TestMemoryOfOAuth starts again with a server that has got OAuth: the lists of before may be those of another account.
func TestMemoryOfOAuth(t *testing.T) {
	w, _, release := remembered(t, newServer("a"), func(o *setup) {
		s := &o.downstream.Servers[0]
		s.ConnectTimeout = 300 * time.Millisecond
		s.Auth, o.downstream.Tokens = &oauth.Config{ClientID: "c"}, oauth.NewStore(t.TempDir())
		login := &oauth.Token{Server: "s", URL: s.URL, Issuer: "https://login.example", Access: "secret"}
		login.Client.ID = "c"
		if err := o.downstream.Tokens.Save(t.Context(), login); err != nil {
			t.Error(err)
		}
	})
	defer release()
	if a := w.dial(proxyPath).do("tools/list", "{}"); a.err == "" {
		t.Errorf("got %s, want an error", a.result)
	}
}

package downstream_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

func hello(client string) []byte {
	return []byte(`{"protocolVersion":"2025-06-18","capabilities":{"sampling":{},"x":1},"clientInfo":{"name":"` + client + `","version":"1"}}`)
}

// Each client has its own session with a URL server, opened with its own words; a process is shared. The
// setting changes both.
func TestSessionsOfClients(t *testing.T) {
	for _, tc := range []struct {
		session  string
		url, own bool
	}{
		{"", true, true}, {"", false, false},
		{downstream.SessionShared, true, false}, {downstream.SessionPerClient, false, true},
	} {
		t.Run(fmt.Sprintf("url %v, session %q", tc.url, tc.session), func(t *testing.T) {
			s := newServer()
			o := pipes([]string{"a"}, s)
			if tc.url {
				o = downstream.Options{Servers: []downstream.ServerConfig{serveHTTP(t, s).config("a")}}
			}
			o.Servers[0].Session = tc.session
			m := downstream.New(o)
			defer m.Stop()
			clients := []string{"one", "two", "three"}
			for _, c := range clients {
				m.Sessions().Enter(c, hello(c))
				if init, err := m.Sessions().Initialized(t.Context(), "a", c); err != nil || !strings.Contains(string(init), "scripted") {
					t.Fatalf("got %s, %v", init, err)
				}
				for range 2 {
					if err := m.Sessions().Notify(t.Context(), "a", c, "notifications/initialized", nil); err != nil {
						t.Fatal(err)
					}
				}
				r := request("a", "echo")
				r.Client, r.Proxied = c, true
				if _, err := m.Call(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			hellos := s.params("initialize")
			want := 1
			if tc.own {
				want = len(clients)
			}
			mcptest.Eventually(t, "initialized arrives", func() bool { return s.count("notifications/initialized") >= want })
			if n := s.count("notifications/initialized"); len(hellos) != want || n != want {
				t.Fatalf("got %d sessions and %d initialized, want %d", len(hellos), n, want)
			}
			if tc.own {
				for i, c := range clients {
					if hellos[i] != string(hello(c)) {
						t.Errorf("got initialize with %s, want what %s said", hellos[i], c)
					}
				}
			} else if !strings.Contains(hellos[0], `"agenticnexus-router"`) {
				t.Errorf("got initialize with %s, want our own", hellos[0])
			}
			if got := m.Status()["a"].Sessions; got != want {
				t.Errorf("got %d sessions in the status, want %d", got, want)
			}
			for _, c := range clients {
				m.Sessions().Leave(c)
			}
			if got := m.Status()["a"].Sessions; tc.own && got != 0 {
				t.Errorf("got %d sessions after all left, want none", got)
			}
		})
	}
}

func TestLeaveSaysFarewell(t *testing.T) {
	w := serveHTTP(t, newServer())
	m := start(t, downstream.Options{Servers: []downstream.ServerConfig{w.config("a")}})
	m.Sessions().Enter("c", hello("c"))
	if _, err := m.Sessions().List(t.Context(), "a", "c", "tools/list"); err != nil {
		t.Fatal(err)
	}
	m.Sessions().Leave("c")
	deleted := w.seen(http.MethodDelete)
	if len(deleted) != 1 || deleted[0].Header.Get("Mcp-Session-Id") == "" {
		t.Fatalf("got %d DELETEs, want one that names the session", len(deleted))
	}
	// What comes late goes to the shared session and leaves nothing behind.
	r := request("a", "echo")
	r.Client, r.Proxied = "c", true
	if _, err := m.Call(t.Context(), r); err != nil {
		t.Error(err)
	}
	if got := m.Status()["a"].Sessions; got != 1 {
		t.Errorf("got %d sessions, want the router's own", got)
	}
}

// A lost session of a client is begun anew with the client's own words, whatever comes next.
func TestLostClientSession(t *testing.T) {
	w := serveHTTP(t, newServer())
	m := start(t, downstream.Options{Servers: []downstream.ServerConfig{w.config("a")}})
	m.Sessions().Enter("c", hello("c"))
	if err := m.Sessions().Notify(t.Context(), "a", "c", "notifications/initialized", nil); err != nil {
		t.Fatal(err)
	}
	mcptest.Eventually(t, "both sessions begin", func() bool { return w.count("notifications/initialized") == 2 })
	for i, use := range []func() error{
		func() error {
			r := request("a", "echo")
			r.Client, r.Proxied = "c", true
			_, err := m.Call(t.Context(), r)
			return err
		},
		func() error { _, err := m.Sessions().List(t.Context(), "a", "c", "tools/list"); return err },
		func() error {
			return m.Sessions().Notify(t.Context(), "a", "c", "notifications/roots/list_changed", nil)
		},
	} {
		w.restart()
		if err := use(); err != nil {
			t.Errorf("use %d: %v", i, err)
		}
		own := 0
		for _, p := range w.params("initialize") {
			if p == string(hello("c")) {
				own++
			}
		}
		if own != i+2 {
			t.Errorf("after %d losses got %d sessions of the client, want %d", i+1, own, i+2)
		}
		mcptest.Eventually(t, "the session is initialized", func() bool { return w.count("notifications/initialized") >= i+3 })
	}
}

// A list is kept only while the server announces changes and can be heard.
func TestListsOfClientsAreKept(t *testing.T) {
	for _, tc := range []struct {
		name             string
		announces, hears bool
		lists            int
	}{
		{"announced and heard", true, true, 1},
		{"announced but not heard", true, false, 3},
		{"not announced", false, true, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer()
			if tc.announces {
				s.caps = `{"tools":{"listChanged":true}}`
			}
			w := serveHTTP(t, s)
			w.stream = tc.hears
			m := start(t, downstream.Options{Servers: []downstream.ServerConfig{w.config("a")}})
			m.Sessions().Enter("c", hello("c"))
			if err := m.Sessions().Notify(t.Context(), "a", "c", "notifications/initialized", nil); err != nil {
				t.Fatal(err)
			}
			mcptest.Eventually(t, "both ask for the stream", func() bool { return len(w.seen(http.MethodGet)) == 2 })
			list := func() {
				t.Helper()
				if items, err := m.Sessions().List(t.Context(), "a", "c", "tools/list"); err != nil || len(items) != 1 {
					t.Fatalf("got %d items, %v", len(items), err)
				}
			}
			if tc.lists == 1 { // the stream is heard once its beginning has arrived
				mcptest.Eventually(t, "the list is kept", func() bool {
					before := w.count("tools/list")
					list()
					list()
					return w.count("tools/list") == before
				})
			}
			before := w.count("tools/list")
			for range tc.lists {
				list()
			}
			if got := m.Status()["a"].Tools; got != 1 {
				t.Errorf("got %d tools in the status, want the one that the client was told of", got)
			}
			if n := w.count("tools/list") - before; tc.lists == 1 && n != 0 || tc.lists > 1 && n != tc.lists {
				t.Errorf("got %d lists at the server for %d of the client", n, tc.lists)
			}
			if tc.lists == 1 {
				w.cut()
				mcptest.Eventually(t, "a cut stream makes it void", func() bool { list(); return w.count("tools/list") > before })
			}
		})
	}
}

// Those who ask while a list is under way share it; each client has its own.
func TestListsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.list = func(*server, mcptest.Message) (string, string) {
			time.Sleep(time.Second)
			return `{"tools":[` + tool("x") + `]}`, ""
		}
		m := start(t, pipes([]string{"a"}, s))
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				if items, err := m.Sessions().List(t.Context(), "a", fmt.Sprint(i), "tools/list"); err != nil || len(items) != 1 {
					t.Errorf("got %d items, %v", len(items), err)
				}
			})
		}
		wg.Wait()
		if n := s.count("tools/list"); n != 1 {
			t.Errorf("got %d lists, want one for all", n)
		}
		m.Stop()
	})
}

// What servers say of their own accord is handed over with the session it came on.
func TestMessagesOfServers(t *testing.T) {
	w := serveHTTP(t, newServer())
	w.stream = true
	p := newServer()
	o := pipes([]string{"pipe"}, p)
	o.Servers = append(o.Servers, w.config("web"))
	var mu sync.Mutex
	got := map[string]string{}
	o.OnNotification = func(m downstream.Notification) {
		mu.Lock()
		defer mu.Unlock()
		got[m.Server+"/"+m.Client] = string(m.Message.Raw)
	}
	m := start(t, o)
	m.Sessions().Enter("c", hello("c"))
	if err := m.Sessions().Notify(t.Context(), "web", "c", "notifications/initialized", nil); err != nil {
		t.Fatal(err)
	}
	if err := m.Sessions().Notify(t.Context(), "pipe", "c", "notifications/initialized", nil); err != nil {
		t.Fatal(err)
	}
	note := `{"jsonrpc":"2.0","method":"notifications/odd","params":{"n":9007199254740993}}`
	mcptest.Eventually(t, "all sessions hear it", func() bool {
		w.say(note)
		p.say(note)
		mu.Lock()
		defer mu.Unlock()
		return got["web/c"] == note && got["web/"] == note && got["pipe/"] == note
	})
}

func TestUnknownServer(t *testing.T) {
	m := start(t, downstream.Options{})
	if _, err := m.Sessions().Initialized(t.Context(), "x", ""); err == nil || err.Error() != "Unknown server: x" {
		t.Errorf("Initialized: got %v", err)
	}
	if err := m.Sessions().Notify(t.Context(), "x", "", "notifications/x", nil); err == nil || err.Error() != "Unknown server: x" {
		t.Errorf("Notify: got %v", err)
	}
	if items, err := m.Sessions().List(t.Context(), "x", "", "tools/list"); items != nil || err != nil {
		t.Errorf("List: got %v, %v", items, err)
	}
}

// Calls of clients that never introduced themselves share the router's own session, however many come at once.
func TestClientsThatHaveNotEntered(t *testing.T) {
	t.Parallel()
	w := serveHTTP(t, newServer())
	m := start(t, downstream.Options{Servers: []downstream.ServerConfig{w.config("a")}})
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			attempts := 0
			r := request("a", "echo")
			r.Client, r.Proxied, r.Attempts = fmt.Sprint("client ", i/4), true, &attempts
			if _, err := m.Call(t.Context(), r); err != nil || attempts != 1 {
				t.Errorf("got %v after %d attempts, want an answer at once", err, attempts)
			}
		})
	}
	wg.Wait()
}

// A connection that is being made for a client ends when the client leaves: nobody waits for it any more.
func TestLeavingEndsConnecting(t *testing.T) {
	t.Parallel()
	w := serveHTTP(t, newServer())
	m := downstream.New(downstream.Options{Servers: []downstream.ServerConfig{w.config("a")}})
	defer m.Stop()
	ended := make(chan struct{})
	w.answers = func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		close(ended)
	}
	m.Sessions().Enter("c", hello("c"))
	failed := make(chan error, 1)
	go func() { _, err := m.Sessions().Initialized(t.Context(), "a", "c"); failed <- err }()
	mcptest.Eventually(t, "the client connects", func() bool { return len(w.seen(http.MethodPost)) == 1 })
	m.Sessions().Leave("c")
	select {
	case <-ended:
	case <-time.After(10 * time.Second): // connecting may take 15 s
		t.Fatal("the connection is still being made after its client has left")
	}
	if err := <-failed; failureOf(err).Reason == "" {
		t.Errorf("got %v, want a failure", err)
	}
}

// A session that a server has opened for a client which has left meanwhile is ended.
func TestLeavingEndsASessionThatIsBeingOpened(t *testing.T) {
	s := newServer()
	asked, left := make(chan *http.Request, 1), make(chan struct{})
	s.hello = func() string { <-left; return "" }
	w := serveHTTP(t, s)
	w.hook = func(r *http.Request) {
		select {
		case asked <- r:
		default:
		}
	}
	m := downstream.New(downstream.Options{Servers: []downstream.ServerConfig{w.config("a")}})
	defer m.Stop()
	m.Sessions().Enter("c", hello("c"))
	go m.Sessions().Initialized(t.Context(), "a", "c")
	r := <-asked
	m.Sessions().Leave("c")
	select {
	case <-r.Context().Done(): // then nobody takes the answer
	case <-time.After(100 * time.Millisecond):
	}
	close(left)
	mcptest.Eventually(t, "the session is ended", func() bool { return len(w.seen(http.MethodDelete)) == 1 })
}

// What clients may subscribe to is bounded, for a client and on a session that several share; what one of them
// gives up another may have.
func TestSubscriptionsAreBounded(t *testing.T) {
	const most = 10_000
	m := start(t, pipes([]string{"a"}, newServer()))
	ask := func(client, method string, n int) error {
		_, err := m.Call(t.Context(), &downstream.Request{
			Server: "a", Method: "resources/" + method, Params: fmt.Appendf(nil, `{"uri":"x:%d"}`, n), Client: client, Proxied: true,
		})
		return err
	}
	for n := range most {
		if err := ask("one", "subscribe", n); err != nil {
			t.Fatalf("subscription %d: %v", n, err)
		}
	}
	for _, client := range []string{"one", "other"} {
		if err := ask(client, "subscribe", most); failureOf(err).Reason != reason.Overloaded {
			t.Errorf("one more by %s: got %v, want it overloaded", client, err)
		}
	}
	if err := ask("other", "subscribe", 0); err != nil {
		t.Errorf("what is subscribed to already: got %v, want another subscriber", err)
	}
	if err := ask("one", "unsubscribe", 1); err != nil {
		t.Errorf("unsubscribe: %v", err)
	}
	if err := ask("other", "subscribe", most); err != nil {
		t.Errorf("after one has ended: got %v, want room for another", err)
	}
}

package edge_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// table is an edge with few places for sessions, whose callers are identified by address.
type table struct {
	t    *testing.T
	edge *edge.Edge
	http http.Handler
	srv  *server
}

func newTable(t *testing.T, places int) *table {
	srv := newServer()
	e := edge.New(edge.Options{Limits: limit.Config{Sessions: places}})
	return &table{t, e, e.Streamable(srv, nil), srv}
}

func (b *table) serve(method, caller, body, id string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1/mcp", reader(body))
	r.RemoteAddr = caller + ":1"
	if id != "" {
		r.Header.Set("Mcp-Session-Id", id)
	}
	w := httptest.NewRecorder()
	b.http.ServeHTTP(w, r)
	return w
}

// open opens a session and returns its id, empty if it is refused.
func (b *table) open(caller string) string {
	time.Sleep(time.Second)
	w := b.serve("POST", caller, initialize("2025-06-18"), "")
	if w.Code != 200 && (w.Code != 503 || !strings.Contains(w.Body.String(), `"reason":"overloaded"`)) {
		b.t.Errorf("%s: got %d %s, want 200 or 503 overloaded", caller, w.Code, w.Body)
	}
	return w.Header().Get("Mcp-Session-Id")
}

// has reports whether a session has a place, without reviving it.
func (b *table) has(id string) bool { return b.edge.Send(id, []byte(`{"jsonrpc":"2.0","method":"x"}`)) }

func (b *table) stop() {
	if err := b.edge.Stop(b.t.Context()); err != nil {
		b.t.Errorf("Stop: got %v, want nil", err)
	}
}

// A caller alone may have all places. When others want some, it keeps the most recently used half. A session that lost
// its place is revived when its client comes back.
func TestShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTable(t, 10)
		var greedy []string
		for range 10 {
			greedy = append(greedy, b.open("192.0.2.1"))
		}
		if b.open("192.0.2.1") != "" {
			t.Error("beyond the limit: got a session, want none")
		}
		for _, i := range []int{0, 1} {
			b.serve("POST", "192.0.2.1", request("1", "seen", ""), greedy[i])
		}
		var others []string
		for range 7 {
			if id := b.open("192.0.2.2"); id != "" {
				others = append(others, id)
			}
		}
		if len(others) != 5 || b.edge.Sessions() != 10 {
			t.Errorf("another caller: got %d sessions of %d, want 5 of 10", len(others), b.edge.Sessions())
		}
		for i, id := range greedy {
			if want := i < 2 || i > 6; b.has(id) != want {
				t.Errorf("session %d of the first caller: got it in place %v, want %v", i, !want, want)
			}
		}
		for i := range 3 { // of those that have most
			if b.open("192.0.2."+strconv.Itoa(3+i)) == "" {
				t.Errorf("newcomer %d: got no session, want one", i)
			}
		}
		if w := b.serve("POST", "192.0.2.1", request("1", "seen", ""), greedy[3]); w.Code != 200 || !b.has(greedy[3]) {
			t.Errorf("a session that lost its place: got %d %s, want it revived", w.Code, w.Body)
		}
		b.stop()
	})
}

// Sessions in use keep their places, unless their caller has more than its share and they only have a stream open.
func TestSessionsInUseKeepTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTable(t, 4)
		var ids []string
		for i := range 4 {
			ids = append(ids, b.open("192.0.2.1"))
			if i < 3 {
				go b.serve("POST", "192.0.2.1", call("1", "hold", "{}"), ids[i])
			} else {
				go b.serve("GET", "192.0.2.1", "", ids[i])
			}
		}
		synctest.Wait()
		if b.open("192.0.2.2") == "" {
			t.Error("with a session to spare: got no session, want one")
		}
		if b.has(ids[3]) {
			t.Error("the session with a stream alone has its place, want it gone")
		}
		if b.open("192.0.2.3") == "" {
			t.Error("in place of an idle session: got no session, want one")
		}
		close(b.srv.release)
		synctest.Wait()
		for _, id := range ids[:3] {
			if !b.has(id) {
				t.Error("a session with a call in flight has lost its place")
			}
		}
		b.stop()
	})
}

// One caller that fills the table with sessions in use neither slows down nor excludes others.
func TestSessionTableUnderAttack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places = 2000
		b := newTable(t, places)
		for i := range places {
			b.open(fmt.Sprintf("[2001:db8::%x]", i))
		}
		for i := range 50 {
			id := b.open(fmt.Sprintf("198.51.100.%d", i))
			if id == "" {
				t.Fatalf("caller %d: got no session, want one", i)
			}
			for range 20 {
				if w := b.serve("POST", "203.0.113.9", initialize("2025-06-18"), ""); w.Code != 200 {
					t.Fatalf("while others want places: got %d %s", w.Code, w.Body)
				}
			}
			if !b.has(id) && i < 10 {
				t.Fatalf("caller %d has lost its only session to one that has more", i)
			}
		}
		b.stop()
	})
}

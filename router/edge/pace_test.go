package edge_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/router/edge"
)

// serveTime is how long a leisurely handler takes for a request.
const serveTime = 10 * time.Millisecond

// leisurely answers each request after serveTime, and counts those that it serves at once, by caller.
type leisurely struct {
	mu        sync.Mutex
	now, most map[string]int
}

func (s *leisurely) Serve(_ context.Context, x *edge.Exchange) {
	caller := strings.TrimPrefix(x.Caller.ID, "addr:")
	s.count(caller, 1)
	time.Sleep(serveTime)
	s.count(caller, -1)
	if x.Message.ID != "" {
		x.Reply([]byte(`{}`))
	}
}

func (s *leisurely) count(caller string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now[caller] += n
	s.most[caller] = max(s.most[caller], s.now[caller])
}

func (s *leisurely) Ended(string) {}

// Callers of the tests of turns.
const heavy, other = "192.0.2.1", "192.0.2.2"

// crowd is an edge with the two callers.
type crowd struct {
	t       *testing.T
	handler leisurely
	http    http.Handler
}

// underLoad runs f with an edge on which the heavy caller has just moved many bytes.
func underLoad(t *testing.T, f func(c *crowd)) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2)) // the number of turns goes by it
	synctest.Test(t, func(t *testing.T) {
		e, c := edge.New(edge.Options{}), &crowd{t: t}
		c.handler.now, c.handler.most = map[string]int{}, map[string]int{}
		c.http = e.Streamable(&c.handler, nil)
		large := call("1", "echo", `{"x":"`+strings.Repeat("x", 3<<20)+`"}`)
		for range 20 {
			c.post(heavy, large)
		}
		f(c)
		if err := e.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// post sends a message and returns how long the answer took.
func (c *crowd) post(caller, body string) time.Duration {
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
	r.RemoteAddr = caller + ":1"
	r.Header.Set("Content-Type", "application/json")
	w, began := httptest.NewRecorder(), time.Now()
	if c.http.ServeHTTP(w, r); w.Code >= 300 || strings.Contains(w.Body.String(), `"error"`) {
		c.t.Errorf("got %d %s, want a result", w.Code, w.Body)
	}
	return time.Since(began)
}

// The requests of a caller that moves many bytes are served by half of the processors while others ask.
func TestTurns(t *testing.T) {
	underLoad(t, func(c *crowd) {
		const calls = 4
		small := call("1", "echo", "{}")
		most := func(callers ...string) map[string]int {
			c.handler.most = map[string]int{}
			var wg sync.WaitGroup
			for _, caller := range callers {
				for range calls {
					wg.Go(func() { c.post(caller, small) })
				}
			}
			wg.Wait()
			return c.handler.most
		}
		if got := most(heavy); got[heavy] != calls {
			t.Errorf("alone: got %d of %d requests served at once, want all", got[heavy], calls)
		}
		c.post(other, small)
		if got := most(heavy, other); got[heavy] != 1 || got[other] != calls {
			t.Errorf("beside others: got %d requests served at once, and %d of another caller; want 1 and %d",
				got[heavy], got[other], calls)
		}
		time.Sleep(2 * time.Second)
		c.post(other, small)
		if got := most(heavy, other); got[heavy] != calls {
			t.Errorf("when nothing large has come for a while: got %d of %d requests served at once, want all",
				got[heavy], calls)
		}
	})
}

// Pings and small notifications, such as cancellations, do not wait for a turn.
func TestTurns_NotForAll(t *testing.T) {
	underLoad(t, func(c *crowd) {
		small := call("1", "echo", "{}")
		c.post(other, small)
		for body, want := range map[string]time.Duration{
			small: 2 * serveTime,
			`{"jsonrpc":"2.0","id":2,"method":"ping"}`:                                      serveTime,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`: 0,
		} {
			var wg sync.WaitGroup
			wg.Go(func() { c.post(heavy, small) }) // has the turn
			synctest.Wait()
			if got := c.post(heavy, body); got != want {
				t.Errorf("%s: got an answer after %v, want %v", body, got, want)
			}
			wg.Wait()
		}
	})
}

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/cluster"
	"github.com/agenticnexus/agenticnexus/internal/shared"
)

func inBubble(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(newWorld(t)) })
}

func expect(t testing.TB, n *node, s cluster.Session, want string) {
	t.Helper()
	got, err := n.get(s)
	if err != nil || got != want {
		t.Errorf("session %s at %s: got %q (%v), want %q", s.Tag, n.name, got, err, want)
	}
}

func expectError(t testing.TB, n *node, s cluster.Session, want error) {
	t.Helper()
	if got, err := n.get(s); !errors.Is(err, want) {
		t.Errorf("session %s at %s: got %q (%v), want the error %v", s.Tag, n.name, got, err, want)
	}
}

func TestAlone(t *testing.T) {
	d := cluster.Alone()
	s := cluster.Session{Home: 5, Tag: "t"}
	place, err := d.Find(t.Context(), s)
	_, elsewhere := d.Elsewhere()
	if err != nil || !place.Here() || d.Self() != 0 || d.Draining() || elsewhere || d.Acts() != nil {
		t.Errorf("got %v, %v, want all sessions here", place, err)
	}
	state, err := d.Load(t.Context(), s)
	if state != nil || err != nil || d.Save(s, []byte("x")) != nil || d.End(t.Context(), s) != nil {
		t.Errorf("got the state %q, want nothing to be saved", state)
	}
}

func BenchmarkFind(b *testing.B) {
	for name, dir := range map[string]func() (*cluster.Directory, cluster.Session){
		"alone": func() (*cluster.Directory, cluster.Session) { return cluster.Alone(), cluster.Session{} },
		"home": func() (*cluster.Directory, cluster.Session) {
			n := newWorld(b).node("a")
			return n.dir, n.session("s")
		},
	} {
		b.Run(name, func(b *testing.B) {
			d, s := dir()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Find(context.Background(), s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestFind_ForwardsToHome(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.node("a"), w.node("b")
		s := a.session("s")
		a.asEdge(s)
		expect(w.t, a, s, "a")
		expect(w.t, b, s, "a")
	})
}

func TestFind_AdoptsAfterCrash(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b, c := w.node("a"), w.node("b"), w.node("c")
		s := a.session("s")
		if err := a.dir.Save(s, []byte("state")); err != nil {
			w.t.Fatal(err)
		}
		synctest.Wait()
		a.crash()
		b.asEdge(s)
		start := time.Now()
		expect(w.t, b, s, "b")
		expect(w.t, c, s, "b")
		if took := time.Since(start); took > time.Second {
			w.t.Errorf("adopting took %v", took)
		}
		if state, err := b.dir.Load(w.t.Context(), s); string(state) != "state" || err != nil {
			w.t.Errorf("got the state %q (%v), want what was saved", state, err)
		}
	})
}

// A session that has moved stays where it is, also for a replica whose clock is behind, for which its id is still valid.
func TestFind_ClockBehind(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b, c := w.node("a"), w.node("b"), w.node("c")
		s := a.session("s")
		s.Ends = time.Now().Add(time.Minute)
		synctest.Wait()
		a.crash()
		b.asEdge(s)
		expect(w.t, b, s, "b")
		time.Sleep(6 * time.Minute)
		s.Ends = s.Ends.Add(5 * time.Minute)
		expect(w.t, c, s, "b")
	})
}

// The log counts what was taken over, in one line for each replica.
func TestFind_TellsWhatWasAdopted(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b, c := w.node("a"), w.node("b"), w.node("c")
		var all []cluster.Session
		for i := range 50 {
			all = append(all, []*node{a, b}[i%2].session(fmt.Sprintf("s%d", i)))
		}
		all = append(all, c.session("own"))
		synctest.Wait()
		a.crash()
		b.crash()
		for _, s := range all {
			expect(w.t, c, s, "c")
		}
		time.Sleep(3 * time.Second)
		for _, home := range []string{"a", "b"} {
			if lines := c.log.Lines("took over sessions", "replica="+home); len(lines) != 1 || !strings.Contains(lines[0], "sessions=25") {
				w.t.Errorf("of %s: got the lines %q, want one with 25 sessions", home, lines)
			}
		}
		if lines := c.log.Lines("took over sessions"); len(lines) != 2 {
			w.t.Errorf("got %d lines, want 2", len(lines))
		}
	})
}

func TestFind_WaitsForSilentHome(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.node("a"), w.node("b")
		s := a.session("s")
		w.net.Isolate("a:80", true)
		a.leases.SetCut(true)
		expectError(w.t, b, s, cluster.ErrUnavailable)
		expect(w.t, a, s, "a")
		time.Sleep(4900 * time.Millisecond)
		expectError(w.t, b, s, cluster.ErrUnavailable)
		time.Sleep(6 * time.Second)
		expectError(w.t, a, s, cluster.ErrUnavailable)
		if a.ended.Load() != 1 {
			w.t.Errorf("got %d calls of Ended, want 1", a.ended.Load())
		}
		expect(w.t, b, s, "b")
		w.net.Isolate("a:80", false)
		a.leases.SetCut(false)
		time.Sleep(3 * time.Second)
		b.asEdge(s)
		expect(w.t, a, s, "b")
		if got := len(b.Members()); got != 2 {
			w.t.Errorf("got %d replicas, want both again", got)
		}
	})
}

func TestFind_StoreLost(t *testing.T) {
	inBubble(t, func(w *world) {
		all := []*node{w.node("a"), w.node("b"), w.node("c")}
		for _, n := range all {
			n.leases.SetCut(true)
		}
		time.Sleep(time.Minute)
		for _, n := range all {
			expect(w.t, n, n.session("s"+n.name), n.name)
			if n.ended.Load() != 0 {
				w.t.Errorf("%s has lost its lease", n.name)
			}
		}
		expectError(w.t, all[0], all[1].session("s"), cluster.ErrUnavailable)
		for _, n := range all {
			n.leases.SetCut(false)
		}
		time.Sleep(3 * time.Second)
		s := all[1].session("s")
		all[1].asEdge(s)
		expect(w.t, all[0], s, "b")
	})
}

func TestFind_HomeWithoutStoreIsForwardedTo(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.node("a"), w.node("b")
		s := a.session("s")
		a.asEdge(s)
		a.leases.SetCut(true)
		time.Sleep(time.Minute)
		expect(w.t, a, s, "a")
		expect(w.t, b, s, "a")
	})
}

func TestEnd(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.node("a"), w.node("b")
		s := a.session("s")
		if err := a.dir.End(w.t.Context(), s); err != nil {
			w.t.Fatal(err)
		}
		a.crash()
		expectError(w.t, b, s, cluster.ErrEnded)
	})
}

// What a client ends while the store is away is stored when it is back.
func TestEnd_WithoutStore(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.node("a"), w.node("b")
		s := a.session("s")
		a.leases.SetCut(true)
		if err := a.dir.End(w.t.Context(), s); err != nil {
			w.t.Fatal(err)
		}
		if err := a.dir.Save(s, []byte("late")); err != nil {
			w.t.Error(err)
		}
		a.leases.SetCut(false)
		time.Sleep(2 * time.Second)
		a.crash()
		expectError(w.t, b, s, cluster.ErrEnded)
	})
}

// A replica that has lost the store could not take a session that is handed over.
func TestElsewhere_WithoutTheStore(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.node("a"), w.node("b")
		for _, cut := range []bool{false, true, false} {
			b.leases.SetCut(cut)
			time.Sleep(4 * time.Second)
			if _, ok := a.dir.Elsewhere(); ok == cut {
				w.t.Errorf("the store is cut off from the other replica (%t): got it as a place (%t)", cut, ok)
			}
		}
	})
}

// A replica that has the store back does not take what another wrote meanwhile, before that one lost the store, for new.
func TestElsewhere_WithTheStoreAgain(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.node("a"), w.node("b")
		a.leases.SetCut(true)
		time.Sleep(5 * time.Second) // b renews its lease
		b.leases.SetCut(true)
		time.Sleep(5 * time.Second)
		a.leases.SetCut(false)
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if _, ok := a.dir.Elsewhere(); ok {
				w.t.Fatal("a replica without the store is a place for sessions")
			}
		}
		b.leases.SetCut(false)
		time.Sleep(4 * time.Second)
		if _, ok := a.dir.Elsewhere(); !ok {
			w.t.Error("a replica that has the store again is no place for sessions")
		}
	})
}

// A replica remembers that it has taken a session when it learns late that another is no longer the home.
func TestForward_MovedHere(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.node("a"), w.node("b")
		s := a.session("s")
		began, moved := make(chan struct{}), make(chan struct{})
		a.serve(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				close(began)
				<-moved
			}
			w.WriteHeader(http.StatusMisdirectedRequest)
		})
		place, err := b.dir.Find(w.t.Context(), s)
		if err != nil {
			w.t.Fatal(err)
		}
		forwarded := make(chan error)
		go func() {
			forwarded <- place.Forward(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/mcp", nil))
		}()
		<-began
		a.Drain()
		synctest.Wait()
		to, _ := a.dir.Elsewhere()
		if err := a.dir.HandOver(w.t.Context(), s, to, func() ([]byte, bool) { return nil, true }); err != nil {
			w.t.Fatal(err)
		}
		expect(w.t, b, s, "b")
		close(moved)
		if err := <-forwarded; !errors.Is(err, cluster.ErrMoved) {
			w.t.Errorf("got the error %v, want ErrMoved", err)
		}
		b.leases.SetCut(true)
		expect(w.t, b, s, "b")
	})
}

// A replica that has just started takes the lease that it reads for no sign that its holder reaches the store, and
// others do not take it for one that can take sessions before it has joined.
func TestElsewhere_AtTheStart(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.node("a")
		joining := make(chan struct{})
		slow := w.prepare("slow", "slow:80", func(c *cluster.Config) {
			dial := c.Dial
			c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				<-joining
				return dial(ctx, network, address)
			}
		})
		var started sync.WaitGroup
		started.Go(func() { _ = slow.Start(w.t.Context()) })
		synctest.Wait()
		if _, ok := a.dir.Elsewhere(); ok {
			w.t.Error("a replica that has not joined is a place for sessions")
		}
		close(joining)
		started.Wait()
		synctest.Wait()
		if _, ok := a.dir.Elsewhere(); !ok {
			w.t.Error("a replica that has just joined is no place for sessions")
		}
		slow.crash()
		a.leases.SetCut(true)
		b := w.node("b")
		if _, ok := b.dir.Elsewhere(); ok {
			w.t.Error("a replica that has lost the store is a place for sessions")
		}
		a.leases.SetCut(false)
		time.Sleep(2 * time.Second)
		if _, ok := b.dir.Elsewhere(); !ok {
			w.t.Error("a replica that has the store again is no place for sessions")
		}
	})
}

// slow is a State that takes a while to store.
type slow struct{ shared.State }

func (s slow) Put(ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration) (uint64, error) {
	time.Sleep(100 * time.Millisecond)
	return s.State.Put(ctx, key, value, revision, ttl)
}

// A replica that has started can take the sessions of one that drains next, as in a rolling restart.
func TestElsewhere_Started(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.node("a")
		w.node("b", func(c *cluster.Config) { c.Leases = slow{c.Leases} })
		synctest.Wait()
		if _, ok := a.dir.Elsewhere(); !ok {
			w.t.Error("a replica that has started is no place for sessions")
		}
	})
}

func TestHandOver(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b, c := w.node("a"), w.node("b"), w.node("c")
		s := a.session("s")
		a.asEdge(s)
		b.asEdge(s)
		a.Drain()
		synctest.Wait()
		to, ok := a.dir.Elsewhere()
		if !ok {
			w.t.Fatal("nobody else is there")
		}
		busy := func() ([]byte, bool) { return nil, false }
		if err := a.dir.HandOver(w.t.Context(), s, to, busy); !errors.Is(err, cluster.ErrBusy) {
			w.t.Errorf("got %v, want ErrBusy", err)
		}
		expect(w.t, a, s, "a")
		idle := func() ([]byte, bool) { return []byte("state"), true }
		if err := a.dir.HandOver(w.t.Context(), s, to, idle); err != nil {
			w.t.Fatal(err)
		}
		c.asEdge(s)
		first, err := a.get(s)
		if err != nil || first == "a" {
			w.t.Errorf("got %q (%v), want another replica", first, err)
		}
		for _, n := range []*node{b, c} {
			expect(w.t, n, s, first)
		}
		if state, _ := b.dir.Load(w.t.Context(), s); string(state) != "state" {
			w.t.Errorf("got the state %q", state)
		}
		if err := a.Leave(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		a.crash()
		expect(w.t, b, a.session("other"), "b")
	})
}

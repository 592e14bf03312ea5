package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/cluster"
	"github.com/agenticnexus/agenticnexus/internal/shared"
)

func TestStart_StoreUnreachable(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.prepare("a", "a:80")
		n.leases.SetCut(true)
		ctx, cancel := context.WithTimeout(w.t.Context(), 15*time.Second)
		defer cancel()
		if err := n.Start(ctx); !errors.Is(err, shared.ErrUnreachable) || strings.Contains(err.Error(), "\n") {
			w.t.Errorf("got %v, want in one line that the store cannot be reached", err)
		}
	})
}

func TestStart_SameName(t *testing.T) {
	for _, test := range []struct {
		name   string
		before func(w *world, a *node)
		want   string // part of the error; empty = it starts
	}{
		{"running", func(*world, *node) {}, `the name "a": it runs at http://a:80`},
		{"crashed", func(_ *world, a *node) { a.crash() }, ""},
		{"cut off", func(w *world, a *node) { w.net.Isolate("a:80", true); a.leases.SetCut(true) }, ""},
		{"cut off from the others alone", func(w *world, a *node) { w.net.Isolate("a:80", true) }, "neither answers nor ends"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				a := w.node("a")
				second := w.prepare("a", "b:80")
				test.before(w, a)
				ctx, cancel := context.WithTimeout(w.t.Context(), 15*time.Second)
				defer cancel()
				err := second.Start(ctx)
				if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
					w.t.Errorf("got %v, want %q", err, test.want)
				}
				if test.want != "" && a.ended.Load() > 0 {
					w.t.Error("the first replica has lost its lease")
				}
			})
		})
	}
}

// What a replica advertises is to reach that replica alone.
func TestStart_Address(t *testing.T) {
	for _, test := range []struct{ name, address, want, log string }{
		{"its own", "http://b:80", "", ""},
		{"that of another replica", "http://a:80", "another replica answers at http://a:80", ""},
		{"nobody's", "http://nobody:80", "", "does not reach itself"},
		{"that of another program", "http://program:80", "", "what answers at the address of the replica is no replica"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				a := w.node("a")
				program := http.Server{Handler: http.NotFoundHandler()}
				listener := w.net.Listen("program:80")
				var served sync.WaitGroup
				served.Go(func() { _ = program.Serve(listener) }) // until it is closed
				defer served.Wait()
				defer program.Close()
				b := w.prepare("b", "b:80", func(c *cluster.Config) { c.Address = test.address })
				err := b.Start(w.t.Context())
				if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
					w.t.Errorf("got %v, want %q", err, test.want)
				}
				if log := b.log.String(); strings.Contains(log, "level=WARN") != (test.log != "") || !strings.Contains(log, test.log) {
					w.t.Errorf("log %s, want %q", log, test.log)
				}
				synctest.Wait()
				if got := len(a.Members()); test.want != "" && got != 1 {
					w.t.Errorf("got %d replicas, want that which refused to start not to be one", got)
				}
			})
		})
	}
}

// The log tells when a replica does not answer, once a minute.
func TestUnreached(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.node("a"), w.node("b")
		s := b.session("s")
		w.net.Isolate("b:80", true)
		for range 3 {
			if _, err := a.get(s); !errors.Is(err, cluster.ErrUnavailable) {
				w.t.Errorf("got %v, want %v", err, cluster.ErrUnavailable)
			}
		}
		if log := a.log.String(); strings.Count(log, "another replica does not answer") != 1 || !strings.Contains(log, "address=http://b:80") {
			w.t.Errorf("log %s, want one line that names b", log)
		}
	})
}

func TestStart_PredecessorAtSameAddress(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.node("a")
		s := a.session("s")
		a.crash()
		start := time.Now()
		again := w.node("a")
		if took := time.Since(start); took > time.Second {
			w.t.Errorf("starting again took %v", took)
		}
		expect(w.t, again, s, "a")
		if got := again.Members(); len(got) != 1 || !got[0].Self {
			w.t.Errorf("got the replicas %+v, want itself alone", got)
		}
	})
}

func TestMembers(t *testing.T) {
	inBubble(t, func(w *world) {
		digest := "d"
		a, b := w.node("a", func(c *cluster.Config) { c.Digest = func() string { return digest } }), w.node("b")
		other := w.node("c", func(c *cluster.Config) { c.Version = "2.0.0" })
		synctest.Wait()
		got := ""
		for _, m := range a.Members() {
			got += fmt.Sprintln(m.Name, m.Address, m.Version, m.Sessions, m.Draining, m.Self, m.Incarnation != 0, time.Since(m.Started) < time.Minute)
		}
		want := "a http://a:80 1.0.0 3 false true true true\nb http://b:80 1.0.0 3 false false true true\n" +
			"c http://c:80 2.0.0 3 false false true true\n"
		if got != want {
			w.t.Errorf("got the replicas\n%swant\n%s", got, want)
		}
		const warning = "another replica has another configuration or version"
		if log := b.log.String(); strings.Count(log, warning) != 1 || !strings.Contains(log, "replica=c") {
			w.t.Errorf("got the log %s, want one warning", log)
		}
		digest = "reloaded"
		a.Drain() // renews the lease
		synctest.Wait()
		if log := b.log.String(); strings.Count(log, warning) != 2 || !strings.Contains(log, "replica=a") {
			w.t.Errorf("got the log %s, want a second warning", log)
		}
		b.Drain()
		synctest.Wait()
		if m := a.Members(); !m[1].Draining {
			w.t.Errorf("got %+v, want b to drain", m)
		}
		for range 20 {
			if to, ok := b.dir.Elsewhere(); !ok || to.Here() {
				w.t.Fatal("b finds nobody else")
			}
		}
		w.net.Isolate("c:80", true)
		other.leases.SetCut(true)
		time.Sleep(15 * time.Second)
		if m := a.Members(); len(m) != 2 {
			w.t.Errorf("got %+v, want c to have left the list", m)
		}
	})
}

func TestLease_LostAnswersAreHarmless(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.node("a")
		id := a.dir.Self()
		for range 10 {
			a.leases.Lose.Store(1)
			time.Sleep(3 * time.Second)
		}
		if a.dir.Self() != id || a.ended.Load() != 0 {
			w.t.Errorf("got the incarnation %x after %x", a.dir.Self(), id)
		}
	})
}

func TestLease_FencedWhileItLives(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.node("a"), w.node("b")
		s := a.session("s")
		_ = a.server.Close() // refuses connections, as no living replica should
		expect(w.t, b, s, "b")
		time.Sleep(3 * time.Second)
		if a.ended.Load() != 1 || a.dir.Self() == s.Home {
			w.t.Errorf("got %d ends of sessions at the replica that was fenced, want 1", a.ended.Load())
		}
	})
}

func TestSave(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.node("a"), w.node("b")
		s, ended := a.session("s"), a.session("ended")
		for i := range 100 {
			if err := a.dir.Save(s, fmt.Append(nil, "state ", i)); err != nil {
				w.t.Fatal(err)
			}
		}
		if err := a.dir.Save(s, make([]byte, 70<<10)); err == nil {
			w.t.Error("a state of 70 KiB is saved")
		}
		_ = a.dir.Save(ended, []byte("x"))
		if err := a.dir.End(w.t.Context(), ended); err != nil {
			w.t.Fatal(err)
		}
		synctest.Wait()
		got, err := b.dir.Load(w.t.Context(), s)
		if string(got) != "state 99" || err != nil {
			w.t.Errorf("got %q (%v), want the last state", got, err)
		}
		if err := b.dir.End(w.t.Context(), s); !errors.Is(err, cluster.ErrMoved) {
			w.t.Errorf("ending a session elsewhere: got %v, want ErrMoved", err)
		}
		a.leases.SetCut(true)
		_ = a.dir.Save(s, []byte("later"))
		n, full, large := 0, error(nil), make([]byte, 60<<10)
		for ; full == nil && n < 1000; n++ {
			full = a.dir.Save(a.session(fmt.Sprint("n", n)), large)
		}
		if n < 100 || n > 150 {
			w.t.Errorf("%d states of 60 KiB wait, want some 8 MiB of them", n)
		}
		for range 100 {
			if err := a.dir.Save(a.session("n1"), large[1:]); err != nil {
				w.t.Errorf("replacing a state that waits: %v", err)
			}
		}
		late := a.session("late")
		if err := a.dir.End(w.t.Context(), late); err != nil {
			w.t.Errorf("ending a session while states wait: %v", err)
		}
		synctest.Wait()
		if log := a.log.String(); strings.Count(log, "cannot save") != 1 {
			w.t.Errorf("got the log %s, want one line about the states that cannot be saved", log)
		}
		a.leases.SetCut(false)
		if err := a.Leave(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		expectError(w.t, b, late, cluster.ErrEnded)
		for tag, want := range map[string]string{"s": "later", "n17": string(large), "ended": ""} {
			if got, err := b.dir.Load(w.t.Context(), cluster.Session{Tag: tag}); string(got) != want || err != nil {
				w.t.Errorf("%s: got %.20q (%v), want %.20q", tag, got, err, want)
			}
		}
		if err := a.dir.Save(s, []byte("x")); !errors.Is(err, cluster.ErrUnavailable) {
			w.t.Errorf("saving after leaving: got %v", err)
		}
	})
}

// slowState is a store in which writes to sessions wait.
type slowState struct {
	shared.State
	written chan struct{}
}

// Put implements shared.State.
func (s slowState) Put(ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration) (uint64, error) {
	if strings.HasPrefix(key, "session/") {
		<-s.written
	}
	return s.State.Put(ctx, key, value, revision, ttl)
}

// A replica leaves when what it is about to save is stored.
func TestLeave_WaitsForSaving(t *testing.T) {
	inBubble(t, func(w *world) {
		written := make(chan struct{})
		a := w.node("a", func(c *cluster.Config) { c.Sessions = slowState{c.Sessions, written} })
		b := w.node("b")
		s := a.session("s")
		if err := a.dir.Save(s, []byte("state")); err != nil {
			w.t.Fatal(err)
		}
		synctest.Wait()
		left := make(chan error, 1)
		go func() { left <- a.Leave(w.t.Context()) }()
		synctest.Wait()
		if len(left) > 0 {
			w.t.Error("the replica leaves before its state is stored")
		}
		close(written)
		if err := <-left; err != nil {
			w.t.Errorf("Leave: got %v", err)
		}
		if state, err := b.dir.Load(w.t.Context(), s); string(state) != "state" || err != nil {
			w.t.Errorf("got the state %q (%v), want what was saved", state, err)
		}
	})
}

// TestLease_RaceOfFenceAndRenewal lets a replica try to fence another whose renewals it does not see.
func TestLease_RaceOfFenceAndRenewal(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.node("a"), w.node("b")
		s := a.session("s")
		b.leases.SetBlind(true)
		w.net.Isolate("a:80", true)
		time.Sleep(10 * time.Second)
		expectError(w.t, b, s, cluster.ErrUnavailable)
		expect(w.t, a, s, "a")
		if a.ended.Load() != 0 {
			w.t.Error("a was fenced although it renews its lease")
		}
	})
}

func TestFind_UnknownHome(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.node("a")
		s := cluster.Session{Home: 77, Tag: "s", Ends: time.Now().Add(time.Hour)}
		expectError(w.t, a, s, cluster.ErrUnavailable)
		time.Sleep(8 * time.Second)
		expect(w.t, a, s, "a")
		expect(w.t, a, cluster.Session{Tag: "old", Ends: time.Now().Add(time.Hour)}, "a")
	})
}

func TestMembers_AreBounded(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.node("a"), w.node("b")
		for i := range 1500 {
			key := fmt.Sprintf("replica/%016x", i+1)
			if _, err := w.store.Put(w.t.Context(), key, []byte(`{"ended":true}`), 0, 0); err != nil {
				w.t.Fatal(err)
			}
		}
		forged := []byte(`{"name":"x","address":"http://x:80","mac":"x"}`)
		if _, err := w.store.Put(w.t.Context(), "replica/ffffffffffffffff", forged, 0, 0); err != nil {
			w.t.Fatal(err)
		}
		for _, bad := range []string{"replica/x", "replica/00000000000000zz"} {
			_, _ = w.store.Put(w.t.Context(), bad, []byte(`{`), 0, 0)
		}
		synctest.Wait()
		s := b.session("s")
		b.asEdge(s)
		expect(w.t, a, s, "b")
		expect(w.t, a, cluster.Session{Home: 3, Tag: "old", Ends: time.Now().Add(time.Hour)}, "a")
		if got := len(a.Members()); got != 2 {
			w.t.Errorf("got %d replicas, want 2", got)
		}
	})
}

func TestDirectory_At(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.node("a"), w.node("b")
		id := a.dir.Self()
		if place, err := b.dir.At(id); err != nil || place.Here() {
			w.t.Errorf("got %v, want the replica", err)
		}
		w.net.Isolate("a:80", true)
		a.leases.SetCut(true)
		time.Sleep(6500 * time.Millisecond)
		if _, err := b.dir.At(id); err == nil {
			w.t.Error("got a replica that is silent")
		}
		time.Sleep(5 * time.Second)
		for _, id := range []uint64{id, 99} {
			if _, err := b.dir.At(id); !errors.Is(err, cluster.ErrEnded) {
				w.t.Errorf("got %v, want ErrEnded", err)
			}
		}
		if _, err := cluster.Alone().At(id); !errors.Is(err, cluster.ErrEnded) {
			w.t.Errorf("alone: got %v, want ErrEnded", err)
		}
	})
}

func TestHandOver_WithoutStore(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.node("a"), w.node("b")
		s := a.session("s")
		synctest.Wait() // until b has renewed its lease
		to, ok := a.dir.Elsewhere()
		if !ok {
			w.t.Fatal("nobody else is there")
		}
		idle := func() ([]byte, bool) { return nil, true }
		if err := a.dir.HandOver(w.t.Context(), s, to, idle); !errors.Is(err, cluster.ErrUnavailable) {
			w.t.Errorf("without draining: got %v", err)
		}
		a.Drain()
		a.leases.SetCut(true)
		if err := a.dir.HandOver(w.t.Context(), s, to, idle); !errors.Is(err, cluster.ErrUnavailable) {
			w.t.Errorf("without the store: got %v", err)
		}
		expectError(w.t, a, s, cluster.ErrUnavailable)
		a.leases.SetCut(false)
		a.leases.Lose.Store(1)
		if err := a.dir.HandOver(w.t.Context(), s, to, idle); !errors.Is(err, cluster.ErrUnavailable) {
			w.t.Errorf("with a lost answer: got %v", err)
		}
		b.asEdge(s)
		expect(w.t, a, s, "b")
		expect(w.t, b, s, "b")
	})
}

func TestEnd_AdoptedSession(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.node("a"), w.node("b")
		s := a.session("s")
		a.crash()
		expect(w.t, b, s, "b")
		if err := b.dir.End(w.t.Context(), s); err != nil {
			w.t.Fatal(err)
		}
		expectError(w.t, b, s, cluster.ErrEnded)
		if err := b.dir.End(w.t.Context(), s); err != nil {
			w.t.Errorf("ending it again: %v", err)
		}
	})
}

// Replicas whose clocks differ say so once, with both names and the difference, and live on.
func TestMembers_ClocksApart(t *testing.T) {
	for name, test := range map[string]struct {
		ahead time.Duration
		want  string // empty = no line
	}{
		"ahead":    {5 * time.Minute, "this=b other=a \"other is ahead by\"=5m0s"},
		"behind":   {-5 * time.Minute, "this=b other=a \"other is ahead by\"=-5m0s"},
		"a little": {5 * time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				a := w.node("a", func(c *cluster.Config) {
					c.Leases = &version{c.Leases, func(entry map[string]any) {
						if clock, ok := entry["clock"].(string); ok {
							at, err := time.Parse(time.RFC3339Nano, clock)
							if err != nil {
								t.Error(err)
							}
							entry["clock"] = at.Add(test.ahead)
						}
					}}
				})
				b := w.node("b")
				time.Sleep(time.Minute)
				lines := b.log.Lines("the clocks of two replicas differ")
				if test.want == "" && len(lines) != 0 || test.want != "" && (len(lines) != 1 || !strings.Contains(lines[0], test.want)) {
					w.t.Errorf("got the lines %q, want %q once", lines, test.want)
				}
				s := a.session("s")
				expect(w.t, b, s, "a")
				a.crash()
				expect(w.t, b, s, "b")
			})
		})
	}
}

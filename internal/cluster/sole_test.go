package cluster_test

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/cluster"
)

// stage counts the replicas that run the server "work".
type stage struct {
	mu      sync.Mutex
	running map[string]bool // by replica
	most    int
	moves   int
	closes  int
}

func (s *stage) set(name string, runs bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if runs && !s.running[name] {
		s.moves++
	}
	if s.running[name] = runs; !runs {
		delete(s.running, name)
	}
	s.most = max(s.most, len(s.running))
}

// now returns who runs the server, "" if nobody does.
func (s *stage) now() (name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name = range maps.Keys(s.running) {
	}
	return name
}

// actor is a replica on the stage.
type actor struct {
	*node
	sole *cluster.Sole
	mu   sync.Mutex
	at   cluster.Holder
}

func (a *actor) holder() cluster.Holder {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at
}

// actor starts a replica whose server takes half a second to close, and ends at once when it is cut off.
func (s *stage) actor(w *world, name string) *actor {
	a := &actor{}
	a.node = w.prepare(name, name+":80", func(c *cluster.Config) {
		ended := c.Ended
		c.Ended = func(id uint64) { a.sole.Lapsed(); ended(id) }
	})
	a.sole = cluster.NewSole(a.Replica)
	a.sole.Names = func() []string { return []string{"work"} }
	a.sole.Place = func(holders map[string]cluster.Holder) {
		a.mu.Lock()
		a.at = holders["work"]
		a.mu.Unlock()
		if holders["work"].Here {
			s.set(name, true)
		}
	}
	a.sole.Close = func(ctx context.Context, _ string) {
		select {
		case <-time.After(time.Second / 2):
		case <-ctx.Done():
		}
		s.set(name, false)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.closes++
	}
	if err := a.Start(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	a.sole.Start()
	w.t.Cleanup(a.sole.Stop)
	return a
}

// die ends the process.
func (a *actor) die(s *stage) {
	a.crash()
	a.sole.Stop()
	s.set(a.name, false)
}

// A server runs once. It moves when its replica dies, leaves or is cut off, and stays where it is without the store.
func TestSole(t *testing.T) {
	for name, test := range map[string]struct {
		do    func(w *world, s *stage, all map[string]*actor)
		after time.Duration
		want  string // who runs it then; "" is another than a
	}{
		"stays":  {func(*world, *stage, map[string]*actor) {}, time.Minute, "a"},
		"killed": {func(_ *world, s *stage, all map[string]*actor) { all["a"].die(s) }, 9 * time.Second, ""},
		"frozen": {func(w *world, _ *stage, all map[string]*actor) {
			w.net.Isolate("a:80", true)
			all["a"].leases.SetCut(true)
		}, 10 * time.Second, ""},
		"cut off from the store": {func(_ *world, _ *stage, all map[string]*actor) { all["a"].leases.SetCut(true) }, time.Minute, "a"},
		"no store": {func(_ *world, _ *stage, all map[string]*actor) {
			for _, a := range all {
				a.leases.SetCut(true)
			}
		}, time.Minute, "a"},
		"drained": {func(_ *world, _ *stage, all map[string]*actor) { all["a"].Drain() }, 2 * time.Second, ""},
		"left": {func(w *world, _ *stage, all map[string]*actor) {
			all["a"].sole.Release(w.t.Context())
			all["a"].sole.Stop()
			if err := all["a"].Leave(w.t.Context()); err != nil {
				w.t.Error(err)
			}
		}, 2 * time.Second, ""},
		"partition heals": {func(w *world, _ *stage, all map[string]*actor) {
			for range 5 {
				w.net.Isolate("a:80", true)
				all["a"].leases.SetCut(true)
				time.Sleep(20 * time.Second)
				w.net.Isolate("a:80", false)
				all["a"].leases.SetCut(false)
				time.Sleep(5 * time.Second)
			}
		}, 10 * time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				s, all := &stage{running: map[string]bool{}}, map[string]*actor{}
				for _, name := range []string{"a", "b", "c"} {
					all[name] = s.actor(w, name)
					time.Sleep(time.Second)
				}
				if s.now() != "a" || all["b"].holder().Peer == nil || all["c"].holder().Name != "a" {
					t.Fatalf("at the start: got %q, %+v, want a everywhere", s.now(), all["c"].holder())
				}
				test.do(w, s, all)
				time.Sleep(test.after)
				switch now := s.now(); {
				case test.want != "" && (now != test.want || s.moves != 1):
					t.Errorf("it runs at %q after %d moves, want %s and one", now, s.moves, test.want)
				case test.want == "" && (now == "" || now == "a" && name != "partition heals"):
					t.Errorf("it runs at %q, want b or c", now)
				case test.want == "":
					if at := all[now].holder(); !at.Here {
						t.Errorf("%s has %+v, want it to run it", now, at)
					}
				}
				if s.most != 1 || s.closes >= s.moves {
					t.Errorf("%d replicas ran it at a time, and it was closed %d times, begun %d times", s.most, s.closes, s.moves)
				}
			})
		})
	}
}

package admission_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
)

// crowd runs calls in a queue, inside synctest. A call is named by its caller and session, as in "ann/1".
type crowd struct {
	t *testing.T
	q *admission.Queue

	mu      sync.Mutex
	began   []string
	refused map[string]int
	places  map[string][]*admission.Permit // of the calls that have begun, the first first
	wg      sync.WaitGroup
}

func newCrowd(t *testing.T, limit int) *crowd {
	return &crowd{t: t, q: admission.NewQueue(limit, limit), refused: map[string]int{}, places: map[string][]*admission.Permit{}}
}

// enter lets calls in, each once the one before has a place, waits or was refused.
func (c *crowd) enter(names ...string) {
	for _, name := range names {
		c.wg.Go(func() {
			caller, session, _ := strings.Cut(name, "/")
			p := new(admission.Permit)
			err := c.q.Enter(c.t.Context(), p, caller, session)
			c.mu.Lock()
			defer c.mu.Unlock()
			if err != nil {
				c.refused[name]++
				return
			}
			c.began = append(c.began, name)
			c.places[name] = append(c.places[name], p)
		})
		synctest.Wait()
	}
}

// first returns the longest call of a name.
func (c *crowd) first(name string) *admission.Permit {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.places[name][0]
}

// leave ends the longest call of each name in turn.
func (c *crowd) leave(names ...string) {
	for _, name := range names {
		p := c.first(name)
		c.mu.Lock()
		c.places[name] = c.places[name][1:]
		c.mu.Unlock()
		p.Leave()
		synctest.Wait()
	}
}

// empty ends all calls and checks that nothing is left.
func (c *crowd) empty() {
	c.t.Helper()
	for begun := 1; begun > 0; begun, _ = c.q.Load() {
		for _, name := range slices.Sorted(maps.Keys(c.places)) {
			for len(c.places[name]) > 0 {
				c.leave(name)
			}
		}
	}
	c.wg.Wait()
	if begun, waiting := c.q.Load(); begun != 0 || waiting != 0 {
		c.t.Errorf("got %d calls and %d waiting at the end, want none", begun, waiting)
	}
}

func (c *crowd) wantBegan(want ...string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.began, want) {
		c.t.Errorf("got the order %v, want %v", c.began, want)
	}
	c.began = nil
}

func (c *crowd) wantRefused(want map[string]int) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !maps.Equal(c.refused, want) {
		c.t.Errorf("got %v refused, want %v", c.refused, want)
	}
}

func times(n int, name string) []string { return slices.Repeat([]string{name}, n) }

// A caller that is alone gets all places and the whole queue.
func TestQueue_OneCallerUsesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 4)
		c.enter(times(10, "ann")...)
		if begun, waiting := c.q.Load(); begun != 4 || waiting != 4 {
			t.Errorf("got %d begun and %d waiting, want 4 and 4", begun, waiting)
		}
		c.wantRefused(map[string]int{"ann": 2})
		c.empty()
	})
}

// A caller with half of the places or more yields to others, whose sessions are many or one.
func TestQueue_CallersWithHalfYield(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 4)
		c.enter("flood/1", "flood/2", "flood/3", "flood/4", "flood/5", "flood/6", "flood/7", "flood/8")
		c.enter("bob", "bob", "cid")
		c.wantRefused(map[string]int{"flood/8": 1, "flood/7": 1, "flood/6": 1})
		c.wantBegan("flood/1", "flood/2", "flood/3", "flood/4")
		c.leave("flood/1") // it holds three now
		c.wantBegan("bob")
		c.leave("flood/2") // two are half
		c.wantBegan("cid")
		c.leave("cid") // and so they are still
		c.wantBegan("bob")
		c.leave("bob") // nobody else waits any more
		c.wantBegan("flood/5")
		c.empty()
	})
}

// Callers that wait take turns, and so do the sessions of each.
func TestQueue_Turns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 6)
		c.enter("x", "x", "y", "y", "z", "z") // nobody has half
		c.enter("ann/1", "ann/1", "ann/2", "bob/1", "bob/2", "cid")
		c.wantBegan("x", "x", "y", "y", "z", "z")
		c.leave("x", "x", "y", "y", "z", "z")
		c.wantBegan("ann/1", "bob/1", "cid", "ann/2", "bob/2", "ann/1")
		c.wantRefused(map[string]int{})
		c.empty()
	})
}

// In a full queue the newest call of whoever has most of them makes room, until that would not be fairer.
func TestQueue_MakesRoom(t *testing.T) {
	for _, tc := range []struct {
		name    string
		limit   int
		calls   []string
		refused map[string]int
	}{
		{"a flood of one caller", 20, slices.Concat(times(40, "flood"), times(2, "b"), times(2, "c"), times(2, "d")), map[string]int{"flood": 6}},
		{"a flood through sessions of its own", 2, []string{"flood/1", "flood/2", "flood/3", "flood/4", "b"}, map[string]int{"flood/4": 1}},
		{"half is enough", 4, slices.Concat(times(8, "a"), times(4, "b")), map[string]int{"a": 2, "b": 2}},
		{"a session of the same caller", 4, slices.Concat(times(8, "a/1"), times(3, "a/2")), map[string]int{"a/1": 2, "a/2": 1}},
		{"a session that would have as many calls", 3, slices.Concat(times(6, "a/1"), times(2, "a/2")), map[string]int{"a/1": 1, "a/2": 1}},
		{"one place: the caller that has it makes room", 1, []string{"a", "a", "b", "a", "b"}, map[string]int{"a": 2, "b": 1}},
		{"each caller has one call", 2, []string{"a", "b", "c", "d", "e"}, map[string]int{"e": 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrowd(t, tc.limit)
				c.enter(tc.calls...)
				c.wantRefused(tc.refused)
				c.empty()
			})
		})
	}
}

// A call that is cancelled while it waits has no place and takes none.
func TestQueue_Cancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1)
		c.enter("ann")
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("changed my mind")
		left := make(chan error, 1)
		go func() { left <- c.q.Enter(ctx, new(admission.Permit), "bob", "") }()
		synctest.Wait()
		if _, waiting := c.q.Load(); waiting != 1 {
			t.Errorf("got %d waiting, want 1", waiting)
		}
		cancel(cause)
		if err := <-left; !errors.Is(err, cause) {
			t.Errorf("got %v, want %v", err, cause)
		}
		c.empty()
	})
}

// A suspended call gives its place up and gets one back before any call that has not begun.
func TestQueue_Suspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 2)
		c.enter("ann", "ann", "bob", "bob")
		one, two := c.first("ann"), c.places["ann"][1]
		resumeOne, again, resumeTwo := one.Suspend(), one.Suspend(), two.Suspend()
		synctest.Wait()
		c.wantBegan("ann", "ann", "bob", "bob")
		if begun, waiting := c.q.Load(); begun != 4 || waiting != 0 {
			t.Errorf("got %d begun and %d waiting, want 4 and 0", begun, waiting)
		}
		c.enter("cid")
		back := make(chan string, 2)
		resumeOne(t.Context()) // it is asked a second time still: that does not wait
		go func() { resumeTwo(t.Context()); back <- "two" }()
		synctest.Wait()
		go func() { again(t.Context()); back <- "one" }()
		synctest.Wait()
		for _, want := range []string{"two", "one"} {
			select {
			case who := <-back:
				t.Errorf("%s goes on without a place", who)
			default:
			}
			c.leave("bob")
			if got := <-back; got != want {
				t.Errorf("got %s back, want %s", got, want)
			}
		}
		c.wantBegan()
		c.leave("ann")
		c.wantBegan("cid")
		c.empty()
	})
}

// Suspended calls are bounded: beyond the limit calls keep their places while they wait.
func TestQueue_SuspendIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 2)
		for i := range 2 {
			name := fmt.Sprint("asks", i)
			c.enter(name)
			c.first(name).Suspend()
		}
		c.enter("a", "b")
		resume := c.first("a").Suspend()
		c.enter("c")
		c.wantBegan("asks0", "asks1", "a", "b")
		resume(t.Context())
		c.wantBegan()
		c.empty()
	})
}

// A call that ends while it is suspended, or while it waits to go on, leaves nothing behind.
func TestQueue_LeaveSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1)
		c.enter("ann")
		resume := c.first("ann").Suspend()
		c.enter("bob", "cid")
		resumed := make(chan struct{})
		go func() { resume(t.Context()); close(resumed) }()
		synctest.Wait()
		c.leave("ann")
		<-resumed
		c.leave("bob")
		c.wantBegan("ann", "bob", "cid")
		ctx, cancel := context.WithCancel(t.Context())
		resume = c.first("cid").Suspend()
		c.enter("dan")
		resumed = make(chan struct{})
		go func() { resume(ctx); close(resumed) }()
		synctest.Wait()
		cancel()
		<-resumed
		c.first("cid").Suspend() // after its end: no effect
		c.empty()
	})
}

// Retire refuses what has not begun; Drain waits for the rest, suspended calls included.
func TestQueue_Retire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 2)
		c.enter("ann", "ann", "ann", "bob")
		resume := c.first("ann").Suspend()
		synctest.Wait()
		c.wantBegan("ann", "ann", "bob")
		c.q.Retire()
		synctest.Wait()
		c.wantRefused(map[string]int{"ann": 1})
		if err := c.q.Enter(t.Context(), new(admission.Permit), "eve", ""); !errors.Is(err, admission.ErrRetired) {
			t.Errorf("got %v, want %v", err, admission.ErrRetired)
		}
		if c.q.Pin() {
			t.Error("a retired queue was pinned")
		}
		drained := make(chan struct{})
		go func() { c.q.Drain(nil); close(drained) }()
		c.leave("bob")
		resume(t.Context())
		c.leave("ann")
		synctest.Wait()
		select {
		case <-drained:
			t.Error("drained with a call left")
		default:
		}
		c.first("ann").Suspend() // it is still a call that has begun
		synctest.Wait()
		select {
		case <-drained:
			t.Error("drained with a suspended call left")
		default:
		}
		c.leave("ann")
		<-drained
		c.q.Drain(nil)
		c.wg.Wait()
	})
}

// Calls that come, wait, ask, end and are cancelled in any order never are more than may be, and leave nothing.
func TestQueue_UnderLoad(t *testing.T) {
	const limit = 3
	q := admission.NewQueue(limit, limit)
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			for n := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				var p admission.Permit
				if n%3 == 0 {
					go cancel()
				}
				err := q.Enter(ctx, &p, fmt.Sprint("caller", i%5), fmt.Sprint("session", i%7))
				if err == nil {
					if n%2 == 0 {
						resume := p.Suspend()
						if time.Sleep(time.Microsecond); n%4 == 0 {
							resume(t.Context())
						}
					}
					p.Leave()
					p.Leave() // has no effect
				} else if ctx.Err() == nil && !errors.Is(err, admission.ErrFull) {
					t.Errorf("got %v, want a place or %v", err, admission.ErrFull)
				}
				if begun, waiting := q.Load(); begun > 2*limit || waiting > limit {
					t.Errorf("got %d begun and %d waiting, want %d and %d at most", begun, waiting, 2*limit, limit)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if begun, waiting := q.Load(); begun != 0 || waiting != 0 {
		t.Errorf("got %d calls and %d waiting at the end, want none", begun, waiting)
	}
}

func BenchmarkQueue(b *testing.B) {
	q := admission.NewQueue(4096, 4096)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			var p admission.Permit
			if err := q.Enter(context.Background(), &p, "ann", "1"); err != nil {
				b.Fatal(err)
			}
			p.Leave()
		}
	})
}

package limit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/agenticnexus/agenticnexus/internal/shared"
)

// replicas returns Rates that count together; their clocks differ by minutes.
func replicas(t *testing.T, state shared.State, n, requests int) []*Rate {
	t.Helper()
	var all []*Rate
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); wg.Wait() })
	for i := range n {
		skew := time.Duration(i) * 5 * time.Minute
		r := New(RateConfig{Requests: requests, Per: time.Minute}, func() time.Time { return time.Now().Add(skew) })
		r.Share(state, fmt.Sprintf("r%d", i), time.Now)
		wg.Go(func() { r.Run(ctx) })
		all = append(all, r)
	}
	return all
}

func TestReplicasCountTogether(t *testing.T) {
	for _, together := range []bool{false, true} {
		t.Run(fmt.Sprintf("concurrent=%v", together), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				state := shared.NewMemory()
				defer state.Close()
				all := replicas(t, state, 3, 20)
				synctest.Wait()
				var accepted atomic.Int64
				var wg sync.WaitGroup
				for i := range 300 {
					call := func() {
						if allow(all[i%3], "a") {
							accepted.Add(1)
						}
					}
					if together {
						wg.Go(call)
					} else {
						call()
					}
				}
				wg.Wait()
				if got := accepted.Load(); got < 20 || got > 23 {
					t.Errorf("300 calls over 3 replicas: got %d accepted, want 20 to 23", got)
				}
				if !allow(all[0], "b") {
					t.Error("another caller: got refused, want accepted")
				}
			})
		})
	}
}

// TestReplicasSlide checks every window of a long run.
func TestReplicasSlide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := shared.NewMemory()
		defer state.Close()
		all := replicas(t, state, 3, 10)
		synctest.Wait()
		var accepted []time.Time
		random := rand.New(rand.NewPCG(1, 2))
		for range 3000 {
			time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
			if allow(all[random.IntN(3)], "a") {
				accepted = append(accepted, time.Now())
			}
		}
		for i := range accepted {
			if j := i + 13; j < len(accepted) && accepted[j].Sub(accepted[i]) < time.Minute {
				t.Fatalf("14 calls were accepted within %v, want at most 13 in a minute", accepted[j].Sub(accepted[i]))
			}
		}
		minutes := int(accepted[len(accepted)-1].Sub(accepted[0]).Minutes())
		if len(accepted) < 9*minutes {
			t.Errorf("got %d calls accepted in %d minutes, want at least 9 per minute", len(accepted), minutes)
		}
	})
}

// Calls that a replica of another version has reported count, and what else its entry has does no harm.
func TestReplicas_Versions(t *testing.T) {
	for name, c := range map[string]struct {
		entry string // with the time
		want  int    // calls accepted of five
	}{
		"the same":       {`{"r9":[{"t":%d,"n":3}]}`, 2},
		"newer":          {`{"r9":[{"t":%d,"n":3,"tool":"a"}],"later":{"a":1},"list":["b"]}`, 2},
		"not understood": {`{"v":2,"r9":{"t":%d}}`, 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				state := shared.NewMemory()
				defer state.Close()
				all := replicas(t, state, 1, 5)
				synctest.Wait()
				digest := sha256.Sum256([]byte("a"))
				entry := fmt.Sprintf(c.entry, time.Now().UnixMilli())
				if _, err := state.Put(t.Context(), "rate/"+hex.EncodeToString(digest[:16]), []byte(entry), 0, 0); err != nil {
					t.Fatal(err)
				}
				got := 0
				for range 5 {
					if allow(all[0], "a") {
						got++
					}
					synctest.Wait()
				}
				if got < c.want || got > c.want+1 {
					t.Errorf("got %d calls accepted, want %d, or one more before the report", got, c.want)
				}
			})
		})
	}
}

// cut is a State that can be cut off.
type cut struct {
	shared.State
	off, fails atomic.Bool
}

func (c *cut) Connected() bool { return !c.off.Load() }

func (c *cut) Get(ctx context.Context, key string) (shared.Entry, error) {
	if c.off.Load() || c.fails.Load() {
		return shared.Entry{}, shared.ErrUnreachable
	}
	return c.State.Get(ctx, key)
}

func TestReplicasWithoutState(t *testing.T) {
	for name, broken := range map[string]func(*cut){
		"disconnected": func(c *cut) { c.off.Store(true) },
		"failing":      func(c *cut) { c.fails.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := shared.NewMemory()
				defer memory.Close()
				state := &cut{State: memory}
				all := replicas(t, state, 2, 5)
				synctest.Wait()
				broken(state)
				began := time.Now()
				for i := range 5 {
					for _, r := range all {
						if !allow(r, "a") {
							t.Fatalf("call %d while the state is %s: got refused, want each replica to count alone", i, name)
						}
					}
				}
				if allow(all[0], "a") || allow(all[1], "a") {
					t.Error("beyond the limit of one replica: got accepted, want refused")
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("12 calls took %v, want no wait for the state", took)
				}
				state.off.Store(false)
				state.fails.Store(false)
				time.Sleep(61 * time.Second)
				n := 0
				for i := range 20 {
					if allow(all[i%2], "a") {
						n++
					}
				}
				if n < 5 || n > 7 {
					t.Errorf("after the state has returned: got %d calls accepted, want 5 to 7", n)
				}
			})
		})
	}
}

// TestFree compares with a sorted list of all calls.
func TestFree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := RateConfig{Requests: rapid.IntRange(1, 6).Draw(t, "requests"), Per: time.Minute}
		w, all, at := &window{}, []time.Time{}, time.UnixMilli(0)
		for range rapid.IntRange(0, 12).Draw(t, "calls") {
			at = at.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "seconds")) * time.Second)
			w.accept(at, c.Requests)
		}
		all = append(all, w.times...)
		until := int64(0)
		for range rapid.IntRange(0, 5).Draw(t, "slots") {
			until += int64(rapid.IntRange(0, 20_000).Draw(t, "milliseconds"))
			s := slot{until, rapid.IntRange(0, 4).Draw(t, "n")}
			w.others = append(w.others, s)
			all = append(all, slices.Repeat([]time.Time{time.UnixMilli(s.Until)}, s.Calls)...)
		}
		now := at.Add(time.Second)
		want := now
		if n := len(all) - c.Requests; n >= 0 {
			slices.SortFunc(all, time.Time.Compare)
			want = all[n].Add(c.Per)
		}
		if got := w.free(now, c); !got.Equal(want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// BenchmarkFree measures a call under a high limit that another replica's calls count against, too.
func BenchmarkFree(b *testing.B) {
	c := RateConfig{Requests: 20_000, Per: time.Minute}
	w, now := &window{}, time.Now()
	for range c.Requests / 2 {
		w.accept(now, c.Requests)
	}
	for n := range slots {
		w.others = append(w.others, slot{now.UnixMilli() + int64(n), c.Requests / slots})
	}
	for b.Loop() {
		w.free(now, c)
	}
}

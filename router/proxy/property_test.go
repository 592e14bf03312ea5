package proxy_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestInterleavings runs random schedules of three clients and three servers, whose ids and tokens collide
// on purpose, against a model: every response, notification and request reaches exactly its owner, once and
// in order. PROXY_SCHEDULES says how many, PROXY_SEED runs one again.
func TestInterleavings(t *testing.T) {
	schedules := 100 // make property runs more
	if n, err := strconv.Atoi(os.Getenv("PROXY_SCHEDULES")); err == nil {
		schedules = n
	}
	first := rand.Uint64()
	if seed, err := strconv.ParseUint(os.Getenv("PROXY_SEED"), 10, 64); err == nil {
		first, schedules = seed, 1
	}
	var next atomic.Int64
	var failed atomic.Bool
	var wg sync.WaitGroup
	began := time.Now()
	for range 2 * runtime.GOMAXPROCS(0) { // schedules wait more than they compute
		wg.Go(func() {
			for !failed.Load() {
				n := next.Add(1) - 1
				if n >= int64(schedules) {
					return
				}
				seed := first + uint64(n)
				ops := schedule(seed)
				if problems := execute(t, ops); len(problems) > 0 && !failed.Swap(true) {
					shrunk, left := shrink(t, ops, problems)
					t.Errorf("PROXY_SEED=%d: got a wrong outcome:\n%s\nof the schedule\n%s\nwhich is as short as:\n%s\nthere:\n%s",
						seed, strings.Join(problems, "\n"), write(ops), write(shrunk), strings.Join(left, "\n"))
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d schedules in %v", min(next.Load(), int64(schedules)), time.Since(began).Round(time.Millisecond))
}

// op is one thing that happens. What its numbers choose among is known when it happens.
type op struct {
	kind           string
	client, server int
	pick           int
}

// kinds of ops, the frequent ones several times.
var opKinds = strings.Fields(`call call call call call call progress progress progress progress respond respond respond refuse
	cancel cancel ask ask answer answer report announce announce note note restart leave settle`)

func schedule(seed uint64) []op {
	r := rand.New(rand.NewPCG(seed, 0))
	ops := make([]op, 5+r.IntN(25))
	for i := range ops {
		ops[i] = op{opKinds[r.IntN(len(opKinds))], r.IntN(3), r.IntN(3), r.IntN(1 << 16)}
	}
	return ops
}

func write(ops []op) string {
	lines := make([]string, len(ops))
	for i, o := range ops {
		lines[i] = fmt.Sprintf("  {%q, %d, %d, %d},", o.kind, o.client, o.server, o.pick)
	}
	return strings.Join(lines, "\n")
}

// shrink leaves out ops as long as the schedule still fails.
func shrink(t *testing.T, ops []op, problems []string) ([]op, []string) {
	end := time.Now().Add(time.Minute)
	for size := len(ops) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(ops) && time.Now().Before(end); {
			shorter := append(append([]op(nil), ops[:at]...), ops[at+size:]...)
			fails := false
			for range 5 { // it may depend on timing
				if p := execute(t, shorter); len(p) > 0 {
					fails, problems = true, p
					break
				}
			}
			if fails {
				ops = shorter
			} else {
				at += size
			}
		}
	}
	return ops, problems
}

// verdict is the testing.TB of one schedule: it keeps what went wrong instead of failing the test.
type verdict struct {
	testing.TB
	mu       sync.Mutex
	problems []string
	cleanups []func()
}

func (v *verdict) Helper()                           {}
func (v *verdict) Cleanup(f func())                  { v.cleanups = append(v.cleanups, f) }
func (v *verdict) Fatal(args ...any)                 { v.Fatalf("%s", fmt.Sprint(args...)) }
func (v *verdict) Fatalf(format string, args ...any) { v.Errorf(format, args...); runtime.Goexit() }
func (v *verdict) Errorf(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// execute runs a schedule in a world of its own and returns what went wrong.
func execute(t *testing.T, ops []op) []string {
	v := &verdict{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		m := newModel(v)
		for _, o := range ops {
			m.do(o)
		}
		m.finish()
	}()
	<-done
	for i := len(v.cleanups) - 1; i >= 0; i-- {
		ended := make(chan struct{})
		go func() { defer close(ended); v.cleanups[i]() }()
		<-ended
	}
	return v.problems
}

package limit

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

func TestLoadIsBounded(t *testing.T) {
	l := NewLoad(3, nil)
	for i, want := range []bool{true, true, true, false, false} {
		if got := l.Enter("a"); got != want {
			t.Errorf("request %d: got accepted %t, want %t", i+1, got, want)
		}
	}
	l.Leave("a")
	if !l.Enter("b") || l.Enter("b") || l.InFlight() != 3 {
		t.Errorf("after one has left: got %d in flight, want room for one", l.InFlight())
	}
}

// A client that takes all it can get leaves places to those who have few.
func TestLoadKeepsPlaces(t *testing.T) {
	l := NewLoad(1000, nil)
	flood := 0
	for l.Enter("flood") {
		flood++
	}
	if flood != 990 {
		t.Errorf("one client: got %d places, want 990 of 1000", flood)
	}
	other := 0
	for l.Enter("other") {
		other++
	}
	if other != 10 || l.Enter("third") {
		t.Errorf("another client: got %d places, want the last 10", other)
	}
	for range 3 {
		l.Leave("other")
	}
	if l.Enter("flood") || !l.Enter("third") || !l.Enter("other") {
		t.Error("with places free: want one for the third and one for the other, none for the first")
	}
	for range flood {
		l.Leave("flood")
	}
	if !l.Enter("other") {
		t.Error("once there is room: got refused, want accepted")
	}
}

func TestLoadUnderConcurrency(t *testing.T) {
	l := NewLoad(20, nil)
	var most, now atomic.Int64
	var wg sync.WaitGroup
	for i := range 16 {
		client := fmt.Sprint(i % 3)
		wg.Go(func() {
			for range 1000 {
				if l.Enter(client) {
					if n := now.Add(1); n > most.Load() {
						most.Store(n)
					}
					if rand.IntN(4) == 0 {
						time.Sleep(time.Microsecond)
					}
					now.Add(-1)
					l.Leave(client)
				}
			}
		})
	}
	wg.Wait()
	if most.Load() > 20 || l.InFlight() != 0 {
		t.Errorf("got %d at once and %d left, want 20 at most and none", most.Load(), l.InFlight())
	}
	for i := range l.clients {
		if n := len(l.clients[i].by); n != 0 {
			t.Errorf("got %d clients remembered, want none", n)
		}
	}
}

func TestMemoryIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var used int64
		var log bytes.Buffer
		m := newMemory(1000, slog.New(slog.NewTextHandler(&log, nil)), func() int64 { return used })
		l := NewLoad(10, m)
		want := func(what string, short bool) {
			t.Helper()
			if got := m.Short(); got != short {
				t.Errorf("%s: got short %t, want %t", what, got, short)
			}
			if ok := l.Enter("a"); ok == short {
				t.Errorf("%s: got a request accepted %t, want %t", what, ok, !short)
			} else if ok {
				l.Leave("a")
			}
		}
		want("nothing used", false)
		used = 751
		want("a moment after the last look", false)
		time.Sleep(sampleTime)
		want("more than the share", true)
		used = 750
		time.Sleep(sampleTime)
		want("the share", false)
		m.Hold(376)
		want("messages that need more than the share", true)
		m.Release(1)
		want("messages that need the share", false)
		if n := strings.Count(log.String(), "memory is short"); n != 1 {
			t.Errorf("log: got %d lines, want one each time that it begins:\n%s", n, log.String())
		}
	})
}

func TestMemoryOfTheRuntime(t *testing.T) {
	if NewMemory(slog.Default()) != nil {
		t.Skip("the tests run with a memory limit")
	}
	var none *Memory
	if none.Hold(1 << 60); none.Short() {
		t.Error("without a limit: got memory short, want never")
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(16 << 30))
	m := NewMemory(slog.New(slog.DiscardHandler))
	if m.limit != 12<<30 || m.Short() || m.used() <= 0 {
		t.Errorf("with 16 GiB: got new work refused above %d and %d in use, want 12 GiB", m.limit, m.used())
	}
}

func TestContainerLimit(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, tc := range map[string]struct {
		files fstest.MapFS
		want  int64
	}{
		"no control groups": {fstest.MapFS{}, 0},
		"v2 in a namespace": {fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("1000\n")}, 1000},
		"v2 without limit":  {fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("max\n")}, 0},
		"v2, the group above has less": {fstest.MapFS{"proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/memory.max": file("500"),
			"sys/fs/cgroup/a/b/memory.max": file("900")}, 500},
		"v1":               {fstest.MapFS{"proc/self/cgroup": file("5:cpu:/x\n4:memory:/x\n"), "sys/fs/cgroup/memory/x/memory.limit_in_bytes": file("700\n")}, 700},
		"v1 without limit": {fstest.MapFS{"proc/self/cgroup": file("4:memory:/\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n")}, 0},
		"no number":        {fstest.MapFS{"proc/self/cgroup": file("nonsense\n0::/\n"), "sys/fs/cgroup/memory.max": file("?")}, 0},
	} {
		if got := ContainerLimit(tc.files); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	l := NewLoad(10_000, newMemory(1<<40, slog.New(slog.DiscardHandler), used))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if l.Enter("addr:192.0.2.1") {
				l.Leave("addr:192.0.2.1")
			}
		}
	})
}

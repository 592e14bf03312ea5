package limit

import (
	"bytes"
	"log/slog"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

func TestMemoryIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var used int64
		var log bytes.Buffer
		m := newMemory(1000, slog.New(slog.NewTextHandler(&log, nil)), func() int64 { return used })
		l := NewBudget(Bounds{Requests: 10, Total: 1000, Own: 1000}, m)
		want := func(what string, short bool) {
			t.Helper()
			if got := l.Short(); got != short {
				t.Errorf("%s: got short %t, want %t", what, got, short)
			}
			if ok := l.Enter("a", 0); ok == short {
				t.Errorf("%s: got a request accepted %t, want %t", what, ok, !short)
			} else if ok {
				l.Leave("a", 0)
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
		l.Charge("b", 376)
		want("messages that need more than the share", true)
		l.Release("b", 1)
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
	if none.Short(1 << 60) {
		t.Error("without a limit: got memory short, want never")
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(16 << 30))
	m := NewMemory(slog.New(slog.DiscardHandler))
	if m.limit != 12<<30 || m.Short(0) || m.used() <= 0 {
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

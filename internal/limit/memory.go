package limit

import (
	"io/fs"
	"log/slog"
	"math"
	"path"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	memoryShare = 0.75                  // fraction of the limit above which memory is short
	copies      = 2                     // copies of a message that exist at the same time
	sampleTime  = 10 * time.Millisecond // validity of a runtime reading
	collectTime = time.Second           // between collections while memory is short
)

// Memory reports when new work should be refused because too much of the memory limit is in use: by live heap objects
// (as of the last collection) and stacks, or by the bytes that a Budget holds. The collector runs before the heap
// reaches the limit, so the figure is recent. If all work is refused and the heap does not grow, Short runs a
// collection. A nil Memory has no limit. It is safe for concurrent use.
type Memory struct {
	limit  int64
	logger *slog.Logger
	used   func() int64 // bytes in use according to the runtime

	looked    atomic.Int64 // when used was last called, in nanoseconds
	collected atomic.Int64 // when Short last ran a collection, in nanoseconds
	pressed   atomic.Bool  // the last reading was above the threshold
	began     time.Time
}

// NewMemory returns a Memory for the memory limit of the Go runtime (GOMEMLIMIT); nil if there is none.
func NewMemory(logger *slog.Logger) *Memory {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		return nil
	}
	return newMemory(limit, logger, used)
}

func newMemory(limit int64, logger *slog.Logger, used func() int64) *Memory {
	share := int64(memoryShare * float64(limit))
	return &Memory{limit: share, logger: logger, used: used, began: time.Now().Add(-sampleTime)}
}

// Short reports whether new work should be refused. held is the number of bytes held for callers.
func (m *Memory) Short(held int64) bool {
	if m == nil {
		return false
	}
	now, looked := int64(time.Since(m.began)), m.looked.Load()
	if now-looked >= int64(sampleTime) && m.looked.CompareAndSwap(looked, now) {
		used := m.used()
		if last := m.collected.Load(); used > m.limit && m.pressed.Load() &&
			now-last >= int64(collectTime) && m.collected.CompareAndSwap(last, now) {
			runtime.GC() // delays only this request
			used = m.used()
		}
		if short := used > m.limit; m.pressed.Swap(short) != short && short {
			m.logger.Warn("memory is short: new requests are refused", "used_mib", used>>20, "refused_above_mib", m.limit>>20)
		}
	}
	return m.pressed.Load() || copies*held > m.limit
}

// used returns the bytes of live heap objects and stacks.
func used() int64 {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() + samples[1].Value.Uint64())
}

// ContainerLimit returns the memory limit in bytes of this process's control group; 0 if there is none. root is the
// root of the file system.
func ContainerLimit(root fs.FS) int64 {
	least := int64(0)
	consider := func(file string) {
		text, err := fs.ReadFile(root, file)
		if err != nil {
			return
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err == nil && n > 0 && n < 1<<60 && (least == 0 || n < least) { // v1 represents no limit by a huge number
			least = n
		}
	}
	groups, _ := fs.ReadFile(root, "proc/self/cgroup") // without the file there is no limit
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		base, name := "sys/fs/cgroup", "memory.max"
		switch {
		case parts[1] == "memory":
			base, name = base+"/memory", "memory.limit_in_bytes"
		case parts[1] != "":
			continue
		}
		for group := path.Clean("/" + parts[2]); ; group = path.Dir(group) { // a group limits its children
			consider(path.Join(base, group, name))
			if group == "/" {
				break
			}
		}
	}
	return least
}

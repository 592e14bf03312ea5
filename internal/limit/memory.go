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
	memoryShare = 0.75                  // of the limit, above which memory is short
	copies      = 2                     // of a message that there are while it passes through
	sampleTime  = 10 * time.Millisecond // for which a look at the runtime holds
	collectTime = time.Second           // between the collections of memory that was short
)

// Memory tells when so much of the memory limit is in use that new work should be refused: what lives on the
// heap, as of the last collection, and the stacks, or the bytes that a Budget holds, whichever is more. With a
// limit the collector runs before the heap reaches it, so the figure is never older than that growth; and where
// all is refused and nothing grows, Short collects. nil has no limit. It is safe for concurrent use.
type Memory struct {
	limit  int64
	logger *slog.Logger
	used   func() int64 // bytes, by the runtime

	looked    atomic.Int64 // when used was last asked, in nanoseconds
	collected atomic.Int64 // when memory was last collected because it was short, likewise
	pressed   atomic.Bool  // used was above the share when it was asked
	began     time.Time
}

// NewMemory returns a Memory for the limit of the Go runtime (GOMEMLIMIT), nil if there is none.
func NewMemory(logger *slog.Logger) *Memory {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		return nil
	}
	return newMemory(limit, logger, used)
}

func newMemory(limit int64, logger *slog.Logger, used func() int64) *Memory {
	return &Memory{limit: int64(memoryShare * float64(limit)), logger: logger, used: used,
		began: time.Now().Add(-sampleTime)}
}

// Short reports whether new work should be refused. held is the bytes of messages in memory.
func (m *Memory) Short(held int64) bool {
	if m == nil {
		return false
	}
	now, looked := int64(time.Since(m.began)), m.looked.Load()
	if now-looked >= int64(sampleTime) && m.looked.CompareAndSwap(looked, now) {
		used := m.used()
		if last := m.collected.Load(); used > m.limit && m.pressed.Load() && now-last >= int64(collectTime) &&
			m.collected.CompareAndSwap(last, now) {
			runtime.GC() // only this request waits for it
			used = m.used()
		}
		if short := used > m.limit; m.pressed.Swap(short) != short && short {
			m.logger.Warn("memory is short: new requests are refused", "used_mib", used>>20, "refused_above_mib", m.limit>>20)
		}
	}
	return m.pressed.Load() || copies*held > m.limit
}

// used returns the bytes that live on the heap, and those of stacks.
func used() int64 {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() + samples[1].Value.Uint64())
}

// ContainerLimit returns the bytes of memory that the control group of this process may use, by the file
// system whose root is given; 0 if there is no limit.
func ContainerLimit(root fs.FS) int64 {
	least := int64(0)
	consider := func(file string) {
		text, err := fs.ReadFile(root, file)
		if err != nil {
			return
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err == nil && n > 0 && n < 1<<60 && (least == 0 || n < least) { // v1 writes a huge number for none
			least = n
		}
	}
	groups, _ := fs.ReadFile(root, "proc/self/cgroup") // where there is none, there is no limit
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
		for group := path.Clean("/" + parts[2]); ; group = path.Dir(group) { // each limits those below it
			consider(path.Join(base, group, name))
			if group == "/" {
				break
			}
		}
	}
	return least
}

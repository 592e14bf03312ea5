package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func logger() (*slog.Logger, *mcptest.Log) {
	l := &mcptest.Log{}
	return slog.New(slog.NewTextHandler(l, nil)), l
}

func closeLog(t *testing.T, l *Log) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		t.Error(err)
	}
}

// query and call are entries of a test.
func query(n int) Entry {
	return Entry{Kind: KindQuery, At: time.Now(), Caller: "key:a", Outcome: OutcomeOK, Text: fmt.Sprintf("Question %d", n), Duration: float64(n),
		TraceID: fmt.Sprintf("%032x", n+10), Uses: []Use{{Server: "hr", Tool: "get", Calls: 1}}}
}

func call(n int) Entry {
	return Entry{Kind: KindCall, At: time.Now(), Caller: "key:b", Outcome: "timeout", Duration: float64(n),
		Uses: []Use{{Server: "mail", Tool: "send", Calls: 1, Failed: 1}}}
}

func everyone(string) bool { return true }

func ids(entries []Entry) (out []uint64) {
	for _, e := range entries {
		out = append(out, e.ID)
	}
	return out
}

// Queries are there after a restart, with their details, and ids go on.
func TestRestart(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state")
	log, lines := logger()
	l := Open(folder, Default(), log)
	for n := range 20 {
		l.Add(call(n), nil, 0)
		l.Add(query(n), map[string]int{"n": n}, 10)
	}
	mcptest.Eventually(t, "the entries are there", func() bool { return l.Newest(everyone) == 40 })
	before, _ := l.Find(Filter{Kind: KindQuery}, 0, 100)
	closeLog(t, l)
	l = Open(folder, Default(), log)
	defer closeLog(t, l)
	if got := lines.String(); got != "" {
		t.Errorf("log: got %s, want nothing", got)
	}
	page, more := l.Find(Filter{}, 0, 15)
	if got := ids(page); got[0] != 40 || got[14] != 12 || more != 12 {
		t.Errorf("got %v and then %d, want the newest 15 of 20", got, more)
	}
	rest, more := l.Find(Filter{}, more, 100)
	if got := ids(rest); len(got) != 5 || got[0] != 10 || got[4] != 2 || more != 0 {
		t.Errorf("got %v and then %d, want the other 5", got, more)
	}
	page[0].At = before[0].At // the same instant, in another form
	if !reflect.DeepEqual(page[0], before[0]) {
		t.Errorf("got %+v after a restart, want %+v", page[0], before[0])
	}
	if got, err := l.Detail(page[0].ID); err != nil || string(got) != `{"n":19}` {
		t.Errorf("got %s, %v, want the detail of the newest query", got, err)
	}
	if info, err := os.Stat(filepath.Join(folder, fileName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want a file that its owner alone can read", info.Mode(), err)
	}
	l.Add(call(1), nil, 0)
	mcptest.Eventually(t, "the entries are there", func() bool { return l.Newest(everyone) == 41 })
	if _, err := l.Detail(41); !errors.Is(err, ErrNoDetail) {
		t.Errorf("got %v for a call, want ErrNoDetail", err)
	}
}

func TestFind(t *testing.T) {
	log, _ := logger()
	l := Open("", Default(), log)
	for n := range 10 {
		l.Add(query(n), nil, 0)
		l.Add(call(n), nil, 0)
	}
	closeLog(t, l)
	for _, row := range []struct {
		name   string
		filter Filter
		want   int
	}{
		{"all", Filter{}, 20},
		{"kind", Filter{Kind: KindQuery}, 10},
		{"caller", Filter{Caller: "key:b"}, 10},
		{"server", Filter{Server: "mail"}, 10},
		{"server and tool", Filter{Server: "hr", Tool: "get"}, 10},
		{"a tool of another server", Filter{Server: "hr", Tool: "send"}, 0},
		{"outcome", Filter{Outcome: "timeout"}, 10},
		{"failed", Filter{Failed: true}, 10},
		{"text", Filter{Text: "question 7"}, 1},
		{"trace id", Filter{Text: strings.Repeat("0", 31) + "F"}, 1},
		{"a longer text than is kept", Filter{Text: strings.Repeat("x", 1<<20)}, 0},
		{"longer", Filter{Longer: 8}, 4},
		{"since", Filter{Since: time.Now().Add(time.Hour)}, 0},
		{"until", Filter{Until: time.Now().Add(time.Hour)}, 20},
		{"seen", Filter{See: func(e *Entry) bool { return e.ID == 3 }}, 1},
	} {
		if got, _ := l.Find(row.filter, 0, 100); len(got) != row.want {
			t.Errorf("%s: got %d entries, want %d", row.name, len(got), row.want)
		}
	}
	if e, ok := l.Get(3); !ok || e.Text != "Question 1" {
		t.Errorf("got %+v, %t, want the third entry", e, ok)
	}
	if _, ok := l.Get(99); ok {
		t.Error("got an entry that was never added")
	}
}

// Number, bytes and age are bounded, also of the file; the oldest entries go first.
func TestBounds(t *testing.T) {
	for name, folder := range map[string]string{"file": t.TempDir(), "memory": ""} {
		t.Run(name, func(t *testing.T) {
			log, _ := logger()
			big := strings.Repeat("x", 10_000)
			l := Open(folder, Config{Entries: 30, Bytes: 100_000, Age: time.Hour}, log)
			old := query(0)
			old.At = time.Now().Add(-2 * time.Hour)
			l.Add(old, nil, 0)
			for n := range 50 {
				l.Add(call(n), nil, 0)
			}
			mcptest.Eventually(t, "the entries are there", func() bool { return l.Newest(everyone) == 51 })
			if page, _ := l.Find(Filter{}, 0, 100); len(page) != 30 || page[0].ID != 51 {
				t.Errorf("got %d entries, want the newest 30", len(page))
			}
			for n := range 50 {
				l.Add(query(n), big, len(big))
			}
			mcptest.Eventually(t, "the entries are there", func() bool { return l.Newest(everyone) == 101 })
			page, _ := l.Find(Filter{Kind: KindQuery}, 0, 100)
			if len(page) < 8 || len(page) > 10 {
				t.Errorf("got %d entries of 10 kB, want what fits into 100 kB beside the calls", len(page))
			}
			if _, err := l.Detail(page[len(page)-1].ID); err != nil {
				t.Errorf("the oldest: got %v, want its detail", err)
			}
			l.Add(query(1), nil, 0) // the next write drops what the last one made too old
			mcptest.Eventually(t, "the entries are there", func() bool { return l.Newest(everyone) == 102 })
			if _, err := l.Detail(page[len(page)-1].ID - 1); !errors.Is(err, ErrNoDetail) {
				t.Errorf("what is gone: got %v, want no detail", err)
			}
			if f, ok := l.store.(*file); ok {
				if info, err := os.Stat(f.db.Path()); err != nil || info.Size() > 2<<20 {
					t.Errorf("the file has %d bytes, want about 100 kB and free pages", info.Size())
				}
			}
			closeLog(t, l)
		})
	}
}

// A file that another process has open is left alone.
func TestLocked(t *testing.T) {
	folder := t.TempDir()
	log, lines := logger()
	first := Open(folder, Default(), log)
	defer closeLog(t, first)
	second := Open(folder, Default(), log)
	defer closeLog(t, second)
	if second.WhyMemoryOnly() == "" || first.WhyMemoryOnly() != "" || (*Log)(nil).WhyMemoryOnly() != "" || !strings.Contains(lines.String(), `level=WARN msg="the history is kept in memory only"`) {
		t.Errorf("got %q and %q, want the second in memory and a warning: %s", first.WhyMemoryOnly(), second.WhyMemoryOnly(), lines)
	}
	second.Add(query(1), 1, 1)
	mcptest.Eventually(t, "the entries are there", func() bool { return second.Newest(everyone) == 1 })
	if first.Newest(everyone) != 0 {
		t.Error("the first has an entry of the second")
	}
}

// A damaged file is put aside with a warning, whatever the damage, and a new one begins.
func TestDamaged(t *testing.T) {
	folder := t.TempDir()
	log, _ := logger()
	l := Open(folder, Default(), log)
	for n := range 300 {
		l.Add(query(n), strings.Repeat("detail", 500), 3000)
	}
	closeLog(t, l)
	name := filepath.Join(folder, fileName)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	damages := map[string][]byte{
		"text": []byte("this is no history"), "zeros": make([]byte, 100_000), "cut": whole[:len(whole)/2], "cut to a page": whole[:4096],
	}
	mixed := slices.Clone(whole)
	for i := 2 * 4096; i < len(mixed); i += 7 {
		mixed[i] ^= 0x55
	}
	damages["mixed"] = mixed
	for what, content := range damages {
		t.Run(what, func(t *testing.T) {
			folder := t.TempDir()
			name := filepath.Join(folder, fileName)
			if err := os.WriteFile(name, content, 0o600); err != nil {
				t.Fatal(err)
			}
			log, lines := logger()
			l := Open(folder, Default(), log)
			defer closeLog(t, l)
			if aside, err := os.ReadFile(name + ".damaged"); err != nil || !bytes.Equal(aside, content) {
				t.Errorf("got %d bytes, %v, want the damaged file aside", len(aside), err)
			}
			if l.WhyMemoryOnly() != "" || !strings.Contains(lines.String(), "level=WARN") {
				t.Errorf("got %q, want a new file and a warning: %s", l.WhyMemoryOnly(), lines)
			}
			l.Add(query(1), 1, 1)
			mcptest.Eventually(t, "the entries are there", func() bool { return l.Newest(everyone) == 1 })
		})
	}
}

// broken is a store on a disk that blocks or is full.
type broken struct {
	memoryStore
	block chan struct{} // nil = does not block
	full  chan bool
}

func (b *broken) write(queries []pendingEntry, gone []uint64) error {
	if b.block != nil {
		<-b.block
	}
	select {
	case <-b.full:
	default:
		if b.full != nil {
			return &os.PathError{Op: "write", Path: fileName, Err: syscall.ENOSPC}
		}
	}
	return b.memoryStore.write(queries, gone)
}

// A disk that blocks never blocks who adds: what does not fit into the queue is dropped and counted, by number and by
// bytes.
func TestBlocked(t *testing.T) {
	for name, size := range map[string]int{"many calls": 0, "many": 1, "large": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, _ := logger()
				s := &broken{memoryStore: *newMemoryStore(), block: make(chan struct{})}
				l := start(s, nil, Config{Entries: 1 << 20, Bytes: 1 << 30, Age: time.Hour}, "", log)
				const added = 3 * maxCalls
				most := maxQueries
				for n := range added {
					if size == 0 {
						most = maxCalls
						l.Add(call(n), nil, 0) // returns, or the test ends as deadlocked
					} else {
						l.Add(query(n), nil, size)
					}
				}
				synctest.Wait()
				if l.Dropped() < added-most {
					t.Errorf("got %d dropped of %d, want all that the queue has no room for", l.Dropped(), added)
				}
				if size > 0 && added-l.Dropped() > maxQueuedBytes/size {
					t.Errorf("got %d dropped, want the bytes of the queue bounded", l.Dropped())
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := l.Close(ctx); size > 0 && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Close: got %v while the disk blocks, want its time to be up", err)
				}
				close(s.block)
				<-l.done
				if got := int(l.Newest(everyone)) + l.Dropped(); got != added {
					t.Errorf("got %d kept and dropped, want %d", got, added)
				}
			})
		})
	}
}

// While the disk is full, entries are listed without details; one warning says so. Then all is as before.
func TestFull(t *testing.T) {
	log, lines := logger()
	s := &broken{memoryStore: *newMemoryStore(), full: make(chan bool)}
	l := start(s, nil, Default(), "", log)
	for n := range 3 {
		l.Add(query(n), n, 0)
		mcptest.Eventually(t, "the entries are there", func() bool { return l.Newest(everyone) == uint64(n+1) })
	}
	if _, err := l.Detail(1); !errors.Is(err, ErrNoDetail) {
		t.Errorf("got %v, want no detail", err)
	}
	close(s.full)
	l.Add(query(4), 4, 0)
	mcptest.Eventually(t, "the entries are there", func() bool { return l.Newest(everyone) == 4 })
	if _, err := l.Detail(4); err != nil {
		t.Errorf("got %v, want the detail of what came after", err)
	}
	closeLog(t, l)
	if got := strings.Count(lines.String(), "cannot be stored"); got != 1 || !strings.Contains(lines.String(), "no space left") || !strings.Contains(lines.String(), "stored again") {
		t.Errorf("log: got %s, want one warning and the end of it", lines)
	}
}

// Without entries there is no history, and nothing fails.
func TestOff(t *testing.T) {
	log, _ := logger()
	folder := t.TempDir()
	l := Open(folder, Config{}, log)
	l.Add(query(1), 1, 1)
	page, _ := l.Find(Filter{}, 0, 10)
	if _, ok := l.Get(1); ok || l != nil || len(page) != 0 || l.Newest(everyone) != 0 || l.Dropped() != 0 {
		t.Error("got a history, want none")
	}
	closeLog(t, l)
	if left, _ := os.ReadDir(folder); len(left) != 0 {
		t.Errorf("got %v, want no file", left)
	}
}

type unencodable struct{}

func (unencodable) MarshalJSON() ([]byte, error) { return nil, errors.New("no") }

// A detail that cannot be encoded costs the detail alone.
func TestUnencodable(t *testing.T) {
	log, _ := logger()
	l := Open("", Default(), log)
	l.Add(query(1), unencodable{}, 1)
	closeLog(t, l)
	if _, err := l.Detail(1); !errors.Is(err, ErrNoDetail) || l.Newest(everyone) != 1 {
		t.Errorf("got %v, want the entry without detail", err)
	}
}

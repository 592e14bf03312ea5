package history

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// What one caller does drives out neither what others did nor its own queries: the oldest go of who has most of what
// there is too much of. So it is after a restart, and the file does not grow.
func TestShares(t *testing.T) {
	for name, folder := range map[string]string{"file": t.TempDir(), "memory": ""} {
		t.Run(name, func(t *testing.T) {
			log, _ := logger()
			cfg := Config{Entries: 200, Bytes: 1 << 20, Age: time.Hour}
			l := Open(folder, cfg, log)
			added := uint64(0)
			count := func() {
				if added++; added%900 == 0 { // what is stored has its place in the queue for a moment
					mcptest.Eventually(t, "the entries are there", func() bool { return l.Newest(everyone) == added })
				}
			}
			addQuery := func(caller string, n int, detail any) {
				e := query(n)
				e.Caller = caller
				l.Add(e, detail, 0)
				count()
			}
			addCall := func(caller string, n int) {
				c := call(n)
				c.Caller = caller
				l.Add(c, nil, 0)
				count()
			}
			for n := range 40 {
				addQuery("quiet", n, n)
				addCall("quiet", n)
			}
			for n := range 4000 {
				addCall("flood", n)
				if n%40 == 0 {
					addQuery("flood", n, strings.Repeat("x", 20_000))
				}
			}
			mcptest.Eventually(t, "the entries are there", func() bool { return l.Newest(everyone) == added })
			check := func(when string) {
				t.Helper()
				for _, row := range []struct {
					caller, kind string
					least, most  int
				}{
					{"quiet", KindQuery, 40, 40}, {"quiet", KindCall, 40, 40}, {"flood", KindCall, 60, 80}, {"flood", KindQuery, 40, 52},
				} {
					got, _ := l.Find(Filter{Caller: row.caller, Kind: row.kind}, 0, 1000)
					if when == "after a restart" && row.kind == KindCall {
						continue // calls are in memory alone
					}
					if len(got) < row.least || len(got) > row.most {
						t.Errorf("%s: got %d entries of kind %s of %s, want %d to %d", when, len(got), row.kind, row.caller, row.least, row.most)
					}
					if row.kind == KindQuery {
						if _, err := l.Detail(got[len(got)-1].ID); err != nil {
							t.Errorf("%s: the oldest query of %s: got %v, want its detail", when, row.caller, err)
						}
					}
				}
			}
			check("at first")
			if got := l.Newest(func(caller string) bool { return caller == "quiet" }); got != 80 {
				t.Errorf("got %d for the newest of a caller, want 80", got)
			}
			if folder == "" {
				closeLog(t, l)
				return
			}
			addCall("key:b", 0) // the next write drops what the last one made too much
			closeLog(t, l)
			cfg.Entries++
			l = Open(folder, cfg, log)
			defer closeLog(t, l)
			check("after a restart")
			if info, err := os.Stat(filepath.Join(folder, fileName)); err != nil || info.Size() > 8<<20 {
				t.Errorf("the file has %d bytes, %v, want about 1 MiB and free pages", info.Size(), err)
			}
		})
	}
}

// What is too old is not shown any more, whether something is added or not, and then leaves the store.
func TestAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, _ := logger()
		s := newMemoryStore()
		l := start(s, nil, Config{Entries: 10, Bytes: 1 << 20, Age: time.Hour}, "", log)
		l.Add(query(1), 1, 1)
		time.Sleep(time.Minute)
		if _, err := l.Detail(1); err != nil {
			t.Fatalf("got %v, want the entry", err)
		}
		time.Sleep(time.Hour - time.Second)
		page, _ := l.Find(Filter{}, 0, 10)
		_, found := l.Get(1)
		if _, err := l.Detail(1); len(page) != 0 || found || !errors.Is(err, ErrNoDetail) {
			t.Errorf("got %v, %t, %v, want nothing that is too old", page, found, err)
		}
		time.Sleep(sweepInterval)
		synctest.Wait()
		if detail, _ := s.detail(1); detail != nil || l.Newest(everyone) != 0 {
			t.Errorf("got %s in the store, want it dropped", detail)
		}
		closeLog(t, l)
	})
}

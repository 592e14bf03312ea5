package downstream_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// growing is a server that promises to announce changes of its tools, and does not.
func growing() (s *server, add func(tool string)) {
	s = newServer()
	s.caps = `{"tools":{"listChanged":true}}`
	var mu sync.Mutex
	tools := tool("first")
	s.list = func(*server, mcptest.Message) (string, string) {
		mu.Lock()
		defer mu.Unlock()
		return `{"tools":[` + tools + `]}`, ""
	}
	return s, func(name string) {
		mu.Lock()
		defer mu.Unlock()
		tools += "," + tool(name)
	}
}

// A tool that is missing from a list that is held is looked up at its server before it is called unknown.
func TestHas_ListsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, add := growing()
		m := start(t, pipes([]string{"a"}, s))
		has := func(tool string) bool {
			t.Helper()
			ok, err := m.Has(t.Context(), "a", "c", tool, nil)
			if err != nil {
				t.Fatal(err)
			}
			return ok
		}
		if !has("first") || has("second") {
			t.Fatal("got the wrong tools, want the first alone")
		}
		for _, name := range []string{"second", "another", "last"} {
			add(name)
			time.Sleep(time.Millisecond) // of the fake clock: the list that is held is from before
			if !has(name) {
				t.Errorf("got no tool %s, want the one that was added", name)
			}
		}
		lists := s.count("tools/list")
		time.Sleep(time.Millisecond)
		if !has("first") || !has("second") || s.count("tools/list") != lists {
			t.Error("got a list for tools that are known, want none")
		}
		catalog, err := m.Catalog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		add("third")
		if _, unknown := catalog.Lookup("third", nil); unknown == nil {
			t.Fatal("got the third tool from a catalog made before")
		}
		time.Sleep(time.Millisecond)
		m.Refresh(t.Context(), time.Now())
		if catalog, err = m.Catalog(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, unknown := catalog.Lookup("third", nil); unknown != nil {
			t.Errorf("after Refresh: got %v", unknown)
		}
		m.Stop()
	})
}

// Unknown names cannot be used to flood a server: it is listed 20 times at once and twice a second, for all who ask.
func TestHas_SharesLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := growing()
		m := start(t, pipes([]string{"a"}, s))
		began := time.Now()
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				for n := range 30 {
					if ok, err := m.Has(t.Context(), "a", fmt.Sprint(i), fmt.Sprint("no ", n), nil); ok || err != nil {
						t.Errorf("got %v, %v, want the tool to be unknown", ok, err)
					}
				}
			})
		}
		wg.Wait()
		seconds := int(time.Since(began).Seconds())
		if n := s.count("tools/list"); n > 20+2*(seconds+1) || seconds > 6 {
			t.Errorf("got %d lists in %d seconds, want 20 and two a second", n, seconds)
		}
		m.Stop()
	})
}

// A server that took too long once does not keep the router from its tools: it is asked again, and whoever asks meanwhile
// waits only briefly.
func TestCatalog_AfterSlowList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var takes atomic.Int64
		takes.Store(int64(8 * time.Second))
		s.list = func(*server, mcptest.Message) (string, string) {
			time.Sleep(time.Duration(takes.Load()))
			return `{"tools":[` + tool("first") + `]}`, ""
		}
		m := start(t, pipes([]string{"a"}, s))
		defer m.Stop()
		missing := func(within time.Duration) bool {
			t.Helper()
			began := time.Now()
			catalog, err := m.Catalog(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > within {
				t.Errorf("got a catalog after %v, want it within %v", took, within)
			}
			for _, gap := range catalog.Missing {
				if gap.Reason != reason.Timeout {
					t.Errorf("got %+v, want a timeout", gap)
				}
			}
			return len(catalog.Missing) > 0
		}
		if !missing(5 * time.Second) {
			t.Error("got the tools of a server that takes too long")
		}
		for _, limit := range []time.Duration{100 * time.Millisecond, 0, 0} {
			if !missing(limit) {
				t.Error("got the tools of a server that takes too long")
			}
		}
		if got := s.count("tools/list"); got != 2 {
			t.Errorf("got %d lists at the same time, want the first and one more", got)
		}
		takes.Store(int64(50 * time.Millisecond))
		time.Sleep(10 * time.Second) // the second list is over
		if missing(100 * time.Millisecond) {
			t.Error("got no tools of a server that is fast again")
		}
	})
}

package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/cluster"
	"github.com/agenticnexus/agenticnexus/internal/shared"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// version is a State to which a replica of another version writes.
type version struct {
	shared.State
	edit func(entry map[string]any)
}

func (v *version) Put(ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration) (uint64, error) {
	entry := map[string]any{}
	d := json.NewDecoder(strings.NewReader(string(value)))
	d.UseNumber()
	if err := d.Decode(&entry); err != nil {
		return 0, err
	}
	v.edit(entry)
	value, err := json.Marshal(entry)
	if err != nil {
		return 0, err
	}
	return v.State.Put(ctx, key, value, revision, ttl)
}

// Replicas understand the leases, sessions and servers in entries that have more fields than they know, or fewer than
// they write.
func TestVersions(t *testing.T) {
	for name, edit := range map[string]func(map[string]any){
		"the same": func(map[string]any) {},
		"newer": func(entry map[string]any) {
			entry["later"] = map[string]any{"home": 1, "list": []int{1}}
		},
		"older": func(entry map[string]any) {
			for _, field := range []string{"version", "config", "started", "clock", "sessions", "draining", "first"} {
				delete(entry, field)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			other := w.node("other", func(c *cluster.Config) {
				v := &version{c.Leases, edit}
				c.Leases, c.Sessions = v, v
			})
			mine := w.node("mine")
			runs := [2]string{}
			var mu sync.Mutex
			for i, n := range []*node{other, mine} {
				sole := cluster.NewSole(n.Replica)
				sole.Names = func() []string { return []string{"work"} }
				sole.Close = func(context.Context, string) {}
				sole.Place = func(holders map[string]cluster.Holder) {
					mu.Lock()
					defer mu.Unlock()
					runs[i] = holders["work"].Name
				}
				sole.Start()
				t.Cleanup(sole.Stop)
				mcptest.Eventually(t, n.name+" to know who runs the server", func() bool {
					mu.Lock()
					defer mu.Unlock()
					return runs[i] == "other"
				})
			}
			if got := mine.Members(); len(got) != 2 || got[1].Name != "other" || got[1].Address != "http://other:80" {
				t.Errorf("got the replicas %+v, want mine and other", got)
			}
			s, gone := other.session("a"), other.session("b")
			if err := errors.Join(other.dir.Save(s, []byte("state")), other.dir.End(t.Context(), gone)); err != nil {
				t.Fatal(err)
			}
			mcptest.Eventually(t, "the state to be saved", func() bool {
				state, err := mine.dir.Load(t.Context(), s)
				return err == nil && string(state) == "state"
			})

			other.crash()
			if got, err := mine.get(s); err != nil || got != "mine" {
				t.Errorf("after the crash: got %s (%v), want that mine serves the session", got, err)
			}
			if state, err := mine.dir.Load(t.Context(), s); err != nil || string(state) != "state" {
				t.Errorf("after the crash: got the state %q (%v), want what other has saved", state, err)
			}
			if _, err := mine.dir.Find(t.Context(), gone); !errors.Is(err, cluster.ErrEnded) {
				t.Errorf("a session that has ended: got %v, want that it has ended", err)
			}
			mcptest.Eventually(t, "mine to run the server", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return runs[1] == "mine"
			})
		})
	}
}

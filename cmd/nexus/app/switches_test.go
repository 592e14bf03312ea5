package app

import (
	"log/slog"
	"maps"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/shared"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// slow are switches whose changes wait, as on a network, until proceed is closed.
type slow struct{ began, proceed chan struct{} }

func (slow) enabled() map[string]bool { return nil }

func (s slow) set(string, bool) error {
	close(s.began)
	<-s.proceed
	return nil
}

// A switch that waits for the network delays nothing else that applies a configuration.
func TestSwitchServer_Waits(t *testing.T) {
	cfg := config.Default()
	cfg.State = t.TempDir()
	a, err := New(t.Context(), Options{Config: cfg, Version: "test", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := slow{make(chan struct{}), make(chan struct{})}
	a.serverSet.switches = s
	switched, reloaded := make(chan error, 1), make(chan error, 1)
	go func() { switched <- a.switchServer("work", false, "operator") }()
	<-s.began
	go func() { reloaded <- a.Reload(cfg) }()
	select {
	case err := <-reloaded:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(mcptest.Patience):
		t.Error("a reload waits for a switch")
	}
	close(s.proceed)
	if err := <-switched; err != nil {
		t.Error(err)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// An entry of another version disables what this one knows to be disabled, and keeps what only the other one knows.
func TestSharedSwitches_Versions(t *testing.T) {
	for name, c := range map[string]struct {
		entry, after string
		enabled      map[string]bool
	}{
		"the same": {`{"a":false}`, `{"a":false,"work":false}`, map[string]bool{"a": false, "work": false}},
		"newer": {`{"a":false,"by":{"a":"ann"},"list":[12345678901234567890]}`,
			`{"a":false,"by":{"a":"ann"},"list":[12345678901234567890],"work":false}`,
			map[string]bool{"a": false, "work": false}},
		"no object": {`[]`, `{"work":false}`, map[string]bool{"work": false}},
	} {
		t.Run(name, func(t *testing.T) {
			state := shared.NewMemory()
			t.Cleanup(state.Close)
			if _, err := state.Put(t.Context(), switchKey, []byte(c.entry), 0, 0); err != nil {
				t.Fatal(err)
			}
			mirror, err := shared.OpenMirror(t.Context(), state, switchKey)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(mirror.Close)
			s := &sharedSwitches{mirror: mirror}
			before := maps.Clone(s.enabled())
			if err := s.set("work", false); err != nil {
				t.Fatal(err)
			}
			if got := s.enabled(); !maps.Equal(got, c.enabled) || len(before) != len(c.enabled)-1 {
				t.Errorf("got %v, and %v after a change, want %v", before, got, c.enabled)
			}
			if got := string(mirror.Entry(switchKey).Value); got != c.after {
				t.Errorf("got the entry %s, want %s", got, c.after)
			}
		})
	}
}

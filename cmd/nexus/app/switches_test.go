package app

import (
	"log/slog"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/config"
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

package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app/console"
	"github.com/agenticnexus/agenticnexus/internal/atomicfile"
	"github.com/agenticnexus/agenticnexus/internal/shared"
)

// switches are the servers that operators enabled or disabled. They override the configuration.
// App.lifecycle.reloading guards them.
type switches interface {
	// enabled returns whether each switched server is enabled. The result must not be changed.
	enabled() map[string]bool
	// set switches a server. The error means that the switch will not survive a restart, or, if it is a
	// console.ErrNotSwitched, that nothing has changed.
	set(server string, enabled bool) error
}

const (
	switchFile = "servers.json"
	switchKey  = "switches"       // of the entry that replicas share
	switchTime = 10 * time.Second // to change that
)

// fileSwitches are kept in a file.
type fileSwitches struct {
	file string // empty = not kept
	all  map[string]bool
}

// openSwitches returns the switches in the state folder, if there is one. The error means that they cannot be read.
func openSwitches(folder string) (*fileSwitches, error) {
	s := &fileSwitches{all: map[string]bool{}}
	if folder == "" {
		return s, nil
	}
	s.file = filepath.Join(folder, switchFile)
	text, err := os.ReadFile(s.file)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s.all)
	}
	if err != nil || s.all == nil { // "null"
		s.all = map[string]bool{}
	}
	if err != nil {
		return s, fmt.Errorf("reading which servers are disabled: %w", err)
	}
	return s, nil
}

func (s *fileSwitches) enabled() map[string]bool { return s.all }

func (s *fileSwitches) set(server string, enabled bool) error {
	s.all[server] = enabled
	if err := s.write(); err != nil {
		return fmt.Errorf("this lasts only until the process ends: %w", err)
	}
	return nil
}

func (s *fileSwitches) write() error {
	if s.file == "" {
		return errors.New("there is no state folder")
	}
	text, err := json.MarshalIndent(s.all, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.file), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(s.file, append(text, '\n'))
}

// sharedSwitches are in an entry that replicas share. If that is lost, the last ones go on.
type sharedSwitches struct {
	mirror *shared.Mirror // of switchKey
	last   map[string]bool
}

func (s *sharedSwitches) enabled() map[string]bool {
	var all map[string]bool
	if json.Unmarshal(s.mirror.Entry(switchKey).Value, &all) == nil && all != nil {
		s.last = all
	}
	return s.last
}

func (s *sharedSwitches) set(server string, enabled bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), switchTime)
	defer cancel()
	err := s.mirror.Update(ctx, switchKey, func([]byte) ([]byte, error) {
		all := map[string]bool{}
		maps.Copy(all, s.enabled())
		all[server] = enabled
		return json.Marshal(all)
	})
	if err != nil {
		return fmt.Errorf("%w: %w", console.ErrNotSwitched, err)
	}
	return nil
}

// switchServer enables or disables a server on behalf of an operator. The errors are those of switches.set.
func (a *App) switchServer(server string, enabled bool, by string) error {
	a.lifecycle.reloading.Lock()
	defer a.lifecycle.reloading.Unlock()
	err := a.serverSet.switches.set(server, enabled)
	if !errors.Is(err, console.ErrNotSwitched) {
		applyServers(a)
		a.log.Warn("server switched", "server", server, "enabled", enabled, "by", by)
	}
	if err != nil {
		a.log.Warn("server switched: "+err.Error(), "server", server)
	}
	return err
}

// followSwitches applies what other replicas switch until ctx ends.
func followSwitches(ctx context.Context, a *App, m *shared.Mirror) {
	for revision := uint64(0); m.Wait(ctx, switchKey, revision) == nil; {
		revision = m.Entry(switchKey).Revision
		a.lifecycle.reloading.Lock()
		if changes := applyServers(a); !changes.None() {
			a.log.Warn("servers switched at another replica", "added", changes.Added, "removed", changes.Removed,
				"changed", changes.Changed)
		}
		a.lifecycle.reloading.Unlock()
	}
}

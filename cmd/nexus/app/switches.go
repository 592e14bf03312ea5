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
	"strconv"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app/console"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/atomicfile"
	"github.com/agenticnexus/agenticnexus/internal/shared"
)

// switches are the servers that operators enabled or disabled. They override the configuration, and are safe for
// concurrent use.
type switches interface {
	// enabled returns whether each switched server is enabled. The result must not be changed.
	enabled() map[string]bool
	// set switches a server. The error means that the switch will not survive a restart, or, if it is a
	// console.ErrNotSwitched, that nothing has changed.
	set(server string, enabled bool) error
}

const (
	switchFile = "servers.json"
	switchKey  = "switch/servers" // of the entry that replicas share
	switchTime = 10 * time.Second // to change that
)

// fileSwitches are kept in a file.
type fileSwitches struct {
	file string // empty = not kept

	mu  sync.Mutex
	all map[string]bool // is replaced, never changed
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

func (s *fileSwitches) enabled() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

func (s *fileSwitches) set(server string, enabled bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = with(s.all, server, enabled)
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

	mu   sync.Mutex
	last map[string]bool
}

func (s *sharedSwitches) enabled() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var entry map[string]json.RawMessage
	if json.Unmarshal(s.mirror.Entry(switchKey).Value, &entry) == nil && entry != nil {
		s.last = map[string]bool{}
		for server, value := range entry {
			var enabled bool
			if json.Unmarshal(value, &enabled) == nil { // else another version knows what it is
				s.last[server] = enabled
			}
		}
	}
	return s.last
}

func (s *sharedSwitches) set(server string, enabled bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), switchTime)
	defer cancel()
	err := s.mirror.Update(ctx, switchKey, func(value []byte) ([]byte, error) {
		var entry map[string]json.RawMessage
		if json.Unmarshal(value, &entry) != nil || entry == nil {
			return json.Marshal(with(s.enabled(), server, enabled))
		}
		entry[server] = strconv.AppendBool(nil, enabled) // what another version has added stays
		return json.Marshal(entry)
	})
	if err != nil {
		return fmt.Errorf("%w: %w", console.ErrNotSwitched, err)
	}
	return nil
}

// with returns a copy of all in which a server is switched.
func with(all map[string]bool, server string, enabled bool) map[string]bool {
	next := map[string]bool{}
	maps.Copy(next, all)
	next[server] = enabled
	return next
}

// switchServer enables or disables a server on behalf of an operator. The errors are those of switches.set.
func (a *App) switchServer(server string, enabled bool, by string) error {
	err := a.serverSet.switches.set(server, enabled)
	if !errors.Is(err, console.ErrNotSwitched) {
		a.lifecycle.reloading.Lock()
		applyServers(a)
		a.lifecycle.reloading.Unlock()
		a.log.Warn("server switched", "server", server, "enabled", enabled, "by", by)
	}
	if err != nil {
		a.log.Warn("server switched: "+err.Error(), "server", server)
	}
	return err
}

// restartTime is the time for calls in flight when an operator restarts their server.
const restartTime = 5 * time.Second

// restartServer replaces the sessions and the process of a server on behalf of an operator. It does not wait for the
// new ones.
func restartServer(a *App) func(ctx context.Context, server, by string) {
	return func(ctx context.Context, server, by string) {
		a.lifecycle.reloading.Lock()
		changes := downstream.Restart(a.servers, a.serverSet.servers(), server)
		a.proxy.ServersChanged(changes)
		a.lifecycle.reloading.Unlock()
		a.log.Warn("server restarted", "server", server, "by", by)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restartTime) // the calls are not the operator's
		defer cancel()
		downstream.CloseReplaced(ctx, a.servers, server)
	}
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

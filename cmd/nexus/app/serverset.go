package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/atomicfile"
	"github.com/agenticnexus/agenticnexus/internal/demo"
)

// serverSet is the configuration of the servers: the files, the demo servers, and the switches of operators.
// App.lifecycle.reloading guards it after New.
type serverSet struct {
	embedded   *embedded
	configured []downstream.ServerConfig // in the files
	switches   switches
}

// switches are the servers that operators enabled or disabled. They override the configuration and are kept in a file.
type switches struct {
	file    string // empty = not kept
	enabled map[string]bool
}

const switchFile = "servers.json"

// newServerSet makes a serverSet with the switches in the state folder. The error means that they cannot be read.
func newServerSet(servers []downstream.ServerConfig, withDemo bool, folder string) (*serverSet, error) {
	f := &serverSet{configured: servers, switches: switches{enabled: map[string]bool{}}}
	if withDemo {
		f.embedded = newEmbedded(demo.Servers())
	}
	if folder == "" {
		return f, nil
	}
	f.switches.file = filepath.Join(folder, switchFile)
	text, err := os.ReadFile(f.switches.file)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &f.switches.enabled)
	}
	if err != nil || f.switches.enabled == nil { // "null"
		f.switches.enabled = map[string]bool{}
	}
	if err != nil {
		return f, fmt.Errorf("reading which servers are disabled: %w", err)
	}
	return f, nil
}

// servers returns the effective configuration.
func (f *serverSet) servers() []downstream.ServerConfig {
	all := slices.Clone(f.configured)
	if f.embedded != nil {
		all = append(all, f.embedded.configs()...)
	}
	for i := range all {
		if enabled, switched := f.switches.enabled[all[i].Name]; switched {
			all[i].Disabled = !enabled
		}
	}
	return all
}

// set switches a server. The error means that the switch will not survive a restart.
func (s *switches) set(server string, enabled bool) error {
	s.enabled[server] = enabled
	if s.file == "" {
		return errors.New("there is no state folder")
	}
	text, err := json.MarshalIndent(s.enabled, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.file), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(s.file, append(text, '\n'))
}

// switchServer enables or disables a server on behalf of an operator. The error means that the switch will not survive
// a restart.
func (a *App) switchServer(server string, enabled bool, by string) error {
	a.lifecycle.reloading.Lock()
	defer a.lifecycle.reloading.Unlock()
	err := a.serverSet.switches.set(server, enabled)
	if changes := a.servers.Apply(a.serverSet.servers()); !changes.None() {
		a.proxy.ServersChanged(changes)
	}
	a.log.Warn("server switched", "server", server, "enabled", enabled, "by", by)
	if err != nil {
		err = fmt.Errorf("this lasts only until the process ends: %w", err)
		a.log.Warn("server switched: "+err.Error(), "server", server)
	}
	return err
}

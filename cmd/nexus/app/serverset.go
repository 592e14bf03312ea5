package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/tape"
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
	placed     *placement // nil = the App runs alone
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
		all[i] = f.placed.of(all[i])
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

// embedded runs servers in this process. The router talks to them over pipes, as to a child process. nil runs none.
type embedded struct {
	servers []demo.Server
	ctx     context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

func newEmbedded(servers []demo.Server) *embedded {
	e := &embedded{servers: servers}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e
}

func (e *embedded) configs() []downstream.ServerConfig {
	var out []downstream.ServerConfig
	for _, s := range e.servers {
		out = append(out, downstream.ServerConfig{Name: s.Name, Type: downstream.TransportStdio})
	}
	return out
}

func (e *embedded) dialers() map[string]downstream.DialFunc {
	if e == nil {
		return nil
	}
	out := map[string]downstream.DialFunc{}
	for _, s := range e.servers {
		out[s.Name] = func(context.Context) (io.ReadWriteCloser, error) {
			fromRouter, toServer := io.Pipe()
			fromServer, toRouter := io.Pipe()
			e.wg.Go(func() {
				err := s.Serve(e.ctx, fromRouter, toRouter)
				toRouter.CloseWithError(errors.Join(io.EOF, err))
			})
			return pipe{fromServer, toServer}, nil
		}
	}
	return out
}

// stop ends the servers and waits for them.
func (e *embedded) stop() {
	if e != nil {
		e.cancel()
		e.wg.Wait()
	}
}

type pipe struct {
	*io.PipeReader
	w *io.PipeWriter
}

func (p pipe) Write(b []byte) (int, error) { return p.w.Write(b) }

func (p pipe) Close() error { return errors.Join(p.w.Close(), p.PipeReader.Close()) }

// dialers returns connections to the servers in this process, or to the replayed servers.
func dialers(t *tape.Tape, f *serverSet) map[string]downstream.DialFunc {
	if t.Replays() {
		return t.Dialers(f.servers())
	}
	return f.embedded.dialers()
}

// RecordTools records the tools and instructions of all servers if the App has a Tape that records.
func RecordTools(ctx context.Context, a *App) error {
	t := a.opts.Tape
	if t == nil || t.Replays() {
		return nil
	}
	catalog, err := a.servers.Catalog(ctx)
	if err != nil {
		return fmt.Errorf("recording the tools: %w", err)
	}
	return t.SaveTools(ctx, a.servers.Enabled(), catalog.Instructions, a.servers)
}

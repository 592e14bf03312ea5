package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/tape"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/demo"
)

// serverSet is the configuration of the servers: the files, the demo servers, and the switches of operators.
// App.lifecycle.reloading guards it after New, except for switches.
type serverSet struct {
	embedded   *embedded
	configured []downstream.ServerConfig // in the files
	switches   switches
	placed     *placement // nil = the App runs alone
}

func newServerSet(servers []downstream.ServerConfig, withDemo bool, s switches) *serverSet {
	f := &serverSet{configured: servers, switches: s}
	if withDemo {
		f.embedded = newEmbedded(demo.Servers())
	}
	return f
}

// warn logs the warnings of a configuration, and the servers that are disabled because of a mistake.
func warn(cfg *config.Config, log *slog.Logger) {
	for _, warning := range cfg.Warnings {
		log.Warn("configuration: " + warning)
	}
	for _, s := range cfg.Servers {
		if s.Unusable != "" {
			log.Warn("server disabled", "server", s.Name, "error", s.Unusable)
		}
	}
}

// servers returns the effective configuration.
func (f *serverSet) servers() []downstream.ServerConfig {
	all := slices.Clone(f.configured)
	if f.embedded != nil {
		all = append(all, f.embedded.configs()...)
	}
	switched := f.switches.enabled()
	for i := range all {
		if enabled, ok := switched[all[i].Name]; ok && all[i].Unusable == "" {
			all[i].Disabled = !enabled
		}
		all[i] = f.placed.of(all[i])
	}
	return all
}

// applyServers applies the effective configuration. The caller holds lifecycle.reloading.
func applyServers(a *App) downstream.Changes {
	changes := a.servers.Apply(a.serverSet.servers())
	if !changes.None() {
		a.proxy.ServersChanged(changes)
	}
	return changes
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

package app

import (
	"context"
	"fmt"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/tape"
	"github.com/agenticnexus/agenticnexus/downstream"
)

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

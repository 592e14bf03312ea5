package app

import (
	"context"
	"fmt"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/tape"
	"github.com/agenticnexus/agenticnexus/downstream"
)

// dialers connects to the servers of this process, or to the stand-ins of a replay.
func dialers(t *tape.Tape, f *serverSet) map[string]downstream.DialFunc {
	if t.Replays() {
		return t.Dialers(f.servers())
	}
	return f.embedded.dialers()
}

// RecordTools puts the tools and instructions of all servers on the Tape of an App, if it has one that records.
func RecordTools(ctx context.Context, a *App) error {
	t := a.opts.Tape
	if t == nil || t.Replays() {
		return nil
	}
	catalog, err := a.servers.Catalog(ctx)
	if err != nil {
		return fmt.Errorf("recording the tools: %w", err)
	}
	return t.SaveTools(ctx, a.servers.Enabled(), catalog.Instructions, a.servers.Call)
}

package pins

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/agenticnexus/agenticnexus/internal/shared"
)

// TakeOver adds the pins in a state folder to those that replicas share, where these have nothing of a server. If the
// folder has lost pins, no tool of the servers that replicas share nothing of counts as approved. The error means that
// the folder cannot be read, or the shared state not be changed; a part may be taken over.
func TakeOver(ctx context.Context, folder string, to *shared.Mirror, servers []string, log *slog.Logger) error {
	from := &file{folder: folder}
	doc, damage, err := from.merge(ctx, &document{Servers: map[string]*pinned{}}, nil, nil)
	if err != nil {
		return err
	}
	if damage != "" {
		log.Warn(damage)
	}
	for _, server := range servers {
		if doc.Lost {
			doc.server(server)
		}
	}
	for _, server := range slices.Sorted(maps.Keys(doc.Servers)) {
		key := SharedPrefix + server
		if to.Entry(key).Revision != 0 {
			continue
		}
		value, err := doc.Servers[server].encode()
		if err == nil {
			_, err = to.Put(ctx, key, value, 0, 0)
		}
		switch {
		case errors.Is(err, shared.ErrConflict): // another replica was first
		case err != nil:
			return fmt.Errorf("the approved tools of server %s: %w", server, err)
		default:
			log.Info("the cluster takes over the approved tools of a server", "server", server, "from", from.path(),
				"changed", len(doc.changes(server, Selection{})))
		}
	}
	return nil
}

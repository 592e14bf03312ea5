package oauth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/agenticnexus/agenticnexus/internal/atomicfile"
)

// TakeOver moves the token of a server from one Store to another, and deletes it if the other has one already: a
// refresh token has one owner. A token that cannot be read or locked stays where it is. After an error both may have
// it, until the next call.
func TakeOver(ctx context.Context, from, to Store, server string, log *slog.Logger) error {
	if t, err := from.Load(server); t == nil && err == nil {
		return nil
	}
	joined, unlock, err := to.lock(ctx, server)
	if err != nil {
		return err
	}
	defer unlock()
	const stays = "the login of a server stays in the state folder"
	where := from.keeper.where(server)
	held, free, err := from.lock(joined, server)
	if err == nil {
		defer free()
		err = atomicfile.Writable(filepath.Dir(where))
	}
	if err != nil && joined.Err() == nil {
		log.Warn(stays, "server", server, "error", err)
		return nil
	} else if err != nil {
		return fmt.Errorf("the token of server %s: %w", server, err)
	}
	t, err := from.Load(server) // nobody renews it now
	if err == nil && t == nil {
		return nil
	}
	present, unreadable := to.Load(server)
	if err != nil || unreadable != nil {
		log.Warn(stays, "server", server, "error", errors.Join(err, unreadable))
		return nil
	}
	if present != nil {
		log.Warn("the cluster has a login of a server already; that of the state folder is deleted", "server", server,
			"from", where)
	} else if err = to.write(held, t); err == nil {
		log.Info("the cluster takes over the login of a server", "server", server, "from", where)
	}
	if err == nil {
		err = from.keeper.remove(held, server)
	}
	return err
}

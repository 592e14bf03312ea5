package oauth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
)

// TakeOver moves the token of a server from one Store to another, and deletes it if the other has one already: a
// refresh token has one owner. A token that cannot be read stays where it is. After an error both may have it, until
// the next call.
func TakeOver(ctx context.Context, from, to Store, server string, log *slog.Logger) error {
	if t, err := from.Load(server); t == nil && err == nil {
		return nil
	}
	held, unlock, err := to.lock(ctx, server)
	if err != nil {
		return err
	}
	defer unlock()
	held, free, err := from.lock(held, server)
	if err != nil {
		return fmt.Errorf("the token of server %s: %w", server, err)
	}
	defer free()
	t, err := from.Load(server) // nobody renews it now
	if err == nil && t == nil {
		return nil
	}
	present, unreadable := to.Load(server)
	if err != nil || unreadable != nil {
		log.Warn("the login of a server stays in the state folder", "server", server, "error", errors.Join(err, unreadable))
		return nil
	}
	where := from.keeper.where(server)
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

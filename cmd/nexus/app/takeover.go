package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/pins"
	"github.com/agenticnexus/agenticnexus/internal/shared"
)

// TakeOver brings what people decided at a router that ran alone from its state folder into the cluster: approved
// tools, servers that were switched, and logins. What the cluster has already stays as it is. It is called before an
// App uses the Cluster.
func (c *Cluster) TakeOver(ctx context.Context, cfg config.Config) error {
	folder, err := cfg.StateFolder()
	if err != nil {
		return nil // there is none
	}
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	var servers []string
	for _, s := range cfg.Servers {
		servers = append(servers, s.Name)
	}
	if cfg.Tools.Pin != pins.Off {
		err = pins.TakeOver(ctx, folder, c.common, servers, c.log)
	}
	if err == nil {
		err = c.takeSwitches(ctx, folder)
	}
	if err == nil {
		err = c.takeTokens(ctx, cfg, servers)
	}
	if err != nil {
		return fmt.Errorf("taking the state of %s into the cluster: %w", folder, err)
	}
	return nil
}

// takeTokens moves the tokens for servers, also those of callers.
func (c *Cluster) takeTokens(ctx context.Context, cfg config.Config, servers []string) error {
	from, unsealed := Tokens(nil, &cfg)
	to := openTokens(c, &cfg, c.log)
	for _, server := range servers {
		callers := from.Callers(server)
		if unsealed != nil && len(callers) > 0 {
			c.log.Warn("the logins of callers stay in the state folder", "server", server, "error", unsealed)
		}
		for _, caller := range append(callers, "") {
			if err := oauth.TakeOver(ctx, from.For(caller), to.For(caller), server, c.log); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeSwitches creates the entry of the switches with those of the folder.
func (c *Cluster) takeSwitches(ctx context.Context, folder string) error {
	from, err := openSwitches(folder)
	if err != nil {
		c.log.Warn("the cluster takes over no switches of servers", "error", err)
	}
	all := from.enabled()
	if len(all) == 0 || c.common.Entry(switchKey).Revision != 0 {
		return nil
	}
	value, err := json.Marshal(all)
	if err == nil {
		_, err = c.common.Put(ctx, switchKey, value, 0, 0)
	}
	switch {
	case errors.Is(err, shared.ErrConflict): // another replica was first
		return nil
	case err == nil:
		c.log.Info("the cluster takes over which servers are enabled", "from", from.file, "servers", string(value))
	}
	return err
}

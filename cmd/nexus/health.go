package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/router"
)

type healthCmd struct {
	source
	remote
	JSON bool `name:"json" help:"Print the structured content."`
}

func (c *healthCmd) Run(w *world) error {
	raw, err := c.fetch(w)
	if err != nil {
		return err
	}
	var health struct {
		Status  string                       `json:"status"`
		Version string                       `json:"version"`
		Servers map[string]downstream.Status `json:"servers"`
	}
	if err := json.Unmarshal(raw, &health); err != nil {
		return fmt.Errorf("reading the health: %w", err)
	}
	if c.JSON {
		fmt.Fprintln(w.stdout, string(indent(raw)))
	} else {
		fmt.Fprintf(w.stdout, "%s (version %s)\n", health.Status, health.Version)
		var names []string
		for name := range health.Servers {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			s := health.Servers[name]
			fmt.Fprintf(w.stdout, "  %-20s %-13s %s", name, s.Status, s.Transport)
			if s.LastError != nil && s.Status != downstream.StateConnected {
				fmt.Fprintf(w.stdout, "  %s: %s", s.LastError.Reason, firstLine(s.LastError.Message, 120))
			}
			fmt.Fprintln(w.stdout)
		}
	}
	if health.Status == "healthy" {
		return nil
	}
	code := exitPartly
	if health.Status == "unhealthy" {
		code = exitFailed
	}
	return &exitError{code: code}
}

// fetch returns the structured content of health_check. Locally it waits until no server is connecting.
func (c *healthCmd) fetch(w *world) (json.RawMessage, error) {
	if c.Remote != "" {
		result, err := c.call(w.ctx, router.ToolHealthCheck, map[string]any{}, nil)
		if err != nil {
			return nil, err
		}
		return result.StructuredContent, nil
	}
	a, done, err := c.open(w)
	if err != nil {
		return nil, err
	}
	defer done()
	health, err := settled(w.ctx, a.Router())
	if err != nil {
		return nil, err
	}
	return json.Marshal(health)
}

// settled waits until every server is connected or has failed to.
func settled(ctx context.Context, r *router.Router) (*router.Health, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		health, err := r.Health(nil, "")
		if err != nil {
			return nil, err
		}
		connecting := false
		for _, s := range health.Servers {
			connecting = connecting || s.Status == downstream.StateConnecting
		}
		if !connecting {
			return health, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
)

const (
	lookAgain   = 25 * time.Millisecond // at the state of servers
	lookAfar    = 500 * time.Millisecond
	showAfter   = 200 * time.Millisecond // on a terminal; less is no wait
	mentionWait = 3 * time.Second        // elsewhere
)

// await waits until no server is being connected to for the first time, or only that which the tool names, and shows
// which ones it waits for. Each has its connect_timeout; ctx may end sooner, which is no error. It returns the state
// that it has seen last.
func await(ctx context.Context, w *world, b backend, tool string) (*state, error) {
	bar := newBar(w)
	defer bar.close()
	began := time.Now()
	mentioned := false
	settled := map[string]bool{} // a later attempt to connect is not waited for
	pause := lookAgain
	if _, remote := b.(*peer); remote {
		pause = lookAfar
	}
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		h, err := healthOf(w.ctx, b)
		if errors.Is(err, errNotOffered) {
			return &state{}, nil // nobody can tell
		}
		if err != nil {
			return nil, err
		}
		only := h.serverOf(tool)
		var starting []string
		for name, s := range h.Servers {
			if s.Status != downstream.StateConnecting {
				settled[name] = true
			} else if !settled[name] && (only == "" || name == only) {
				starting = append(starting, name)
			}
		}
		if len(starting) == 0 {
			return h, nil
		}
		slices.Sort(starting)
		waited := time.Since(began)
		switch {
		case w.terminal && waited > showAfter:
			bar.show(float64(len(h.Servers)-len(starting))/float64(len(h.Servers)),
				fmt.Sprintf("starting: %s (%.0fs)", strings.Join(starting, ", "), waited.Seconds()))
		case !w.terminal && waited > mentionWait && !mentioned:
			mentioned = true
			fmt.Fprintf(w.stderr, "nexus: waiting for %s to start\n", strings.Join(starting, ", "))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if w.ctx.Err() != nil {
				return nil, context.Cause(w.ctx)
			}
			return h, nil
		}
	}
}

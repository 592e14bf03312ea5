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
	lookAgain   = 25 * time.Millisecond // between two reads of the servers' states
	lookAfar    = 500 * time.Millisecond
	showAfter   = 200 * time.Millisecond // on a terminal
	mentionWait = 3 * time.Second        // elsewhere
)

// await waits for the first connection of all servers, or of the server that tool names, and shows which servers it
// waits for. Each has its connect_timeout. The end of ctx also ends the wait, without an error. await returns the last
// state that it read.
func await(ctx context.Context, w *world, b backend, tool string) (*state, error) {
	return awaitWith(ctx, w, b, tool, func(*bar, []string) error { return nil })
}

// awaitWith is like await, and calls during with the servers that it waits for, in order, each time that it looks.
// during closes the bar before it prints.
func awaitWith(
	ctx context.Context, w *world, b backend, tool string, during func(bar *bar, starting []string) error,
) (*state, error) {
	bar := newBar(w)
	defer bar.close()
	began := time.Now()
	mentioned := false
	settled := map[string]bool{} // servers whose first attempt has ended
	pause := lookAgain
	if _, remote := b.(*peer); remote {
		pause = lookAfar
	}
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		h, err := healthOf(w.ctx, b)
		if errors.Is(err, errNotOffered) {
			return &state{}, nil // the router does not offer health_check
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
		if err := during(bar, starting); err != nil {
			return nil, err
		}
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

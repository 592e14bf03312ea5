package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/llm"
)

type healthCmd struct {
	source
	remote
	JSON bool `name:"json" help:"Print the structured content."`
}

func (c *healthCmd) Run(w *world) error {
	c.names = true
	b, done, err := c.backend(w, c.remote)
	if err != nil {
		return err
	}
	defer done()
	health, err := c.look(w, b)
	if err != nil {
		return err
	}
	if c.JSON {
		_, err = fmt.Fprintln(w.stdout, string(indent(health.raw)))
	} else {
		err = health.print(w)
	}
	switch {
	case err != nil:
		return err
	case health.Status == "unhealthy":
		return &exitError{exitFailed, "unhealthy: no server is healthy; start them, or correct their entries in the configuration"}
	case health.Status != "healthy", c.Remote == "" && health.modelFails(): // a remote router's last failure may be old
		return &exitError{code: exitPartly}
	}
	return nil
}

// look returns the state of the router. For a router in this process it first waits for the servers and models.
func (c *healthCmd) look(w *world, b backend) (*state, error) {
	l, ok := b.(local)
	if !ok {
		return healthOf(w.ctx, b)
	}
	l.app.ProbeModels(w.ctx)
	return await(w.ctx, w, b, "")
}

// models returns the configured models by role.
func (h *state) models() map[string]*llm.Status {
	models := map[string]*llm.Status{"planner": h.LLM.Planner, "synthesizer": h.LLM.Synthesizer}
	maps.DeleteFunc(models, func(_ string, s *llm.Status) bool { return s == nil })
	return models
}

func (h *state) modelFails() bool {
	for _, m := range h.models() {
		if m.State == llm.StateFailing || m.State == llm.StateRejected {
			return true
		}
	}
	return false
}

func (h *state) print(w *world) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s (version %s)\n", h.Status, h.Version)
	for _, name := range slices.Sorted(maps.Keys(h.Servers)) {
		s := h.Servers[name]
		why := ""
		if s.LastError != nil && s.Status != downstream.StateConnected {
			why = s.LastError.Reason + ": " + firstLine(s.LastError.Message, 120)
		}
		line := fmt.Sprintf("  %-20s %-13s %-6s %s", name, s.Status, s.Transport, why)
		fmt.Fprintln(&out, strings.TrimRight(line, " "))
	}
	models := h.models()
	for _, role := range slices.Sorted(maps.Keys(models)) {
		m := models[role]
		fmt.Fprintf(&out, "  %-20s %-13s %s", role+" model", m.State, m.Model)
		if m.LastError != "" {
			fmt.Fprintf(&out, "  %s", firstLine(m.LastError, 200))
		}
		fmt.Fprintln(&out)
	}
	_, err := fmt.Fprint(w.stdout, out.String())
	return err
}

package app

import (
	"context"
	"slices"
	"time"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/admission"
	"github.com/agenticnexus/agenticnexus/internal/telemetry"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// meter turns observations of the parts into metrics.
type meter struct {
	*telemetry.Metrics
	prices map[string]config.Price
	own    []string // tools of the router
}

func newMeter(t *telemetry.Telemetry, prices map[string]config.Price) (*meter, error) {
	metrics, err := t.NewMetrics()
	return &meter{metrics, prices, router.DefaultTools().Tools}, err
}

func (m *meter) call(o downstream.Observation) {
	c := telemetry.ClientCall{Server: o.Server, Method: o.Method, Tool: o.Tool, Listed: o.Listed, Took: o.Duration,
		Waited: o.Waited, Retries: o.Attempts - 1}
	if o.Outcome != downstream.OutcomeOK {
		c.ErrorType = o.Outcome
	}
	m.ClientCall(context.Background(), c)
}

// requests returns the observer of client requests, or nil if metrics are off.
func (m *meter) requests() func(edge.Served) {
	if m.Off() {
		return nil
	}
	return m.served
}

func (m *meter) served(s edge.Served) {
	tool := s.Name
	if s.Method != "tools/call" || !slices.Contains(m.own, tool) {
		tool = "" // the client may have made the name up
	}
	m.ServerCall(s.Method, tool, s.ErrorType, s.Duration)
}

func (m *meter) query(outcome string, took time.Duration, r *router.Record) {
	q := telemetry.QueryCall{Outcome: outcome, Took: took}
	if r != nil {
		q.Source, q.Rounds, q.Fallbacks = r.Plan.Source, r.Plan.Rounds, r.Fallbacks
		q.Consents = map[string]int{"given": int(r.Consents.Given.Load()), "declined": int(r.Consents.Declined.Load()),
			"unanswered": int(r.Consents.Unanswered.Load())}
		for _, u := range r.Unmet {
			q.Unmet = append(q.Unmet, u.Reason)
		}
	}
	m.Query(context.Background(), q)
}

func (m *meter) model(c router.ModelCall) {
	m.ModelCall(context.Background(), telemetry.ModelCall{Operation: c.Operation, Model: c.Model, Provider: c.Provider,
		ErrorType: c.ErrorType, Took: c.Duration, Input: c.Input, Output: c.Output,
		Cost: m.prices[c.Model].Of(c.Input, c.Output)})
}

// readingsOf returns the values of gauges.
func readingsOf(a *App) telemetry.Readings {
	refusals, dropped := a.edge.Losses()
	r := telemetry.Readings{Sessions: a.edge.Sessions(), Tracked: a.edge.Tracked(), Dropped: dropped, Refusals: refusals,
		Spans: a.telemetry.DroppedSpans(), Servers: map[string]telemetry.ServerReading{}}
	r.Refusals["rate_limited"] = a.rate.Refused()
	for name, s := range a.servers.Status() {
		if s.Status == downstream.StateDisabled {
			continue // disabled is not down
		}
		r.Servers[name] = telemetry.ServerReading{Up: s.Status == downstream.StateConnected,
			BreakerOpen: s.Breaker != admission.Closed, InFlight: s.InFlight, Queued: s.Queued, Sessions: s.Sessions,
			Tools: s.Tools, Quarantined: len(s.Quarantined)}
	}
	return r
}

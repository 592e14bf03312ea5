package console

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/health"
	"github.com/agenticnexus/agenticnexus/internal/history"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// Severities of what needs attention.
const (
	bad  = "bad"
	warn = "warn"
)

// attention is a problem for the operator, with a link to it.
type attention struct {
	Severity string     `json:"severity"`
	Subject  string     `json:"subject"`
	Text     string     `json:"text"`
	Link     string     `json:"link"` // in the page
	Since    *time.Time `json:"since,omitempty"`
}

// nowView is the content of the first view.
type nowView struct {
	Status    string          `json:"status"`
	Version   string          `json:"version"`
	Uptime    float64         `json:"uptime_seconds"`
	Servers   int             `json:"servers"`
	Connected int             `json:"connected"`
	Sessions  int             `json:"sessions"`
	InFlight  int             `json:"in_flight"`
	Attention []*attention    `json:"attention"`
	Failures  []history.Entry `json:"failures"` // the newest queries that failed
	Series    series          `json:"series"`
	Live      []Live          `json:"live"`
	History   map[string]any  `json:"history"`
	Cluster   *router.Cluster `json:"cluster,omitempty"`
	Keyed     bool            `json:"keyed"` // clients need a key or token
}

const (
	longConnecting = 30 * time.Second
	recent         = time.Hour
	refusedRecent  = 5 * time.Minute
	leastFailures  = 3 // of a tool, for attention
	leastLosses    = 3 // of a server
	failureShare   = 4 // a tool with at least one failure in 4 calls
	maxFailures    = 8
	maxAttention   = 100
)

func (c *Console) now(w http.ResponseWriter, _ *http.Request, v Viewer) {
	health, err := c.opts.Router.Health(v.Visible, "")
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	n := nowView{
		Status: health.Status, Version: health.Version, Uptime: health.UptimeSeconds, Servers: len(health.Servers),
		Attention: []*attention{}, Failures: []history.Entry{}, Live: c.opts.Journal.Running(v.sees), History: c.about(v),
		Cluster: health.Cluster, Keyed: !v.Caller.Anonymous,
	}
	for _, name := range c.visibleServers(v) {
		st := health.Servers[name]
		n.InFlight += st.InFlight
		if st.Status == downstream.StateConnected {
			n.Connected++
		}
		n.server(name, st, c.opts.Servers.Transitions(name))
	}
	n.models(health.LLM)
	n.replicas(health.Cluster)
	_, n.Sessions = edge.List(c.opts.Edge, v.sees, 0)
	if v.Operator {
		if count, at := c.refused.since(c.opts.Edge.Refused()); count > 0 && time.Since(at) < refusedRecent {
			n.add(bad, "Overload", fmt.Sprintf("%d requests were refused since the start, the last a moment ago", count), "#/sessions", &at)
		}
	}
	c.recent(&n, v)
	slices.SortStableFunc(n.Attention, func(a, b *attention) int { return cmp.Compare(a.Severity, b.Severity) })
	n.Attention = n.Attention[:min(len(n.Attention), maxAttention)]
	reply(w, n)
}

func (n *nowView) add(severity, subject, text, link string, since *time.Time) {
	n.Attention = append(n.Attention, &attention{severity, subject, text, link, since})
}

// server adds what is wrong with a server.
func (n *nowView) server(name string, st downstream.Status, past []health.Transition) {
	link := "#/servers/" + name
	why := ""
	if st.LastError != nil {
		why = fmt.Sprintf(": %s, %s", st.LastError.Reason, st.LastError.Message)
	}
	switch st.Status {
	case downstream.StateDisconnected, downstream.StateQuarantined:
		n.add(bad, name, st.Status+why, link, &st.Since)
	case downstream.StateDegraded:
		n.add(warn, name, st.Status+why, link, &st.Since)
	case downstream.StateConnecting:
		if time.Since(st.Since) > longConnecting {
			n.add(warn, name, "still connecting"+why, link, &st.Since)
		}
	}
	if st.Breaker != "closed" && st.Status != downstream.StateDisabled {
		text := "calls are held back (breaker open)"
		if st.Breaker != "open" {
			text = "calls kept failing, the next one is a trial (breaker half-open)"
		}
		n.add(bad, name, text+why, link, nil)
	}
	if lost := losses(past); lost >= leastLosses && st.Status == downstream.StateConnected {
		n.add(warn, name, fmt.Sprintf("connected, but lost %d times within an hour%s", lost, why), link, nil)
	}
	if st.Queued > 0 {
		n.add(warn, name, fmt.Sprintf("%d calls wait for a free place", st.Queued), link, nil)
	}
	if q := st.Quarantined; len(q) > 0 {
		first := cmp.Or(q[0].Tool, "a tool without a name")
		text := fmt.Sprintf("%s is quarantined: %s", first, q[0].Reason)
		if len(q) > 1 {
			text = fmt.Sprintf("%d tools are quarantined, %s among them: %s", len(q), first, q[0].Reason)
		}
		n.add(warn, name, text, link, nil)
	}
}

// losses counts how often a server was lost of late, among its transitions that are kept.
func losses(past []health.Transition) (lost int) {
	for _, t := range past {
		if t.State == downstream.StateDisconnected && time.Since(t.At) < recent {
			lost++
		}
	}
	return lost
}

// models adds models that fail.
func (n *nowView) models(m router.Models) {
	for i, s := range []*llm.Status{m.Planner, m.Synthesizer} {
		purpose := []string{"planner", "synthesizer"}[i]
		switch {
		case s == nil:
		case s.State == llm.StateRejected:
			n.add(bad, s.Model, "the endpoint refuses the key of the "+purpose+": "+s.LastError, "#/models", nil)
		case s.State == llm.StateFailing:
			n.add(bad, s.Model, "the "+purpose+" fails: "+s.LastError, "#/models", nil)
		}
	}
}

// recent adds failures and rates of the last hour.
func (c *Console) recent(n *nowView, v Viewer) {
	since := time.Now().Add(-recent)
	n.Series.begin(since)
	tools := usage{}
	c.opts.Journal.log().Each(func(e *history.Entry) bool {
		if !v.sees(e.Caller) {
			return true
		}
		if e.Kind == history.KindQuery && e.Outcome != history.OutcomeOK && len(n.Failures) < maxFailures {
			n.Failures = append(n.Failures, *e)
		}
		if e.At.Before(since) {
			return len(n.Failures) < maxFailures
		}
		n.Series.add(e)
		tools.add(e)
		return true
	})
	n.Series.end()
	var failing []*attention
	for id, u := range tools {
		if u.Failed >= leastFailures && u.Failed*failureShare >= u.Calls {
			text := fmt.Sprintf("%d of %d calls failed within an hour", u.Failed, u.Calls)
			link := url.Values{"failed": {"1"}, "server": {id.server}, "tool": {id.tool}}
			failing = append(failing, &attention{warn, id.server + "__" + id.tool, text, "#/queries?" + link.Encode(), nil})
		}
	}
	slices.SortFunc(failing, func(a, b *attention) int { return cmp.Compare(a.Subject, b.Subject) })
	n.Attention = append(n.Attention, failing...)
}

// minutes of a series.
const minutes = 60

// series has counts and latencies of each of the last minutes, oldest first.
type series struct {
	Since   time.Time        `json:"since"`
	Queries [minutes]int     `json:"queries"`
	Failed  [minutes]int     `json:"queries_failed"`
	Calls   [minutes]int     `json:"calls"` // forwarded, and steps of queries
	Errors  [minutes]int     `json:"calls_failed"`
	P50     [minutes]float64 `json:"p50_ms"` // of queries
	P95     [minutes]float64 `json:"p95_ms"`

	durations [minutes][]float64
}

func (s *series) begin(since time.Time) { s.Since = since }

// add counts an entry.
func (s *series) add(e *history.Entry) {
	m := int(e.At.Sub(s.Since) / time.Minute)
	if m < 0 || m >= minutes {
		return
	}
	for _, u := range e.Uses {
		s.Calls[m] += u.Calls
		s.Errors[m] += u.Failed
	}
	if e.Kind != history.KindQuery {
		return
	}
	s.Queries[m]++
	if e.Outcome != history.OutcomeOK {
		s.Failed[m]++
	}
	s.durations[m] = append(s.durations[m], e.Duration)
}

// end computes the percentiles.
func (s *series) end() {
	for m, d := range s.durations {
		if len(d) > 0 {
			slices.Sort(d)
			s.P50[m], s.P95[m] = d[len(d)/2], d[len(d)*95/100]
		}
	}
}

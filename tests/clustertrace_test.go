package tests

import (
	"bytes"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
	"github.com/agenticnexus/agenticnexus/tests/spantest"
)

// A request that another replica serves has one trace at both, as if it had arrived there.
func TestCluster_Trace(t *testing.T) {
	t.Parallel()
	sink := spantest.New(t)
	sole := httptest.NewServer(&mcptest.Server{Ledger: mcptest.Ledger{Path: t.TempDir() + "/ledger"}})
	t.Cleanup(sole.Close)
	c := clusterOf(t, 0, `{url: "`+sole.URL+`/mcp"}, sole: {url: "`+sole.URL+`/mcp", placement: one}`, "trusted_proxies: [127.0.0.1]")
	for _, name := range []string{"r1", "r2"} {
		r := c.replica(name)
		r.Env = []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + sink.URL, "OTEL_SERVICE_NAME=" + name, "OTEL_BSP_SCHEDULE_DELAY=100",
			"OTEL_TRACES_SAMPLER=parentbased_always_on"}
		c.start(r)
		c.replicas = append(c.replicas, r)
	}
	session := c.dial(c.replicas[0])
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	const sent = "00-" + trace + "-" + span + "-01"
	const hop = `forward (client) at r2
  tools/call work__echo (server) at r1
    tools/call echo (client) at r1
`
	tests := []struct {
		id, meta, tool string
		header         map[string]string
		joins, links   bool // its first span has the client's as parent, or as a link
		want           string
	}{
		{id: "header", tool: "work__echo", header: map[string]string{"Traceparent": sent}, joins: true, want: hop},
		{id: "meta", tool: "work__echo", meta: sent, joins: true, want: hop},
		{id: "none", tool: "work__echo", want: hop},
		{id: "stranger", tool: "work__echo", meta: sent, header: map[string]string{"X-Forwarded-For": "203.0.113.9"}, links: true, want: hop},
		{id: "forged", tool: "work__echo", header: map[string]string{"Traceparent": sent, "Nexus-Traced": "v1", "X-Forwarded-For": "203.0.113.9"},
			links: true, want: hop},
		{id: "unsampled", tool: "work__echo", meta: strings.TrimSuffix(sent, "1") + "0"},
		{id: "sole", tool: "sole__echo", meta: sent, joins: true, want: `tools/call sole__echo (server) at r2
  tools/call echo (client) at r2
    tools/call echo (server) at r1
      tools/call echo (client) at r1
`},
	}
	elsewhere := c.dial(c.replicas[1])
	for _, test := range tests {
		at := c.at(c.replicas[1], session)
		if test.id == "sole" {
			at = c.at(c.replicas[1], elsewhere)
		}
		at.HTTP = &http.Client{Transport: withHeader(test.header)}
		if got := at.DoAs(t.Context(), `"`+test.id+`"`, "tools/call", `{"name":"`+test.tool+`","arguments":{"key":"a"},"_meta":{"traceparent":"`+
			test.meta+`"}}`).Outcome(); got != "result" {
			t.Errorf("%s: got %s, want a result", test.id, got)
		}
	}
	for _, r := range c.replicas {
		r.Stop() // it has sent all spans then
	}
	for _, test := range tests {
		first, got := firstOf(sink, test.id)
		if got != test.want {
			t.Errorf("%s: got the spans\n%swant\n%s", test.id, got, test.want)
		}
		joins := hex.EncodeToString(first.GetParentSpanId()) == span && hex.EncodeToString(first.GetTraceId()) == trace
		links := len(first.GetLinks()) == 1 && hex.EncodeToString(first.GetLinks()[0].SpanId) == span
		if joins != test.joins || links != test.links {
			t.Errorf("%s: got the client's span as parent %t and as link %t, want %t and %t", test.id, joins, links, test.joins, test.links)
		}
	}
}

// firstOf returns the span of a request at the replica that got it, and the tree of that.
func firstOf(sink *spantest.Sink, id string) (first spantest.Span, tree string) {
	all := sink.Spans()
	i := slices.IndexFunc(all, func(s spantest.Span) bool { return s.Attribute("jsonrpc.request.id") == id })
	if i < 0 {
		return first, ""
	}
	for ; i >= 0; i = slices.IndexFunc(all, func(s spantest.Span) bool {
		return bytes.Equal(s.SpanId, first.ParentSpanId) && bytes.Equal(s.TraceId, first.TraceId)
	}) {
		first = all[i]
	}
	return first, sink.TreeOf(first, "service.name")
}

// withHeader adds headers to requests, each over a connection of its own.
type withHeader map[string]string

func (h withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h {
		r.Header.Set(name, value)
	}
	r.Close = true
	return http.DefaultTransport.RoundTrip(r)
}

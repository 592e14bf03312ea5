// Package spantest collects the spans of routers under test.
package spantest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a span as it was exported, and the service that did.
type Span struct {
	*tracepb.Span
	Service string
}

// Sink is a collector that keeps the spans it gets over OTLP. It is safe for concurrent use.
type Sink struct {
	URL   string // for OTEL_EXPORTER_OTLP_TRACES_ENDPOINT
	mu    sync.Mutex
	spans []Span
}

// New returns a Sink on the loopback until the end of the test.
func New(t testing.TB) *Sink {
	t.Helper()
	s := &Sink{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var data tracepb.TracesData
		if err := proto.Unmarshal(body, &data); err != nil {
			t.Errorf("the sink got no traces: %v", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, resource := range data.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					s.spans = append(s.spans, Span{span, value(resource.Resource.GetAttributes(), "service.name")})
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Spans returns what has come so far.
func (s *Sink) Spans() []Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.spans)
}

// Tree writes the spans below a parent, nil for none: name, kind of server or client spans, attributes that are asked
// for, and error. The attribute service.name is the service.
func (s *Sink) Tree(parent []byte, attributes ...string) string {
	var b strings.Builder
	write(&b, s.Spans(), parent, "", attributes)
	return b.String()
}

// TreeOf writes a span and those below it, as Tree does.
func (s *Sink) TreeOf(root Span, attributes ...string) string {
	var b strings.Builder
	b.WriteString(root.line(attributes) + "\n")
	write(&b, s.Spans(), root.SpanId, "  ", attributes)
	return b.String()
}

func write(b *strings.Builder, all []Span, parent []byte, indent string, attributes []string) {
	children := slices.Clone(all)
	children = slices.DeleteFunc(children, func(p Span) bool { return string(p.ParentSpanId) != string(parent) })
	slices.SortFunc(children, func(a, b Span) int { return strings.Compare(a.line(attributes), b.line(attributes)) })
	for _, span := range children {
		b.WriteString(indent + span.line(attributes) + "\n")
		write(b, all, span.SpanId, indent+"  ", attributes)
	}
}

func (s Span) line(attributes []string) string {
	line := s.Name
	switch s.Kind {
	case tracepb.Span_SPAN_KIND_SERVER:
		line += " (server)"
	case tracepb.Span_SPAN_KIND_CLIENT:
		line += " (client)"
	}
	for _, name := range attributes {
		if name == "service.name" {
			line += " at " + s.Service
		} else if v := s.Attribute(name); v != "" {
			line += " " + name[strings.LastIndexByte(name, '.')+1:] + "=" + v
		}
	}
	if s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR {
		line += " ERROR " + s.Attribute("error.type")
	}
	return line
}

// Attribute returns the value of an attribute, a string or an integer; empty without it.
func (s Span) Attribute(name string) string { return value(s.Attributes, name) }

func value(attributes []*commonpb.KeyValue, name string) string {
	i := slices.IndexFunc(attributes, func(kv *commonpb.KeyValue) bool { return kv.Key == name })
	if i < 0 {
		return ""
	}
	v := attributes[i].Value
	if n, ok := v.Value.(*commonpb.AnyValue_IntValue); ok {
		return strconv.FormatInt(n.IntValue, 10)
	}
	return v.GetStringValue()
}

package edge

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/cluster"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// Served describes a request that was served, for metrics. Method and Name are as the client wrote them.
type Served struct {
	Method    string
	Name      string // of the tool or prompt
	ErrorType string // empty = answered with a successful result
	Duration  time.Duration
}

// observed is a request that is being served. Its zero value is not observed.
type observed struct {
	name  string // of the tool or prompt
	began time.Time
	span  trace.Span // nil = none
}

// observe starts the span of a request. The client's trace context comes from _meta or the headers.
func (ep *endpoint) observe(ctx context.Context, x *Exchange) (_ context.Context, o observed) {
	e := ep.edge
	var links []trace.Link
	switch {
	case cluster.Traced(ctx): // the other replica has read what the client sent
		ctx, links = tracing.Remote{Header: x.Header}.Context(ctx, true)
	case x.remote.Sent():
		ctx, links = x.remote.Context(ctx, trusted(x.Caller, x.Header))
	}
	if !e.tracer.On() && e.served == nil {
		return ctx, o
	}
	o.began = time.Now()
	o.name = tracing.Named(x.Message.Method, x.Message.Params)
	if e.tracer.On() {
		ctx, o.span = e.tracer.Start(ctx, tracing.Name(x.Message.Method, o.name),
			trace.WithSpanKind(trace.SpanKindServer), trace.WithLinks(links...))
		if o.span.IsRecording() {
			o.span.SetAttributes(attributesOf(x, o.name)...)
		}
		e.tracer.Resource(o.span, x.Message.Method, x.Message.Params)
	}
	return ctx, o
}

// ended ends the span of a request and counts the request.
func (ep *endpoint) ended(x *Exchange, o observed) {
	if o.began.IsZero() {
		return
	}
	kind := failureOf(x)
	if o.span != nil {
		if kind != "" {
			ep.edge.tracer.Fail(o.span, kind, "")
		}
		if x.reply.code != nil {
			o.span.SetAttributes(tracing.Code(x.reply.code))
		}
		o.span.End()
	}
	if ep.edge.served != nil {
		ep.edge.served(Served{Method: x.Message.Method, Name: o.name, ErrorType: kind, Duration: time.Since(o.began)})
	}
}

// attributesOf returns the attributes of a request's span. They omit the session id, which is a credential.
func attributesOf(x *Exchange, name string) []attribute.KeyValue {
	transport := tracing.TransportTCP
	if x.Header == nil {
		transport = tracing.TransportPipe
	}
	return append(tracing.Target(x.Message.Method, name), tracing.Text(tracing.MethodName, x.Message.Method),
		tracing.Text(tracing.RequestID, x.Message.ID.Text()), tracing.ProtocolVersion.String(string(x.Version)),
		tracing.Caller.String(x.Caller.ID), tracing.Transport.String(transport))
}

// remote returns the trace context of a message with the headers that it came with.
func remote(header http.Header, in *inbound.Message) tracing.Remote {
	return tracing.Remote{Parent: in.TraceParent, State: in.TraceState, Header: header}
}

// trusted reports whether spans may have the client's span as parent: it has a key or is on this machine.
func trusted(caller auth.Caller, header http.Header) bool {
	return !caller.Anonymous || header == nil || isLoopback(strings.TrimPrefix(caller.ID, "addr:"))
}

// failureOf returns the error type of a request; empty if it succeeded.
func failureOf(x *Exchange) string {
	switch x.reply.state.Load() {
	case succeeded, failed:
		return x.reply.failure
	case cancelled:
		return reason.Cancelled
	}
	return tracing.ErrorOther
}

// logReceived logs an incoming message at level trace. At level debug it logs _meta.session_id, which has no other
// effect. s may be nil.
func logReceived(log *slog.Logger, s *session, in *inbound.Message) {
	logMessage(log, "Message received", s, output.Whole(in.Raw))
	if jsonrpc.ValidID(in.SessionID) && log.Enabled(context.Background(), slog.LevelDebug) {
		log.Debug("Request names a session", "method", in.Method, "session_id", jsonrpc.ID(in.SessionID).Text())
	}
}

// logSent logs an outgoing message at level trace. s may be nil.
func logSent(log *slog.Logger, s *session, m output.Message) { logMessage(log, "Message sent", s, m) }

// SessionLabel returns the end of a session id, for the log: the whole id is a credential.
func SessionLabel(id string) string { return id[max(0, len(id)-sessionLabel):] }

const sessionLabel = 8 // bytes

func logMessage(log *slog.Logger, event string, s *session, m output.Message) {
	if !log.Enabled(context.Background(), jsonrpc.LevelTrace) {
		return
	}
	id := ""
	if s != nil {
		id = s.id
	}
	log.Log(context.Background(), jsonrpc.LevelTrace, event, "session", SessionLabel(id), "message", string(m.Append(nil)))
}

// Package link holds raw MCP sessions with downstream servers: over a child process's stdio, an in-memory
// stream, streamable HTTP, or HTTP+SSE of 2024-11-05.
//
// Results, errors and notifications pass as raw bytes. Ids and progress tokens on a session are the
// link's own. A Session may be used from any goroutine; what a server sends for one call (progress,
// then its response) is handed over in order, from one goroutine at a time. Close waits for every
// goroutine of the session. A session that is lost stays lost (see Done); the owner connects anew.
package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/secret"
)

// Target says where a server is. Exactly one of Command, URL and Dial is set.
type Target struct {
	Command []string                 // program and arguments
	Env     map[string]secret.String // added to PATH, HOME, LANG and TMPDIR; nothing else is inherited
	Dir     string

	URL     string
	Headers map[string]secret.String
	SSE     bool // HTTP+SSE instead of streamable HTTP

	Dial func(ctx context.Context) (io.ReadWriteCloser, error) // newline-delimited messages, as on stdio
}

// Options of a session.
type Options struct {
	Server     string // name for logs and failures
	Target     Target
	Initialize []byte // raw params of the initialize request
	Handler    Handler
	MaxMessage int               // bytes of one message from the server
	HTTP       http.RoundTripper // for URL targets; follows no redirects
	Logger     *slog.Logger

	// ClientDriven leaves notifications/initialized to the owner, who passes on a client's own.
	ClientDriven bool
}

// Handler receives what a server sends of its own accord. from are the calls that it may belong to: the
// one on whose stream it came, or on a transport without streams those of the only client that has calls
// in flight, the newest first; none if that cannot be told.
type Handler interface {
	// Notified must not block. Progress of a call that is in flight goes to Call.Progress instead, and
	// cancellations of the server's own requests end the context of Asked.
	Notified(m jsonrpc.Message, from []*Call)
	// Asked answers a server→client request other than ping with a raw result or a raw error. ctx ends
	// with the session, or when the server takes its request back: then the cause is a CancelParams, and
	// the answer goes nowhere. It runs in a goroutine of its own.
	Asked(ctx context.Context, m jsonrpc.Message, from []*Call) (result, err []byte)
}

// Call is one request to a server.
type Call struct {
	Method   string
	Params   []byte               // raw object or nil; its progress token is replaced by the link's own
	Progress func(params []byte)  // raw params of progress notifications; must not block; nil = not requested
	Sent     func()               // called at most once, when the request has been written; must not block; may be nil
	Streams  func()               // the server answers with a stream; may be nil
	Reserve  func(total int) bool // asked before an answer takes more memory, which the caller pays for; may be nil
	Client   string               // who caused it; empty for the router itself
	Caller   string               // whose client that is
	Gone     func() bool          // the client's connection has ended, so that it cannot be asked anything; may be nil
	Origin   any                  // what the Handler needs to know of the cause
	Header   http.Header          // added to the request's own, over HTTP; may be nil

	probe bool // it asks whether the server knows the session
}

// Reply is a server's answer: a raw result or a raw error.
type Reply struct {
	Result, Err []byte
	Modern      bool          // of a server of 2026-07-28, whose results have a resultType
	Names       jsonrpc.Names // member names that occur in them

	raw []byte // the memory of both
}

// Free returns the memory of a large answer for reuse. No reference to it may remain.
func (r Reply) Free() { memory.keep(r.raw) }

// Failure is the error of a call that got no answer.
type Failure struct {
	Server    string
	Reason    string
	Message   string
	Delivered bool // the request may have reached the tool
	Lost      bool // the session no longer works
	Unknown   bool // the server answered that it does not know the session
	After     time.Duration

	status int // of HTTP, if that is what failed
}

// Error implements error.
func (f *Failure) Error() string {
	return fmt.Sprintf("server %s is %s: %s", f.Server, reasonText(f.Reason), f.Message)
}

func reasonText(why string) string {
	switch why {
	case reason.Timeout:
		return "too slow"
	case reason.TooLarge:
		return "over a size limit"
	case reason.Protocol:
		return "not speaking MCP"
	case reason.Quarantined:
		return "offering a tool that cannot be used"
	case reason.OutcomeUnknown:
		return "gone before it answered"
	}
	return why
}

// CancelParams is implemented by a context's cause that knows the raw params of the cancellation which
// caused it; they are passed on with the request id that the other side knows.
type CancelParams interface{ CancelParams() []byte }

// Connect opens a session and completes the handshake within ctx, which does not bound the session.
// The error is a *Failure.
func Connect(ctx context.Context, opts Options) (*Session, error) {
	s := newSession(opts)
	var err error
	switch t := opts.Target; {
	case t.Dial != nil, len(t.Command) > 0:
		s.transport, err = openStream(ctx, s)
	case t.SSE:
		s.transport, err = openSSE(ctx, s)
	default:
		s.transport, err = openHTTP(s)
	}
	if err == nil {
		err = s.handshake(ctx)
	}
	if err == nil {
		err = s.establish()
	}
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = s.failure(reason.Timeout, "cannot connect: %v", context.Cause(ctx))
		}
		limit := farewellTime
		if errors.Is(ctx.Err(), context.Canceled) && opts.Target.URL == "" {
			limit = lastWords // nobody wants the process any more
		}
		s.CloseWithin(limit)
		return nil, s.asFailure(err)
	}
	return s, nil
}

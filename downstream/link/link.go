// Package link implements raw MCP sessions with downstream servers over the stdio of a child process, an in-memory
// stream, streamable HTTP, or HTTP+SSE of 2024-11-05.
//
// Results, errors and notifications pass as raw bytes. Ids and progress tokens on a session are the link's own. A
// Session is safe for concurrent use. Messages for one call (progress, then its response) are delivered in order,
// from one goroutine at a time. Close waits for every goroutine of the session. A lost session stays lost (see Done);
// its owner opens a new one.
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
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/stderr"
)

// Target is the address of a server. Exactly one of Command, URL and Dial is set.
type Target struct {
	Command []string                 // program and arguments
	Env     map[string]redact.Secret // added to PATH, HOME, LANG and TMPDIR, the only inherited variables
	Dir     string

	URL     string
	Headers map[string]redact.Secret
	SSE     bool // HTTP+SSE instead of streamable HTTP

	Dial func(ctx context.Context) (io.ReadWriteCloser, error) // carries newline-delimited messages, as stdio does
}

// Options of a session.
type Options struct {
	Server     string // name for logs and failures
	Target     Target
	Initialize []byte // raw params of the initialize request
	Handler    Handler
	MaxMessage int               // maximum bytes of one message from the server
	HTTP       http.RoundTripper // for URL targets; follows no redirects
	Logger     *slog.Logger
	Mask       *redact.Masker // of failures
	Errors     *stderr.Tail   // gets the error output of a command, without secrets; nil = none

	Era       *Era // of the server; nil = nothing is remembered
	Handshake bool // initialize is preferred to server/discover

	// ClientDriven leaves notifications/initialized to the owner, which relays the client's.
	ClientDriven bool
}

// Handler receives the messages that a server sends on its own initiative. from are the calls that a message may
// belong to: the call on whose stream it arrived or, on a shared stream, the calls of the only client with calls in
// flight, newest first; none if that is unknown.
type Handler interface {
	// Notified must not block. Progress of calls in flight goes to Call.Progress instead. Cancellations of the
	// server's own requests end the context of Asked.
	Notified(m jsonrpc.Message, from []*Call)
	// Asked answers a request of the server other than ping with a raw result or a raw error. ctx ends with the
	// session, or when the server cancels its request; then the cause is a CancelParams and the answer is dropped. It
	// runs in its own goroutine.
	Asked(ctx context.Context, m jsonrpc.Message, from []*Call) (result, err []byte)
}

// Call is one request to a server.
type Call struct {
	Method      string
	Params      []byte               // raw object or nil; its progress token is replaced by the link's own
	Progress    func(params []byte)  // raw params of progress notifications; must not block; nil = not requested
	Sent        func()               // called at most once, after the request is written; must not block; may be nil
	Streams     func()               // called if the response is a stream; may be nil
	Reserve     func(total int) bool // charges the response to the caller before it grows; may be nil
	Client      string               // the client that caused the call; empty for the router itself
	Caller      string               // the owner of that client
	Gone        func() bool          // the client's connection has ended and it cannot be asked; may be nil
	Crowded     func(method string)  // see pendingCalls.crowded; must not block; may be nil
	HandlerData any                  // the Handler's data about the call
	Header      http.Header          // added to the request's own, over HTTP; may be nil

	probe bool // it tests whether the server knows the session

	// listens is called with the filter that the server accepts for a request that stays open for notifications, and
	// whose end no caller waits for. It is nil for others.
	listens func(filter []byte)
	// heard is called with the raw tasks that the server announces for such a request; it is nil for others.
	heard func(task []byte)
}

// Reply is a server's response: a raw result or a raw error.
type Reply struct {
	Result, Err []byte
	Modern      bool          // from a server of 2026-07-28, whose results have a resultType
	Names       jsonrpc.Names // member names that occur in it

	raw []byte // the memory of Result and Err
}

// Free returns the memory of a large response for reuse. No reference to it may remain.
func (r Reply) Free() { free(r.raw) }

// Failure is the error of a call without a response.
type Failure struct {
	Server         string
	Reason         string
	Message        string
	MaybeDelivered bool `json:"Delivered"` // the request may have reached the tool; the JSON is that of recordings
	Lost           bool // the session no longer works
	Unknown        bool // the server reported an unknown session
	Refused        bool // the call was refused before it reached the server
	NoToken        bool // the router has no OAuth token that the server accepts; nothing was handled
	After          time.Duration

	status int // HTTP status, if that is the failure
}

// Error implements error.
func (f *Failure) Error() string {
	if f.Server == "" { // the router itself has failed
		return f.Message
	}
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
		return "disconnected before it answered"
	}
	return why
}

// CancelParams is implemented by a context cause that has the raw params of the cancellation behind it. They are
// relayed with the request id of the other side.
type CancelParams interface{ CancelParams() []byte }

// Connect opens a session and completes the handshake within ctx, which does not limit the session. If ctx has a
// deadline, a failed attempt has ended by then, its process included. The error is a *Failure.
func Connect(ctx context.Context, opts Options) (*Session, error) {
	s := newSession(opts)
	if end, ok := ctx.Deadline(); ok {
		s.rest = EndTime(time.Until(end))
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, end.Add(-s.rest), errSlowHandshake)
		defer cancel()
		s.rest /= 2 // then a process is killed or a stream is cut, which takes a moment, too
	}
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
		err = opener{s}.handshake(ctx)
	}
	if err == nil {
		err = s.establish()
	}
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = s.failure(reason.Timeout, "cannot connect: %v", context.Cause(ctx))
		}
		if errors.Is(ctx.Err(), context.Canceled) && opts.Target.URL == "" {
			s.rest = flushTimeout // no caller needs the process
		}
		s.CloseWithin(s.rest)
		return nil, s.asFailure(err)
	}
	if s.modern {
		s.listener.start()
	}
	return s, nil
}

var errSlowHandshake = errors.New("the handshake took too long")

// EndTime returns the part of the time for an attempt to connect that is left for its end.
func EndTime(attempt time.Duration) time.Duration { return min(attempt/5, closeTimeout) }

package link

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// The first request of a session tells its era.
const (
	methodDiscover   = "server/discover" // 2026-07-28, without a handshake
	methodInitialize = "initialize"      // older versions
)

// discoverTime limits server/discover: many servers of older versions do not answer it.
const discoverTime = 3 * time.Second

// Era remembers, for all sessions with a server, which era the server does not speak. The zero value remembers nothing.
// It is safe for concurrent use.
type Era struct{ first atomic.Value } // the first request of that era, a string; empty = none

func (e *Era) lacking() string {
	first, _ := e.first.Load().(string)
	return first
}

func (e *Era) lack(first string) { e.first.Store(first) }

func (e *Era) forget() { e.first.Store("") }

// opener opens a session.
type opener struct{ *Session }

// handshake opens the session: in the preferred era or, if the server does not speak that one, in the other.
func (s opener) handshake(ctx context.Context) error {
	if s.opts.Target.SSE {
		return s.initialize(ctx)
	}
	era := s.opts.Era
	known := era.lacking()
	first, second := methodDiscover, methodInitialize
	if s.opts.Handshake && known != second || known == first {
		first, second = second, first
	}
	err := s.open(ctx, first)
	if err == nil {
		return nil
	}
	f := s.asFailure(err)
	if s.Err() != nil && f.MaybeDelivered {
		era.forget() // the request may have ended the session
	}
	if !s.mayLack(ctx, first, err, known) {
		return err
	}
	other := s.open(ctx, second)
	if other != nil && f.Reason == reason.Timeout && known == second && s.mayLack(ctx, second, other, known) &&
		s.open(ctx, first) == nil { // it was starting
		return nil
	}
	switch {
	case other == nil && f.Reason == reason.Protocol:
		era.lack(first)
	case other == nil && known == second:
		era.forget()
	case other != nil && s.asFailure(other).Reason != reason.Unauthorized && (second == methodDiscover || known == second):
		return err
	}
	return other
}

// mayLack reports whether a failure of the first request of an era may mean that the server does not speak the era.
func (s opener) mayLack(ctx context.Context, first string, err error, known string) bool {
	f := s.asFailure(err)
	switch {
	case ctx.Err() != nil, s.Err() != nil:
		return false
	case first == methodInitialize:
		return f.Reason == reason.Protocol && (s.Initialized == nil || isBadRequest(err))
	case f.Reason == reason.Protocol, f.Reason == reason.Timeout:
		return true
	}
	// Servers fail in many ways at what they do not know.
	return known == "" && f.Reason != reason.Unauthorized && f.Reason != reason.Overloaded
}

func (s opener) open(ctx context.Context, first string) error {
	if first == methodInitialize {
		return s.initialize(ctx)
	}
	return s.discover(ctx)
}

// initialize does the handshake of older versions.
func (s opener) initialize(ctx context.Context) error {
	reply, err := s.Call(ctx, &Call{Method: methodInitialize, Params: s.opts.Initialize})
	if err != nil {
		return err
	}
	if reply.Err != nil {
		return s.failure(reason.Protocol, "initialize was refused: %s", jsonrpc.Text(jsonrpc.Get(reply.Err, "message")))
	}
	s.Initialized = reply.Result
	if s.Version = jsonrpc.Text(jsonrpc.Get(reply.Result, "protocolVersion")); s.Version == "" {
		return s.failure(reason.Protocol, "the result of initialize has no protocol version")
	}
	s.batches.Store(s.Version == string(protocol.V20250326))
	s.transport.opened()
	if s.opts.ClientDriven {
		return nil
	}
	return s.Notify(ctx, "notifications/initialized", nil)
}

// discover opens a session of 2026-07-28.
func (s opener) discover(ctx context.Context) error {
	if t, ok := s.transport.(*httpTransport); ok {
		t.leaveSession()
	}
	s.modern = true
	result, err := s.discovered(ctx)
	if err != nil {
		s.modern = false
		return err
	}
	versions := stringsOf(jsonrpc.Get(result, "supportedVersions"))
	if !slices.ContainsFunc(versions, func(v string) bool { return protocol.Version(v).IsHandshake() }) {
		s.opts.Era.lack(methodInitialize)
	}
	s.Version = versionModern
	s.Initialized = jsonrpc.Set(result, "protocolVersion", []byte(jsonrpc.StringID(versionModern)))
	if info := jsonrpc.Get(result, "_meta", metaServer); info != nil {
		s.Initialized = jsonrpc.Set(s.Initialized, "serverInfo", info)
	}
	s.transport.opened()
	return nil
}

// discovered returns the result of server/discover of a server that speaks 2026-07-28.
func (s opener) discovered(ctx context.Context) ([]byte, error) {
	silent := s.failure(reason.Timeout, "no answer to %s", methodDiscover)
	ctx, cancel := context.WithTimeoutCause(ctx, discoverTime, silent)
	defer cancel()
	reply, err := s.Call(ctx, &Call{Method: methodDiscover})
	if err == nil && slices.Contains(supported(reply.Err), versionModern) { // it refused the version that it names
		reply, err = s.Call(ctx, &Call{Method: methodDiscover})
	}
	switch {
	case err != nil:
		return nil, err
	case reply.Err != nil:
		return nil, s.failure(reason.Protocol, "%s was refused: %s", methodDiscover,
			jsonrpc.Text(jsonrpc.Get(reply.Err, "message")))
	case !slices.Contains(stringsOf(jsonrpc.Get(reply.Result, "supportedVersions")), versionModern):
		return nil, s.failure(reason.Protocol, "the result of %s does not name version %s", methodDiscover, versionModern)
	}
	return reply.Result, nil
}

// replaced reports whether an error tells that another server answers now, such as a newer or older one behind the same
// URL: it does not support the session's version, or does not know the request that opened a session of 2026-07-28.
func (s *Session) replaced(call *Call, rpcErr []byte) bool {
	if s.Version == "" || rpcErr == nil {
		return false
	}
	versions := supported(rpcErr)
	return len(versions) > 0 && !slices.Contains(versions, s.Version) ||
		call.Method == methodDiscover && string(jsonrpc.Get(rpcErr, "code")) == strconv.Itoa(jsonrpc.CodeMethodNotFound)
}

// supported returns the versions that a server names when it refuses another.
func supported(refusal []byte) []string {
	if string(jsonrpc.Get(refusal, "code")) != strconv.Itoa(jsonrpc.CodeUnsupportedVersion) {
		return nil
	}
	return stringsOf(jsonrpc.Get(refusal, "data", "supported"))
}

// stringsOf returns the strings of a JSON array.
func stringsOf(array []byte) (out []string) {
	for _, raw := range jsonrpc.Elements(array) {
		out = append(out, jsonrpc.Text(raw))
	}
	return out
}

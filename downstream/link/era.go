package link

import (
	"context"
	"slices"
	"strconv"
	"sync"
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
type Era struct{ first atomic.Value } // the first request of that era, a string

func (e *Era) without() string {
	first, _ := e.first.Load().(string)
	return first
}

func (e *Era) lack(first string) { e.first.Store(first) }

// opener opens a session.
type opener struct {
	*Session
	first string // the first request
}

// handshake opens the session: in the preferred era or, if the server does not speak that one, in the other.
func (s *opener) handshake(ctx context.Context) error {
	if s.opts.Target.SSE {
		return s.initialize(ctx)
	}
	known := s.opts.Era.without()
	first, second := methodDiscover, methodInitialize
	if s.opts.Handshake && known != second || known == first {
		first, second = second, first
	}
	err := s.open(ctx, first)
	if err == nil || s.first != first || !s.mayLack(ctx, err, known) {
		return err
	}
	other := s.open(ctx, second)
	if other != nil && s.asFailure(err).Reason == reason.Timeout && s.mayLack(ctx, other, known) {
		other = s.open(ctx, first) // it was starting
	}
	switch {
	case other == nil:
		if s.asFailure(err).Reason == reason.Protocol {
			s.opts.Era.lack(first)
		}
		return nil
	case s.asFailure(other).Reason == reason.Unauthorized, (second == methodInitialize) == (known != methodInitialize):
		return other
	}
	return err
}

// mayLack reports whether a failure to open the session may mean that the server does not speak the era.
func (s *opener) mayLack(ctx context.Context, err error, known string) bool {
	f := s.asFailure(err)
	switch {
	case ctx.Err() != nil, s.Err() != nil:
		return false
	case s.first == methodInitialize:
		return f.Reason == reason.Protocol && (s.Initialized == nil || isBadRequest(err))
	case f.Reason == reason.Protocol, f.Reason == reason.Timeout:
		return true
	}
	// Servers fail in many ways at what they do not know.
	return known == "" && f.Reason != reason.Unauthorized && f.Reason != reason.Overloaded
}

func (s *opener) open(ctx context.Context, first string) error {
	s.first = first
	if first == methodInitialize {
		return s.initialize(ctx)
	}
	return s.discover(ctx)
}

// initialize does the handshake of older versions.
func (s *opener) initialize(ctx context.Context) error {
	reply, err := s.Call(ctx, s.initializing())
	return s.initialized(ctx, opening{reply, err})
}

func (s *opener) initializing() *Call {
	return &Call{Method: methodInitialize, Params: s.opts.Initialize}
}

// initialized handles the outcome of initialize.
func (s *opener) initialized(ctx context.Context, o opening) error {
	if o.err != nil {
		return o.err
	}
	if o.reply.Err != nil {
		return s.failure(reason.Protocol, "initialize was refused: %s", jsonrpc.Text(jsonrpc.Get(o.reply.Err, "message")))
	}
	s.Initialized = o.reply.Result
	if s.Version = jsonrpc.Text(jsonrpc.Get(o.reply.Result, "protocolVersion")); s.Version == "" {
		return s.failure(reason.Protocol, "the result of initialize has no protocol version")
	}
	s.batches.Store(s.Version == string(protocol.V20250326))
	s.transport.opened()
	if s.opts.ClientDriven {
		return nil
	}
	return s.Notify(ctx, "notifications/initialized", nil)
}

// opening is the outcome of a first request.
type opening struct {
	reply Reply
	err   error
}

// discover opens a session of 2026-07-28, or an older one if that is what await finds.
func (s *opener) discover(ctx context.Context) error {
	if t, ok := s.transport.(*httpTransport); ok {
		t.leaveSession()
	}
	var o opening
	if o, s.first = s.await(ctx); s.first == methodInitialize {
		err := s.initialized(ctx, o)
		if err == nil {
			s.opts.Era.lack(methodDiscover)
		}
		return err
	}
	if err := s.refusal(o); err != nil {
		return err
	}
	versions := stringsOf(jsonrpc.Get(o.reply.Result, "supportedVersions"))
	if !slices.ContainsFunc(versions, func(v string) bool { return protocol.Version(v).IsHandshake() }) {
		s.opts.Era.lack(methodInitialize)
	}
	s.modern, s.Version = true, versionModern
	s.Initialized = jsonrpc.Set(o.reply.Result, "protocolVersion", []byte(jsonrpc.StringID(versionModern)))
	if info := jsonrpc.Get(o.reply.Result, "_meta", metaServer); info != nil {
		s.Initialized = jsonrpc.Set(s.Initialized, "serverInfo", info)
	}
	s.transport.opened()
	return nil
}

// await asks the server for its era. It returns the outcome that counts, and of which request it is. A process that
// does not answer in time may be starting, or not know the request: it gets initialize, too, and the earlier answer
// counts.
func (s *opener) await(ctx context.Context) (o opening, first string) {
	ctx, cancel := context.WithCancel(ctx)
	var sent sync.WaitGroup
	defer sent.Wait()
	defer cancel()
	begin := func(call *Call) <-chan opening {
		done := make(chan opening, 1)
		sent.Add(1)
		s.run(func() {
			defer sent.Done()
			o := opening{err: s.failure(reason.Disconnected, "no answer to %s", call.Method)} // after a panic
			defer func() { done <- o }()
			o.reply, o.err = s.Call(ctx, call)
		})
		return done
	}
	discover := &Call{Method: methodDiscover, discovers: true}
	asked, again := begin(discover), true
	var begun <-chan opening // of initialize
	var answer *opening      // to it
	late := time.After(discoverTime)
	for {
		select {
		case o = <-asked:
			asked = nil
			switch refused := s.refusal(o) != nil; {
			case again && slices.Contains(supported(o.reply.Err), versionModern):
				asked, again = begin(discover), false // it refused the version that it names
			case refused && answer != nil:
				return *answer, methodInitialize
			case !refused || begun == nil:
				return o, methodDiscover
			}
		case o = <-begun:
			if asked == nil {
				return o, methodInitialize
			}
			begun, answer = nil, &opening{o.reply, o.err}
			late = time.After(flushTimeout) // the answer to the first request may have come before
		case <-late:
			if answer != nil {
				return *answer, methodInitialize
			}
			if _, process := s.transport.(*streamTransport); !process {
				return opening{err: s.failure(reason.Timeout, "no answer to %s", methodDiscover)}, methodDiscover
			}
			begun = begin(s.initializing())
		}
	}
}

// refusal returns why an answer to server/discover opens no session; nil if it does.
func (s *opener) refusal(o opening) error {
	if o.err != nil {
		return o.err
	}
	if o.reply.Err != nil {
		return s.failure(reason.Protocol, "%s was refused: %s", methodDiscover,
			jsonrpc.Text(jsonrpc.Get(o.reply.Err, "message")))
	}
	if !slices.Contains(stringsOf(jsonrpc.Get(o.reply.Result, "supportedVersions")), versionModern) {
		return s.failure(reason.Protocol, "the result of %s does not name version %s", methodDiscover, versionModern)
	}
	return nil
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

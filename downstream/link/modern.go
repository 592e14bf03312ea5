package link

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// The protocol version without handshake and sessions, and the _meta members of its requests.
const (
	versionModern    = string(protocol.V20260728)
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaClient       = "io.modelcontextprotocol/clientInfo"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
	metaServer       = "io.modelcontextprotocol/serverInfo"
)

// inEra adapts raw params to the server's era. In the modern era, _meta names the version and the client, unless the
// client behind the call has set them. A server of another era must not see a version that its session does not use.
func (s *Session) inEra(call *Call, params []byte) []byte {
	named := bytes.Contains(params, []byte(metaVersion))
	if named == s.modern {
		return params
	}
	meta := jsonrpc.Get(params, "_meta")
	if !s.modern {
		for _, name := range [...]string{metaVersion, metaCapabilities, metaClient} {
			meta = jsonrpc.Remove(meta, name)
		}
		if meta == nil {
			return params // the names occur elsewhere
		}
		return jsonrpc.Set(params, "_meta", meta)
	}
	capabilities, info := jsonrpc.Get(s.opts.Initialize, "capabilities"), jsonrpc.Get(s.opts.Initialize, "clientInfo")
	if capabilities == nil {
		capabilities = []byte("{}")
	}
	meta = jsonrpc.Set(meta, metaCapabilities, capabilities)
	if info != nil {
		meta = jsonrpc.Set(meta, metaClient, info)
	}
	if level := s.older.logLevel(); level != nil && call.listens == nil && jsonrpc.Get(meta, metaLogLevel) == nil {
		meta = jsonrpc.Set(meta, metaLogLevel, level)
	}
	meta = jsonrpc.Set(meta, metaVersion, []byte(jsonrpc.StringID(versionModern)))
	return jsonrpc.Set(params, "_meta", meta)
}

// cancels reports whether a request is cancelled by a notification. The first ones must not be cancelled; over HTTP in
// the modern era, closing the response stream cancels.
func (s *Session) cancels(call *Call) bool {
	_, http := s.transport.(*httpTransport)
	return call.Method != methodInitialize && call.Method != methodDiscover && !(s.modern && http)
}

// ChecksParamHeaders reports whether the server compares Mcp-Param headers with the arguments of a call.
func (s *Session) ChecksParamHeaders() bool {
	_, http := s.transport.(*httpTransport)
	return s.modern && http
}

// Ping checks that the server responds. Any JSON-RPC response counts, also an error.
func (s *Session) Ping(ctx context.Context) error {
	method := "ping"
	if s.modern {
		method = methodDiscover
	}
	_, err := s.Call(ctx, &Call{Method: method, probe: true})
	return err
}

// listener holds a subscriptions/listen request open at a server of 2026-07-28, which announces changes of its lists
// only while it processes such a request.
type listener struct {
	s *Session

	mu       sync.Mutex
	openings int64    // number of the last request that the server has accepted, counted from 1
	members  []string // accepted members of the filter; nil without an accepted request
}

// watching returns the number of the current request if it covers changes of a capability's list, else 0.
func (l *listener) watching(capability string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, of := range protocol.ListChanges {
		if of.Kind == capability && slices.Contains(l.members, of.Member) {
			return l.openings
		}
	}
	return 0
}

// start opens the request, and opens another when it ends, until the session ends.
func (l *listener) start() {
	filter := l.filter()
	if filter == nil {
		return
	}
	params := jsonrpc.Set(nil, "notifications", filter)
	l.s.spawn(func() {
		reopen(l.s.ctx, func() (time.Duration, bool) { return l.open(params) })
	})
}

// filter selects the lists whose changes the server announces; nil if there are none.
func (l *listener) filter() (filter []byte) {
	for _, of := range protocol.ListChanges {
		if string(jsonrpc.Get(l.s.Initialized, "capabilities", of.Kind, of.Capability)) == "true" {
			filter = jsonrpc.Set(filter, of.Member, []byte("true"))
		}
	}
	return filter
}

// open sends a request and waits for its end. again reports whether to send another after a pause of at least retry.
func (l *listener) open(params []byte) (retry time.Duration, again bool) {
	reply, err := l.s.Call(l.s.ctx, &Call{Method: protocol.MethodListen, Params: params, listens: l.accept})
	l.mu.Lock()
	l.members = nil
	l.mu.Unlock()
	if l.s.Err() != nil {
		return 0, false
	}
	var f *Failure
	errors.As(err, &f)
	code, _ := strconv.Atoi(string(jsonrpc.Get(reply.Err, "code")))
	if code == jsonrpc.CodeMethodNotFound || f != nil && f.Reason == reason.Protocol {
		l.s.logger.Warn("the server declares changes of lists, but does not announce them", "server", l.s.server,
			"method", protocol.MethodListen, "error", err, "answer", jsonrpc.Text(jsonrpc.Get(reply.Err, "message")))
		return 0, false
	}
	l.s.logger.Debug("the announcements of the server have ended", "server", l.s.server, "error", err, "code", code)
	if f != nil {
		retry = f.After
	}
	return retry, true
}

// acknowledged handles the first message of an accepted request. stream is the request if it has a stream of its own.
func (l *listener) acknowledged(params []byte, stream *pending) {
	if stream == nil {
		stream = l.s.calls.find(jsonrpc.Get(params, "_meta", protocol.MetaSubscription))
	}
	if stream == nil || stream.call.listens == nil {
		l.s.logger.Debug("server acknowledged an unknown request", "server", l.s.server, "method", protocol.MethodListen)
		return
	}
	stream.call.listens(jsonrpc.Get(params, "notifications"))
}

// accept handles the filter that the server has accepted.
func (l *listener) accept(accepted []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.openings++
	l.members = []string{}
	for _, of := range protocol.ListChanges {
		if string(jsonrpc.Get(accepted, of.Member)) == "true" {
			l.members = append(l.members, of.Member)
		}
	}
}

// withoutSubscription returns a notification without the id of the listen request that it belongs to, which is the
// link's own.
func (l *listener) withoutSubscription(m jsonrpc.Message) jsonrpc.Message {
	meta := jsonrpc.Get(m.Params, "_meta")
	id := jsonrpc.Get(meta, protocol.MetaSubscription)
	if id == nil || !l.s.calls.knew(id) {
		return m
	}
	meta = jsonrpc.Remove(meta, protocol.MetaSubscription)
	params := jsonrpc.Remove(m.Params, "_meta")
	if len(meta) > len("{}") {
		params = jsonrpc.Set(m.Params, "_meta", meta)
	}
	kept, err := jsonrpc.Parse(jsonrpc.Splice(m.Raw, jsonrpc.Edit{Span: jsonrpc.At(m.Raw, m.Params), With: params}))
	if err != nil {
		return m
	}
	return kept
}

// reopen calls open until it returns false or ctx ends. The pauses grow while open returns early.
func reopen(ctx context.Context, open func() (retry time.Duration, again bool)) {
	wait := streamWait
	for {
		began := time.Now()
		retry, again := open()
		if !again {
			return
		}
		if time.Since(began) > streamWaits {
			wait = streamWait
		}
		select {
		case <-time.After(max(wait, min(retry, streamWaits))):
		case <-ctx.Done():
			return
		}
		wait = min(2*wait, streamWaits)
	}
}

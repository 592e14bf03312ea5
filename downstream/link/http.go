package link

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/sse"
)

const (
	maxErrorBody = 16 << 10         // bytes read of the body of an HTTP error
	streamWait   = time.Second      // before reopening the standalone stream
	streamWaits  = 30 * time.Second // maximum after repeated failures
	maxResumes   = 10               // resumptions of one response stream
	lingerTime   = time.Second / 4  // wait for the end of a stream after its response
	maxLingering = 64               // lingering streams per session
)

// httpTransport implements streamable HTTP: every request is a POST whose response is one message or a stream.
type httpTransport struct {
	s       *Session
	url     *url.URL
	rt      http.RoundTripper
	header  http.Header             // of every request; immutable
	ready   atomic.Pointer[headers] // once the session is known
	session string
	probes  probes
	unhear  context.CancelFunc // stops listening on the standalone stream; nil before
	listens atomic.Int64       // number of the current standalone stream; 0 while closed
	lingers atomic.Int64       // streams that have delivered the response but not ended
}

// headers are the request headers of a session, built once.
type headers struct{ post, get http.Header }

func openHTTP(s *Session) (transport, error) {
	u, header, err := httpTarget(s)
	if err != nil {
		return nil, err
	}
	t := &httpTransport{s: s, url: u, rt: s.opts.HTTP, header: header}
	t.ready.Store(t.headers())
	return t, nil
}

func httpTarget(s *Session) (*url.URL, http.Header, error) {
	u, err := url.Parse(s.opts.Target.URL)
	if err != nil || u.Host == "" {
		return nil, nil, s.failure(reason.Unavailable, "%q is not a URL", s.opts.Target.URL)
	}
	header := http.Header{}
	for name, v := range s.opts.Target.Headers {
		header.Set(name, v.Reveal())
	}
	return u, header, nil
}

// headers returns the request headers for the current state of the session.
func (t *httpTransport) headers() *headers {
	if t.session != "" {
		t.header.Set("Mcp-Session-Id", t.session)
	}
	if protocol.Version(t.s.Version).AtLeast(protocol.V20250618) { // that revision introduced the header
		t.header.Set("Mcp-Protocol-Version", t.s.Version)
	}
	h := &headers{post: t.header.Clone(), get: t.header.Clone()}
	h.post["Content-Type"] = []string{"application/json"}
	h.post["Accept"] = []string{"application/json, text/event-stream"}
	h.get["Accept"] = []string{"text/event-stream"}
	return h
}

// leaveSession ends the session of a refused handshake, because the modern era has no sessions.
func (t *httpTransport) leaveSession() {
	if t.unhear != nil {
		t.unhear()
	}
	t.session = ""
	t.header.Del("Mcp-Session-Id")
	t.ready.Store(t.headers())
}

func (t *httpTransport) watching() int64 { return t.listens.Load() }

func (t *httpTransport) opened() {
	t.ready.Store(t.headers())
	if t.s.modern {
		return
	}
	ctx, cancel := context.WithCancel(t.s.ctx)
	t.unhear = cancel
	t.s.spawn(func() { t.listen(ctx) })
}

// newRequest makes a request without the copies of http.NewRequest. The transport recognizes the body type as
// in-memory and writes it in one piece with the headers.
func newRequest(ctx context.Context, method string, u *url.URL, header http.Header, message []byte) *http.Request {
	req := &http.Request{
		Method: method, URL: u, Host: u.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(message)),
	}
	if len(message) > 0 {
		// The body can be sent again as long as there is no response: an idle connection may turn out to be closed.
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(message)), nil }
		req.Body, _ = req.GetBody()
	}
	return req.WithContext(ctx)
}

// request sends a request to the URL of the server.
func (t *httpTransport) request(
	ctx context.Context, method string, header http.Header, message []byte,
) (*http.Response, error) {
	return follow(t.rt, newRequest(ctx, method, t.url, header, message))
}

func (t *httpTransport) exchange(ctx context.Context, c *pending, message []byte) (jsonrpc.Message, error) {
	// Close ends the call, but the loss of the session does not: only the response tells what the server did with the
	// request. The connection may outlive the caller's wait a little, see linger.
	d := newDispatch(ctx, c.call.Sent)
	if c.call.Method == methodInitialize {
		defer endLater(ctx, t.s.rest, d.cancel)() // initialize: only the response names the session to end
	} else {
		defer context.AfterFunc(ctx, d.cancel)()
	}
	t.s.calls.endWith(c, d.cancel)
	if t.s.closed.Err() != nil {
		d.cancel() // Close has missed the call
	}

	header := t.ready.Load().post
	if t.s.modern {
		header = maps.Clone(header)
		header["Mcp-Protocol-Version"] = []string{versionModern}
		header[mcp.HeaderMethod] = []string{c.call.Method}
		if member := protocol.NamedBy(c.call.Method); member != "" {
			if name, ok := mcp.EncodeHeaderValue(jsonrpc.Text(jsonrpc.Get(c.params, member))); ok {
				header[mcp.HeaderName] = []string{name}
			}
		}
	}
	if len(c.call.Header) > 0 {
		header = maps.Clone(header)
		maps.Copy(header, c.call.Header)
	}
	resp, err := t.request(d, http.MethodPost, header, message) //nolint:bodyclose // responseBody closes it
	if err != nil {
		defer d.cancel()
		f := t.s.requestFailure(err, d, t.s.closed)
		c.unsent = !d.started.Load()
		if c.unsent && f.Reason == reason.Unavailable && d.Err() == nil && t.s.calls.len() == 1 {
			// The server is unreachable, and no other call contradicts that.
			lost := *f
			t.s.lose(&lost)
		}
		return jsonrpc.Message{}, f
	}
	if c.call.Method == methodInitialize {
		t.session = resp.Header.Get("Mcp-Session-Id")
	}
	body := &responseBody{ReadCloser: resp.Body, cancel: d.cancel}
	kind := mediaType(resp.Header)
	if resp.StatusCode == http.StatusOK && kind == "text/event-stream" {
		return t.events(d, body, c)
	}
	defer body.Close()
	if resp.StatusCode != http.StatusOK {
		return t.refused(ctx, resp, c, header)
	}
	if kind == "application/json" {
		return t.single(resp, c)
	}
	f := t.s.failure(reason.Protocol, "it answered with content type %.100q", t.s.mask.Text(kind))
	f.MaybeDelivered = true
	return jsonrpc.Message{}, f
}

// single reads a response body that is one message.
func (t *httpTransport) single(resp *http.Response, c *pending) (jsonrpc.Message, error) {
	body, err := readBody(resp, t.s.opts.MaxMessage, c.call.Reserve)
	if err != nil {
		return jsonrpc.Message{}, t.s.readFailure(err, t.s.opts.MaxMessage)
	}
	if m := t.reply(body, c); m != nil {
		return *m, nil
	}
	f := t.s.failure(reason.Protocol, "the body is not a response to the request")
	f.MaybeDelivered = true
	return jsonrpc.Message{}, f
}

// readBody reads a whole body of at most most bytes into a buffer of its size.
func readBody(resp *http.Response, most int, room room) ([]byte, error) {
	if resp.ContentLength > int64(most) {
		return nil, errTooLong
	}
	if resp.ContentLength > 0 {
		if !room.allows(int(resp.ContentLength)) {
			return nil, errNoRoom
		}
		body := allocate(int(resp.ContentLength))
		_, err := io.ReadFull(resp.Body, body)
		return body, err
	}
	return readAll(resp.Body, most, room)
}

// mediaType returns the Content-Type without parameters.
func mediaType(h http.Header) string {
	sent := h.Get("Content-Type")
	if sent == "text/event-stream" || sent == "application/json" {
		return sent // the usual spelling
	}
	kind, _, _ := mime.ParseMediaType(sent)
	return kind
}

// reply returns the response to c if raw contains it, else nil. Other messages go to the inbox.
func (t *httpTransport) reply(raw []byte, c *pending) (reply *jsonrpc.Message) {
	for m := range t.s.messages(raw) {
		if reply == nil && m.IsResponse() && (m.ID == c.wire || m.Err != nil && m.ID == "") {
			reply = m
			continue
		}
		t.s.inbox.receive(*m, c)
	}
	return reply
}

func (t *httpTransport) post(ctx context.Context, message []byte) error {
	d := newDispatch(ctx, nil)
	defer context.AfterFunc(ctx, d.cancel)()
	header := t.ready.Load().post
	resp, err := t.request(d, http.MethodPost, header, message)
	if err != nil {
		return t.s.requestFailure(err, d, t.s.closed)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxErrorBody)) // allows reusing the connection
	switch code := resp.StatusCode; {
	case code < 300:
		return nil
	case code == http.StatusNotFound && header.Get("Mcp-Session-Id") != "":
		return t.s.gone()
	}
	return t.s.statusFailure(resp)
}

// close ends the session at the server, as the specification asks.
func (t *httpTransport) close(ctx context.Context, notify bool) {
	if t.session == "" || !notify {
		return
	}
	header := t.headers().get // even if the handshake ended after its response
	// This empty header is not sent. It makes net/http retry if an idle connection turns out to be closed.
	header["X-Idempotency-Key"] = []string{}
	resp, err := t.request(ctx, http.MethodDelete, header, nil)
	if err == nil {
		resp.Body.Close()
	}
}

// dispatch is the context of one HTTP request and records how far the message got. It has the values of its parent
// context, but ends only by cancel.
type dispatch struct {
	context.Context
	cancel  context.CancelFunc
	started atomic.Bool // it had a connection and may have reached the server
}

// newDispatch returns the context of a request. sent, which may be nil, is called when the message has been written or
// abandoned.
func newDispatch(ctx context.Context, sent func()) *dispatch {
	d := &dispatch{}
	if sent != nil {
		sent = sync.OnceFunc(sent)
	}
	d.Context, d.cancel = context.WithCancel(context.WithoutCancel(ctx))
	d.Context = httptrace.WithClientTrace(d.Context, &httptrace.ClientTrace{
		// A request that is repeated on another connection was not written on the previous one.
		GetConn: func(string) { d.started.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { d.started.Store(true) },
		WroteRequest: func(httptrace.WroteRequestInfo) {
			if sent != nil {
				sent()
			}
		},
	})
	return d
}

// refused converts a response with a status other than 200 to an error, or to the JSON-RPC error in its body.
func (t *httpTransport) refused(
	ctx context.Context, resp *http.Response, c *pending, sent http.Header,
) (jsonrpc.Message, error) {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	m, invalid := jsonrpc.Parse(body)
	explained := invalid == nil && m.Err != nil // of any id: a server that rejects the message may not know its id
	if sent.Get("Mcp-Session-Id") != "" {
		switch code := resp.StatusCode; {
		case code == http.StatusNotFound:
			return jsonrpc.Message{}, t.s.gone()
		case code == http.StatusBadRequest && !(explained && m.ID == c.wire):
			// The error is about this message, or the restarted server does not know the session.
			if c.call.probe || t.probes.run(ctx, t.s) {
				return jsonrpc.Message{}, t.s.gone()
			}
		}
	}
	f := t.s.statusFailure(resp)
	if f.Reason == reason.Protocol && explained {
		return m, nil
	}
	if resp.StatusCode == http.StatusBadRequest && !protocol.Defines(c.call.Method) { // go-sdk: a line of text
		unknown := jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + c.call.Method}
		return jsonrpc.Message{Err: unknown.Encode()}, nil
	}
	return jsonrpc.Message{}, f
}

// probes are the pings that test whether the server still knows the session. Concurrent calls share one.
type probes struct {
	mu      sync.Mutex
	current chan struct{} // closed when the current ping is done; nil if there is none
}

// run waits for the ping within ctx and reports whether the session is gone.
func (p *probes) run(ctx context.Context, s *Session) bool {
	p.mu.Lock()
	done := p.current
	if done == nil {
		done = make(chan struct{})
		if s.spawn(func() { p.ping(s, done) }) {
			p.current = done
		} else {
			close(done)
		}
	}
	p.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
	}
	return s.forgotten.Load()
}

func (p *probes) ping(s *Session, done chan struct{}) {
	ctx, cancel := context.WithTimeout(s.ctx, messageTimeout)
	defer cancel()
	if err := s.Ping(ctx); err != nil {
		s.opts.Logger.Debug("ping of a session in doubt failed", "server", s.opts.Server, "error", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = nil
	close(done)
}

// follow sends a request. It follows one redirect that keeps the method, and only within the same origin, because the
// headers may hold secrets. Some frameworks redirect /mcp to /mcp/.
func follow(rt http.RoundTripper, req *http.Request) (*http.Response, error) {
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	to := target(req.URL, resp)
	if to == nil {
		return resp, nil
	}
	resp.Body.Close()
	again := req.WithContext(req.Context())
	again.URL = to
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return rt.RoundTrip(again)
}

// target returns the target of a redirect of a request to from; nil if it must not be followed.
func target(from *url.URL, resp *http.Response) *url.URL {
	if resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusPermanentRedirect {
		return nil
	}
	to, err := from.Parse(resp.Header.Get("Location"))
	if err != nil || to.Scheme != from.Scheme || to.Host != from.Host || *to == *from {
		return nil
	}
	to.User = from.User
	return to
}

// responseBody is a response body and the function that ends its request.
type responseBody struct {
	io.ReadCloser
	cancel context.CancelFunc
	ended  bool // it was read to the end
}

func (b *responseBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.ended = b.ended || err != nil
	return n, err
}

// Close returns the connection to the pool if the body was read to its end, else closes it.
func (b *responseBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// linger closes a response whose message has arrived. Most servers end their stream shortly after that. Waiting for
// it keeps the connection reusable.
func (t *httpTransport) linger(b *responseBody) {
	if b.ended || t.lingers.Load() >= maxLingering {
		b.Close()
		return
	}
	t.lingers.Add(1)
	if !t.s.spawn(func() {
		defer t.lingers.Add(-1)
		defer b.Close()
		defer context.AfterFunc(t.s.ctx, b.cancel)()
		defer time.AfterFunc(lingerTime, b.cancel).Stop()
		_, _ = io.Copy(io.Discard, io.LimitReader(b, maxErrorBody))
	}) {
		t.lingers.Add(-1)
		b.Close()
	}
}

// events reads a stream up to the response to c and closes it. A stream that ends early is resumed if the server
// numbers its events (MCP 2025-11-25, resumability).
func (t *httpTransport) events(ctx context.Context, b *responseBody, c *pending) (jsonrpc.Message, error) {
	if c.call.Streams != nil {
		c.call.Streams()
	}
	last := ""
	for resumed := 0; ; resumed++ {
		m, retry, err := t.readEvents(b, c, &last)
		if err == nil {
			t.linger(b)
			return m, nil
		}
		b.ReadCloser.Close()
		final := last == "" || c.call.listens != nil || errors.Is(err, errTooLong) || errors.Is(err, errNoRoom) || resumed == maxResumes
		if final || !t.resume(ctx, b, last, retry) {
			b.cancel()
			return jsonrpc.Message{}, t.s.readFailure(err, t.s.opts.MaxMessage)
		}
	}
}

// readEvents reads one stream and sets last to the id of the last event.
func (t *httpTransport) readEvents(body io.Reader, c *pending, last *string) (jsonrpc.Message, time.Duration, error) {
	er := sse.NewReader(body, t.s.opts.MaxMessage)
	er.Memory = room(c.call.Reserve)
	defer er.Free()
	for {
		e, err := er.Next()
		if err != nil {
			return jsonrpc.Message{}, er.Retry(), err
		}
		if e.ID != "" {
			*last = e.ID
		}
		if len(e.Data) == 0 {
			continue
		}
		if m := t.reply(e.Data, c); m != nil {
			return *m, 0, nil
		}
	}
}

// resume waits for the server's retry time and requests the rest of a stream. It reports whether there is one.
func (t *httpTransport) resume(ctx context.Context, b *responseBody, last string, retry time.Duration) bool {
	select {
	case <-time.After(min(max(retry, streamWait/10), streamWaits)):
	case <-ctx.Done():
		return false
	}
	header := t.ready.Load().get.Clone()
	header.Set("Last-Event-ID", last)
	resp, err := t.request(ctx, http.MethodGet, header, nil)
	if err != nil {
		return false
	}
	if resp.StatusCode != http.StatusOK || mediaType(resp.Header) != "text/event-stream" {
		resp.Body.Close()
		return false
	}
	b.ReadCloser, b.ended = resp.Body, false
	return true
}

// position is the position in the standalone stream.
type position struct {
	openings int64
	last     string // id of the last event
}

// listen reads the standalone stream, if the server has one, until the session ends.
func (t *httpTransport) listen(ctx context.Context) {
	var at position
	reopen(ctx, func() (time.Duration, bool) { return t.listenOnce(ctx, &at) })
}

// listenOnce reads one standalone stream to its end. ok reports whether to open another.
func (t *httpTransport) listenOnce(ctx context.Context, p *position) (retry time.Duration, ok bool) {
	header := t.ready.Load().get
	if p.last != "" {
		header = header.Clone()
		header.Set("Last-Event-ID", p.last)
	}
	resp, err := t.request(ctx, http.MethodGet, header, nil)
	if err != nil {
		return 0, ctx.Err() == nil
	}
	defer resp.Body.Close()
	kind := mediaType(resp.Header)
	if resp.StatusCode == http.StatusNotFound && p.openings > 0 && ctx.Err() == nil {
		_ = t.s.gone() // the stream existed before, so the server has lost the session
		return 0, false
	}
	if resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		return retryAfter(resp.Header), resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests
	}
	p.openings++
	t.listens.Store(p.openings)
	defer t.listens.Store(0)
	er := sse.NewReader(resp.Body, t.s.opts.MaxMessage)
	er.Memory = room(nil)
	defer er.Free()
	for {
		e, err := er.Next()
		if err != nil {
			return er.Retry(), ctx.Err() == nil
		}
		if e.ID != "" {
			p.last = e.ID
		}
		if len(e.Data) == 0 {
			continue
		}
		for m := range t.s.messages(e.Data) {
			t.s.inbox.receive(*m, nil)
		}
	}
}

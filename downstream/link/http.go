package link

import (
	"bytes"
	"context"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agenticnexus/agenticnexus/downstream/link/http1"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

const (
	maxErrorBody = 16 << 10         // bytes read of the body of an HTTP error
	streamWait   = time.Second      // before the standalone stream is opened again
	streamWaits  = 30 * time.Second // at most, after repeated failures
	maxResumes   = 10               // times that one answer's stream is taken up again
	lingerTime   = time.Second / 4  // for the end of a stream whose response has come
	maxLingering = 64               // streams of a session that may take this time at once
)

// httpTransport is streamable HTTP: every request is a POST whose answer is one message or a stream.
type httpTransport struct {
	s       *Session
	url     *url.URL
	rt      http.RoundTripper
	header  http.Header             // of every request, never changed
	ready   atomic.Pointer[headers] // once the session is known
	session string
	probes  probes
	unhear  context.CancelFunc // ends the standalone stream; nil before it is opened
	listens atomic.Int64       // which opening of the standalone stream this is; 0 while it is closed
	lingers atomic.Int64       // streams whose response has come and whose end has not
}

// headers are those of a session, built once.
type headers struct{ post, get http.Header }

func openHTTP(s *Session) (transport, error) {
	u, header, err := httpTarget(s)
	if err != nil {
		return nil, err
	}
	t := &httpTransport{s: s, url: u, rt: http1.Watched(s.opts.HTTP), header: header}
	t.ready.Store(t.headers())
	return t, nil
}

func httpTarget(s *Session) (*url.URL, http.Header, error) {
	u, err := url.Parse(s.opts.Target.URL)
	if err != nil || u.Host == "" {
		return nil, nil, s.failure(reason.Unavailable, "%q is no URL", s.opts.Target.URL)
	}
	header := http.Header{}
	for name, v := range s.opts.Target.Headers {
		header.Set(name, v.Reveal())
	}
	return u, header, nil
}

// headers returns the headers of requests as far as the session is known now.
func (t *httpTransport) headers() *headers {
	if t.session != "" {
		t.header.Set("Mcp-Session-Id", t.session)
	}
	if protocol.Version(t.s.Version).AtLeast(protocol.V20250618) { // the header came with that revision
		t.header.Set("Mcp-Protocol-Version", t.s.Version)
	}
	h := &headers{post: t.header.Clone(), get: t.header.Clone()}
	h.post["Content-Type"] = []string{"application/json"}
	h.post["Accept"] = []string{"application/json, text/event-stream"}
	h.get["Accept"] = []string{"text/event-stream"}
	return h
}

// leaveSession ends what a handshake has begun: in the modern era there are no sessions.
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

// newRequest makes a request without the copies of http.NewRequest. Its body is of a type that the transport
// knows to be in memory: it is then written in one piece with the headers.
func newRequest(ctx context.Context, method string, u *url.URL, header http.Header, message []byte) *http.Request {
	req := &http.Request{
		Method: method, URL: u, Host: u.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(message)),
	}
	if len(message) > 0 {
		// It can be sent again as long as nothing was answered: an idle connection may turn out closed.
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

func (t *httpTransport) roundTrip(ctx context.Context, c *pending, message []byte) (jsonrpc.Message, error) {
	// Close ends the call; the loss of the session does not: what the server does with this request only
	// its own answer tells. The connection may be in use a little longer than the caller waits, see linger.
	d := &dispatch{Context: ctx, sent: c.call.Sent}
	if c.call.Method == "initialize" {
		defer endLater(ctx, farewellTime, d.cancel)() // only its answer names the session that is to be ended then
	} else {
		defer context.AfterFunc(ctx, d.cancel)()
	}
	t.s.calls.endWith(c, d.cancel)
	if t.s.closed.Err() != nil {
		d.cancel() // Close did not see the call
	}

	header := t.ready.Load().post
	if t.s.modern {
		header = header.Clone()
		for name, value := range mcp.StandardHeaders(t.s.Version, mcp.MCPMethod(c.call.Method), c.params) {
			header.Set(name, value)
		}
	}
	if len(c.call.Header) > 0 {
		header = header.Clone()
		maps.Copy(header, c.call.Header)
	}
	resp, err := t.request(d, http.MethodPost, header, message) //nolint:bodyclose // answer closes it
	if err != nil {
		defer d.cancel()
		f := t.s.requestFailure(err, d, t.s.closed)
		c.unsent = !d.started.Load()
		if c.unsent && f.Reason == reason.Unavailable && d.Err() == nil && t.s.calls.len() == 1 {
			// The server cannot be reached, and no other call says otherwise.
			lost := *f
			t.s.lose(&lost)
		}
		return jsonrpc.Message{}, f
	}
	if c.call.Method == "initialize" {
		t.session = resp.Header.Get("Mcp-Session-Id")
	}
	answer := &answer{ReadCloser: resp.Body, cancel: d.cancel}
	kind := mediaType(resp.Header)
	if resp.StatusCode == http.StatusOK && kind == "text/event-stream" {
		return t.events(d, answer, c)
	}
	defer answer.Close()
	if resp.StatusCode != http.StatusOK {
		return t.refused(ctx, resp, c, header)
	}
	if kind == "application/json" {
		return t.single(resp, c)
	}
	f := t.s.failure(reason.Protocol, "it answered with content type %.100q", kind)
	f.Delivered = true
	return jsonrpc.Message{}, f
}

// single reads an answer that is one message.
func (t *httpTransport) single(resp *http.Response, c *pending) (jsonrpc.Message, error) {
	body, err := readBody(resp, t.s.opts.MaxMessage, c.call.Reserve)
	if err != nil {
		return jsonrpc.Message{}, t.s.readFailure(err, t.s.opts.MaxMessage)
	}
	if m := t.reply(body, c); m != nil {
		return *m, nil
	}
	f := t.s.failure(reason.Protocol, "its answer is no response to the request")
	f.Delivered = true
	return jsonrpc.Message{}, f
}

// readBody reads a whole body of at most max bytes into memory of its size.
func readBody(resp *http.Response, most int, room room) ([]byte, error) {
	if resp.ContentLength > int64(most) {
		return nil, errTooLong
	}
	if resp.ContentLength > 0 {
		if !room.allows(int(resp.ContentLength)) {
			return nil, errNoRoom
		}
		body := memory.allocate(int(resp.ContentLength))
		_, err := io.ReadFull(resp.Body, body)
		return body, err
	}
	return readAll(resp.Body, most, room)
}

// mediaType returns the Content-Type without parameters.
func mediaType(h http.Header) string {
	sent := h.Get("Content-Type")
	if sent == "text/event-stream" || sent == "application/json" {
		return sent // as almost all servers write it
	}
	kind, _, _ := mime.ParseMediaType(sent)
	return kind
}

// reply returns the response to c in what the server sent; nil if there is none. All else goes to the inbox.
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
	d := &dispatch{Context: ctx}
	defer context.AfterFunc(ctx, d.cancel)()
	header := t.ready.Load().post
	resp, err := t.request(d, http.MethodPost, header, message)
	if err != nil {
		return t.s.requestFailure(err, d, t.s.closed)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxErrorBody)) // so that the connection can be used again
	switch code := resp.StatusCode; {
	case code < 300:
		return nil
	case code == http.StatusNotFound && header.Get("Mcp-Session-Id") != "":
		return t.s.gone()
	}
	return t.s.statusFailure(resp)
}

// close tells the server that the session is over, as the specification asks.
func (t *httpTransport) close(ctx context.Context, farewell bool) {
	if t.session == "" || !farewell {
		return
	}
	header := t.headers().get // also if the handshake has got no further than its answer
	// It is not sent. It makes net/http try again if an idle connection turns out to be closed.
	header["X-Idempotency-Key"] = []string{}
	resp, err := t.request(ctx, http.MethodDelete, header, nil)
	if err == nil {
		resp.Body.Close()
	}
}

package cluster

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/agenticnexus/agenticnexus/internal/http1"
)

// Errors of [Place.Forward] and [Directory.Find].
var (
	// ErrRefused means that nothing was sent because no such replica is there: find the session again.
	ErrRefused = errors.New("the replica is gone")
	// ErrMoved means that the replica has not served the request because it is not the session's home: find it again.
	ErrMoved = errors.New("the session has moved to another replica")
	// ErrUnavailable means that the session cannot be served now; nothing was sent. A later attempt may succeed.
	ErrUnavailable = errors.New("the session cannot be served now")
	// ErrLost means that the request was sent and the replica ended, or the connection to it, before the response.
	ErrLost = errors.New("the replica ended while it had the request")
	// ErrCut is ErrLost after the header, and perhaps a part, of the response.
	ErrCut = errors.New("the replica ended while it sent the response")
	// ErrBusy means that the session has requests in flight and stays.
	ErrBusy = errors.New("the session is busy")
	// ErrEnded means that the client has ended the session.
	ErrEnded = errors.New("the session has ended")
)

func unavailable(cause error) error { return fmt.Errorf("%w: %w", ErrUnavailable, cause) }

// Headers between replicas. A request has the first two and perhaps the third, each response the fourth.
const (
	hopHeader    = "Nexus-Hop"    // v1 FROM TO NONCE MAC
	clientHeader = "Nexus-Client" // address of the client
	tracedHeader = "Nexus-Traced" // v1 MAC; the trace context in the headers is that of the sending replica
	answerHeader = "Nexus-Answer" // v1 INCARNATION MAC
)

const (
	dialTime = time.Second
	maxIdle  = 64
)

// hops makes the requests of this replica to others, and checks theirs.
type hops struct {
	replica   *Replica
	transport *http1.Transport
	buffers   sync.Pool
	sender    string        // unlike that of every other process
	sent      atomic.Uint64 // numbers the requests
	received  received
}

// dialError means that no connection was made.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

func isRefused(err error) bool {
	var failed dialError
	return errors.As(err, &failed) && errors.Is(err, syscall.ECONNREFUSED)
}

// conn counts what may have been sent.
type conn struct {
	net.Conn
	writes atomic.Int64
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	n, err := c.Conn.Write(b)
	if n == 0 && err != nil {
		c.writes.Add(-1)
	}
	return n, err
}

// SyscallConn implements syscall.Conn.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

func newHops(r *Replica) *hops {
	dial := r.config.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTime}).DialContext
	}
	return &hops{replica: r, transport: http1.New(&http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialTime)
			defer cancel()
			c, err := dial(ctx, network, address)
			if err != nil {
				return nil, dialError{err}
			}
			return &conn{Conn: c}, nil
		},
		MaxIdleConnsPerHost: maxIdle,
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true,
	}), buffers: sync.Pool{New: func() any { return new(make([]byte, 32<<10)) }}, sender: rand.Text(),
		received: newReceived()}
}

func (h *hops) close() { h.transport.CloseIdleConnections() }

// mac authenticates parts, none of which contains a zero byte.
func mac(key []byte, parts ...string) string {
	m := hmac.New(sha256.New, key)
	for _, p := range parts {
		_, _ = io.WriteString(m, p)
		_, _ = m.Write([]byte{0})
	}
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// authentic reports whether a MAC was made with one of the keys.
func (h *hops) authentic(given string, parts ...string) (key []byte, ok bool) {
	for _, key := range h.replica.config.Keys() {
		if hmac.Equal([]byte(given), []byte(mac(key, parts...))) {
			return key, true
		}
	}
	return nil, false
}

// sign adds the headers of a hop to a request, with the span of its context, and returns its nonce.
func (h *hops) sign(r *http.Request, from, to uint64, client string) (nonce string) {
	nonce = h.sender + "-" + number(h.sent.Add(1))
	a, b := number(from), number(to)
	key := h.replica.config.Keys()[0]
	r.Header.Set(clientHeader, client)
	r.Header.Del(tracedHeader)
	if ctx := r.Context(); trace.SpanContextFromContext(ctx).IsValid() {
		r.Header.Del("Traceparent")
		r.Header.Del("Tracestate") // Inject leaves one of the client if the span has none
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(r.Header))
		r.Header.Set(tracedHeader, "v1 "+mac(key, "traced", nonce))
	}
	r.Header.Set(hopHeader, "v1 "+a+" "+b+" "+nonce+" "+
		mac(key, "hop", a, b, nonce, r.Method, r.URL.RequestURI(), r.Host, client))
	return nonce
}

func number(id uint64) string { return strconv.FormatUint(id, 16) }

// answerer returns the incarnation that answered a request.
func (h *hops) answerer(header http.Header, nonce string) (uint64, error) {
	v1, rest, _ := strings.Cut(header.Get(answerHeader), " ")
	id, given, _ := strings.Cut(rest, " ")
	n, err := strconv.ParseUint(id, 16, 64)
	if _, ok := h.authentic(given, "answer", id, nonce); !ok || v1 != "v1" || err != nil {
		return 0, errors.New("what answers at the address of the replica is no replica of this cluster")
	}
	return n, nil
}

// call posts an empty request to an incarnation, and returns who answered and the body of the response. Nobody's uses a
// connection of its own.
func (h *hops) call(ctx context.Context, m *member, from uint64, uri string) (uint64, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.address+uri, nil)
	if err != nil {
		return 0, nil, err
	}
	r.Close = from == 0
	nonce := h.sign(r, from, m.id, "")
	response, err := h.transport.RoundTrip(r)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	id, err := h.answerer(response.Header, nonce)
	if err != nil {
		return 0, nil, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxPromise))
	return id, body, err
}

// Peer is another replica, in one incarnation. Requests to it are cancelled when that has ended. If it has left, it has
// sent all of each response that it has begun, which may still be on its way to a slow client.
type Peer struct {
	id   uint64
	to   *url.URL
	hops *hops
	ctx  context.Context
	end  context.CancelFunc
	left atomic.Bool
}

func newPeer(r *Replica, id uint64, address string) *Peer {
	to, err := url.Parse(address)
	if err != nil {
		to = &url.URL{} // requests fail
	}
	p := &Peer{id: id, to: to, hops: r.hops}
	p.ctx, p.end = context.WithCancel(context.Background())
	return p
}

var errReplaced = errors.New("another incarnation answers")

// send sends a request, whose header and URL it changes, for a client. The error is errReplaced, and there is a
// response, if another incarnation answers.
func (p *Peer) send(r *http.Request, client string) (*http.Response, error) {
	to := *r.URL
	to.Scheme, to.Host = p.to.Scheme, p.to.Host
	r.URL = &to
	nonce := p.hops.sign(r, p.hops.replica.self(), p.id, client)
	response, err := p.hops.transport.RoundTrip(r)
	if err == nil {
		var id uint64
		if id, err = p.hops.answerer(response.Header, nonce); err != nil {
			response.Body.Close()
			return nil, err
		}
		if response.Header.Del(answerHeader); id != p.id {
			err = errReplaced
		}
	}
	if isRefused(err) || errors.Is(err, errReplaced) {
		p.gone()
	}
	return response, err
}

// gone notes that the incarnation is not at its address.
func (p *Peer) gone() {
	if m := p.hops.replica.members.introduce(p.id, "", ""); m != nil {
		p.hops.replica.members.update(m, func(s *sight) { s.refuses = true })
	}
}

// hop is one forwarded request.
type hop struct {
	conn     *conn // the last one that it got; nil = none
	reused   bool  // it was idle before
	before   int64 // writes to it before the request
	repeated bool  // the transport may have sent it twice; the receiver serves one of them
	answered atomic.Bool
}

// got notes the connection on which the request is about to be sent.
func (h *hop) got(of httptrace.GotConnInfo) {
	inner := of.Conn
	for outer, ok := inner.(interface{ NetConn() net.Conn }); ok; outer, ok = inner.(interface{ NetConn() net.Conn }) {
		inner = outer.NetConn()
	}
	if h.sent() {
		h.repeated = true
	} else if c, ok := inner.(*conn); ok {
		h.conn, h.reused, h.before = c, of.Reused, c.writes.Load()
	}
}

// sent reports whether a part of the request may have been sent.
func (h *hop) sent() bool { return h.conn != nil && h.conn.writes.Load() > h.before }

// forward passes a request to the peer and its response to w. Errors are ErrRefused, ErrMoved, ErrUnavailable and
// ErrLost before anything is written, otherwise ErrCut; they are that of the request's context if its client is gone.
func (p *Peer) forward(w http.ResponseWriter, r *http.Request) error {
	p.hops.replica.counts.forwarded.Add(1)
	h := &hop{}
	ctx, cancel := context.WithCancel(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: h.got}))
	defer cancel()
	defer context.AfterFunc(p.ctx, func() {
		if !p.left.Load() || !h.answered.Load() {
			cancel()
		}
	})()
	own := r.WithContext(ctx)
	own.Close, own.Header = false, endToEnd(r.Header)
	own.GetBody = nil // else the transport may repeat a call that the peer has received
	if own.Header["User-Agent"] == nil {
		own.Header["User-Agent"] = []string{""} // none
	}
	response, err := p.send(own, r.RemoteAddr)
	// The peer may have closed an idle connection. The transport itself does not always take another one.
	for err != nil && ctx.Err() == nil && h.reused && !h.sent() && !errors.As(err, new(dialError)) &&
		rewind(own, r.GetBody) {
		h.conn, h.reused = nil, false
		response, err = p.send(own, r.RemoteAddr)
	}
	if response != nil {
		defer response.Body.Close()
	}
	switch {
	case r.Context().Err() != nil:
		return r.Context().Err()
	case err != nil:
		return p.failed(h, err)
	case response.StatusCode == http.StatusMisdirectedRequest:
		return ErrMoved
	}
	h.answered.Store(true)
	if p.hops.relay(w, response) != nil {
		return cmp.Or(r.Context().Err(), ErrCut)
	}
	return nil
}

// endToEnd returns the headers that do not concern a connection. Those that Connection names stay: this replica has
// already acted on them, and the other one must do the same.
func endToEnd(h http.Header) http.Header {
	own := maps.Clone(h)
	for _, name := range []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate",
		"Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade"} {
		delete(own, name)
	}
	return own
}

// rewind lets a request be sent again. It reports false if its body cannot be read again.
func rewind(r *http.Request, getBody func() (io.ReadCloser, error)) (ok bool) {
	if getBody == nil {
		return r.ContentLength == 0
	}
	body, err := getBody()
	r.Body = body
	return err == nil
}

// failed returns the error of a request that got no response of the peer.
func (p *Peer) failed(h *hop, err error) error {
	if !h.sent() && (isRefused(err) || p.ctx.Err() != nil) || !h.repeated && errors.Is(err, errReplaced) {
		return ErrRefused
	}
	p.hops.replica.members.unreached(p.id, err)
	if h.sent() {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return unavailable(err)
}

// relay writes a response to w. An error tells that it could not be read to its end.
func (h *hops) relay(w http.ResponseWriter, response *http.Response) error {
	maps.Copy(w.Header(), endToEnd(response.Header))
	w.WriteHeader(response.StatusCode)
	buffer := h.buffers.Get().(*[]byte)
	defer h.buffers.Put(buffer)
	for {
		if response.ContentLength < 0 { // it comes bit by bit
			_ = http.NewResponseController(w).Flush() // Write returns the error
		}
		n, err := response.Body.Read(*buffer)
		if _, gone := w.Write((*buffer)[:n]); gone != nil || errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// RoundTrip implements http.RoundTripper for requests of this replica itself, see FromReplica. They end with the peer's
// incarnation. If another incarnation answers, the response is 404, as that of a server that does not know the session.
func (p *Peer) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	unlink := context.AfterFunc(p.ctx, cancel)
	end := func() { unlink(); cancel() }
	own := r.Clone(ctx)
	own.Host = p.to.Host
	response, err := p.send(own, "")
	if response == nil {
		end()
		return nil, err
	}
	response.Body = &ending{response.Body, end}
	if err != nil {
		response.StatusCode, response.Status = http.StatusNotFound, "404 Not Found"
	}
	return response, nil
}

// ending is a body whose request ends with Close.
type ending struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (e *ending) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}

type forwardedKey struct{}

// forwarded is what the headers of a hop say of a request. The request's context has it.
type forwarded struct {
	client string // its address; empty = the sending replica
	traced bool
}

func forwardedOf(ctx context.Context) (f forwarded, ok bool) {
	f, ok = ctx.Value(forwardedKey{}).(forwarded)
	return f, ok
}

// FromReplica reports whether a request is one of another replica itself, not one of a client that it has passed on.
func FromReplica(ctx context.Context) bool {
	f, ok := forwardedOf(ctx)
	return ok && f.client == ""
}

// Forwarded reports whether a request came from another replica. It must not be forwarded again: if its session is not
// here, the response is 421.
func Forwarded(ctx context.Context) bool {
	_, ok := forwardedOf(ctx)
	return ok
}

// Traced reports whether the trace context in the headers of a request is that of the replica that has sent it.
func Traced(ctx context.Context) bool {
	f, _ := forwardedOf(ctx)
	return f.traced
}

// Receive returns a handler that accepts requests of other replicas as those of their clients, and passes all others
// on without the headers of a hop. It belongs at the outside, around all checks of hosts, addresses and credentials.
func (r *Replica) Receive(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		sent, client, traced := req.Header.Values(hopHeader), req.Header.Get(clientHeader), req.Header.Get(tracedHeader)
		for _, name := range []string{hopHeader, clientHeader, tracedHeader} {
			req.Header.Del(name)
		}
		if len(sent) == 0 && req.URL.Path != holdPath {
			next.ServeHTTP(w, req)
			return
		}
		from, to, nonce, key := r.hops.accept(sent, req, client)
		if key == nil {
			http.Error(w, "Forbidden: the request is not from a replica of this cluster", http.StatusForbidden)
			return
		}
		var self uint64
		lapsed := false // what it did has not ended yet: it is neither here nor gone
		if i := r.current.Load(); i != nil {
			self, lapsed = i.id, !i.acts()
		}
		if lapsed && req.URL.Path == holdPath {
			http.Error(w, "Unavailable: the lease of this replica has ended", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set(answerHeader, "v1 "+number(self)+" "+mac(key, "answer", number(self), nonce))
		switch {
		case lapsed:
			http.Error(w, "Misdirected: the lease of this replica has ended", http.StatusMisdirectedRequest)
		case req.URL.Path == holdPath:
			r.promiseTo(w, from, to == self && self != 0, req.URL.Query())
		case to != self:
			http.Error(w, "Misdirected: another incarnation of the replica is here", http.StatusMisdirectedRequest)
		default:
			// A replica of an earlier version passes on what a client has sent as tracedHeader.
			own := traced != "" && hmac.Equal([]byte(traced), []byte("v1 "+mac(key, "traced", nonce)))
			req = req.WithContext(context.WithValue(req.Context(), forwardedKey{}, forwarded{client, own}))
			if client != "" {
				req.RemoteAddr = client
			}
			next.ServeHTTP(w, req)
		}
	})
}

// accept checks the headers of a hop, and returns the key that they were made with; nil if they are invalid or were
// received before.
func (h *hops) accept(sent []string, r *http.Request, client string) (from, to uint64, nonce string, key []byte) {
	if len(sent) != 1 {
		return 0, 0, "", nil
	}
	parts := strings.Split(sent[0], " ")
	if len(parts) != 5 || parts[0] != "v1" {
		return 0, 0, "", nil
	}
	from, badFrom := strconv.ParseUint(parts[1], 16, 64)
	to, badTo := strconv.ParseUint(parts[2], 16, 64)
	key, ok := h.authentic(parts[4], "hop", parts[1], parts[2], parts[3], r.Method, r.RequestURI, r.Host, client)
	sender, digits, _ := strings.Cut(parts[3], "-")
	n, badNumber := strconv.ParseUint(digits, 16, 64)
	if !ok || badFrom != nil || badTo != nil || badNumber != nil || !h.received.first(sender, n) {
		return 0, 0, "", nil
	}
	return from, to, parts[3], key
}

// Package http1 is an http.RoundTripper optimized for short requests. It writes and reads in the caller's goroutine,
// whereas http.Transport has two goroutines per connection and passes every request and response between them.
//
// It handles plain HTTP/1.1 requests without a proxy and with bodies of at most 64 KiB. All others go to an
// http.Transport, whose settings it shares. Its rules for retrying requests are those of http.Transport. It calls the
// hooks GetConn, GotConn and WroteRequest of net/http/httptrace.
package http1

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/net/http/httpguts"
)

const (
	// maxBody fits into the buffers of two sockets. A server may respond before it has read a longer body, and this
	// package does not read the response while it writes the request.
	maxBody = 64 << 10

	maxKept = 8 << 10 // size of a buffer that is reused
)

var errBodyLength = errors.New("the body's length differs from Content-Length")

// Transport is the RoundTripper. It is safe for concurrent use.
type Transport struct {
	rest *http.Transport
	pool pool
}

// New returns a Transport with the Proxy, DialContext, MaxIdleConnsPerHost and IdleConnTimeout of rest. It delegates
// requests that it does not handle to rest.
func New(rest *http.Transport) *Transport {
	return &Transport{rest: forUploads(rest), pool: newPool(rest)}
}

// CloseIdleConnections closes the idle connections.
func (t *Transport) CloseIdleConnections() {
	t.pool.close()
	t.rest.CloseIdleConnections()
}

// RoundTrip implements http.RoundTripper. The connection is reused if the response body is read to its end before it
// is closed.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.takes(req) {
		return t.rest.RoundTrip(beginning(req))
	}
	ctx := req.Context()
	trace := httptrace.ContextClientTrace(ctx)
	if trace == nil {
		trace = &httptrace.ClientTrace{}
	}
	buffer := buffers.Get().(*[]byte)
	defer func() {
		if cap(*buffer) <= maxKept {
			buffers.Put(buffer)
		}
	}()
	var err error
	if *buffer, err = encode((*buffer)[:0], req); err != nil {
		return nil, err
	}
	for {
		if trace.GetConn != nil {
			trace.GetConn(req.URL.Host)
		}
		c, err := t.pool.get(ctx, req.URL)
		if err != nil {
			return nil, err
		}
		resp, err := c.roundTrip(outgoing{req, *buffer, trace})
		switch {
		case err == nil:
			return resp, nil
		case errors.Is(err, errDisturbed):
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !c.reused || !c.untouched(req):
			return nil, err
		}
	}
}

// takes reports whether this package sends a request. Errors in other requests are left to rest.
func (t *Transport) takes(req *http.Request) bool {
	switch {
	case !canProbe, req.URL == nil, req.URL.Scheme != "http", !plainHost(req.URL.Host), !plainHost(hostOf(req)), req.Close,
		req.TransferEncoding != nil, req.Trailer != nil, !t.direct(req):
		return false
	case req.Body == nil || req.Body == http.NoBody:
		if req.Method != http.MethodGet && req.Method != http.MethodDelete {
			return false
		}
	case req.Method != http.MethodPost, req.ContentLength <= 0, req.ContentLength > maxBody:
		return false
	}
	for name, values := range req.Header {
		if !httpguts.ValidHeaderFieldName(name) {
			return false
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return false
			}
		}
	}
	return !strings.ContainsFunc(req.URL.RequestURI(), func(r rune) bool { return r <= ' ' || r == 0x7f })
}

// direct reports whether no proxy is used.
func (t *Transport) direct(req *http.Request) bool {
	if t.rest.Proxy == nil {
		return true
	}
	proxy, err := t.rest.Proxy(req)
	return proxy == nil && err == nil
}

// hostOf returns the host that a request names.
func hostOf(req *http.Request) string { return cmp.Or(req.Host, req.URL.Host) }

// plainHost reports whether a host can be sent without conversion.
func plainHost(host string) bool {
	return host != "" && !strings.ContainsFunc(host, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune(".-:_[]", c))
	})
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// encode appends a request to b like net/http, except for the order of headers. It closes the body.
func encode(b []byte, req *http.Request) ([]byte, error) {
	b = append(append(b, req.Method...), ' ')
	b = append(b, req.URL.RequestURI()...)
	b = append(append(b, " HTTP/1.1\r\nHost: "...), hostOf(req)...)
	b = append(b, "\r\n"...)
	agent := "Go-http-client/1.1"
	if _, ok := req.Header["User-Agent"]; ok {
		agent = strings.TrimSpace(req.Header.Get("User-Agent"))
	}
	if agent != "" {
		b = append(append(append(b, "User-Agent: "...), agent...), "\r\n"...)
	}
	if req.Body != nil && req.Body != http.NoBody {
		b = strconv.AppendInt(append(b, "Content-Length: "...), req.ContentLength, 10)
		b = append(b, "\r\n"...)
	}
	for name, values := range req.Header {
		switch name {
		case "Host", "User-Agent", "Content-Length", "Transfer-Encoding", "Trailer": // as net/http does
			continue
		}
		for _, value := range values {
			b = append(append(append(b, name...), ": "...), strings.TrimSpace(value)...)
			b = append(b, "\r\n"...)
		}
	}
	b = append(b, "\r\n"...)
	if req.Body == nil {
		return b, nil
	}
	defer req.Body.Close()
	head, length := len(b), int(req.ContentLength)
	b = append(b, make([]byte, length+1)...) // one more byte detects a longer body
	n, err := io.ReadFull(req.Body, b[head:])
	switch {
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF):
		return b, err
	case n != length:
		return b, errBodyLength
	}
	return b[:head+length], nil
}

// repeatable reports whether a request may be repeated even if the server may have seen it, by the rules of net/http.
func repeatable(req *http.Request) bool {
	if req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
		return false
	}
	return req.Method == http.MethodGet || req.Header["Idempotency-Key"] != nil || req.Header["X-Idempotency-Key"] != nil
}

// isReset reports whether a write failed because the peer has closed the connection. Data that the peer sent before
// can still be read.
func isReset(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// upload is a connection of an http.Transport, which ignores the response once a write has failed. A server may
// refuse a request and close the connection before it has read all of it. Therefore a write that fails for that
// reason reports success, and reading the response shows the result.
type upload struct {
	net.Conn
	begun atomic.Bool // part of the request has been written
}

// NetConn returns the connection that u wraps.
func (u *upload) NetConn() net.Conn { return u.Conn }

// Write implements io.Writer. The first write of a request may fail: then nothing was sent, and the request may be
// repeated on another connection.
func (u *upload) Write(b []byte) (int, error) {
	n, err := u.Conn.Write(b)
	if n > 0 {
		u.begun.Store(true)
	}
	if err != nil && u.begun.Load() && isReset(err) {
		return len(b), nil
	}
	return n, err
}

// forUploads returns a transport like rest whose connections are uploads.
func forUploads(rest *http.Transport) *http.Transport {
	rest = rest.Clone()
	dial := dialer(rest)
	rest.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &upload{Conn: nc}, nil
	}
	return rest
}

// beginning returns a request that notifies its connection when it begins.
func beginning(req *http.Request) *http.Request {
	return req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			nc := info.Conn
			if secure, ok := nc.(*tls.Conn); ok {
				nc = secure.NetConn()
			}
			if u, ok := nc.(*upload); ok {
				u.begun.Store(false)
			}
		},
	}))
}

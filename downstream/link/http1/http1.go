// Package http1 is an http.RoundTripper optimized for short requests. It writes and reads in the caller's goroutine,
// whereas http.Transport has two goroutines per connection and passes every request and response between them.
//
// It handles plain HTTP/1.1 requests without a proxy and with bodies of at most 64 KiB. All others go to an
// http.Transport, whose settings it shares. Its rules for retrying requests are those of http.Transport.
package http1

import (
	"context"
	"errors"
	"net/http"

	"golang.org/x/net/http/httpguts"
)

// maxBody fits into the buffers of two sockets. A server may respond before it has read a longer body, and this
// package does not read the response while it writes the request.
const maxBody = 64 << 10

// Transport is the RoundTripper. It reports to the Watch of a request. It is safe for concurrent use.
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
		return t.rest.RoundTrip(beginning(traced(req)))
	}
	ctx := req.Context()
	out := outgoing{Request: req, watch: watchOf(ctx)}
	var err error
	if out.short, err = encode(req); err != nil {
		return nil, err
	}
	for {
		out.watch.GetConn()
		c, err := t.pool.get(ctx, req.URL)
		if err != nil {
			out.short.free()
			closeBody(out.Request)
			return nil, err
		}
		resp, err := c.roundTrip(out)
		switch {
		case err == nil:
			return resp, nil
		case errors.Is(err, errDisturbed):
			continue
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !c.reused || !c.untouched(req):
			return nil, err
		}
		if out.Request, err = again(req); err != nil {
			return nil, err
		}
		if out.short, err = encode(out.Request); err != nil {
			return nil, err
		}
	}
}

// takes reports whether this package sends a request. Errors in other requests are left to rest.
func (t *Transport) takes(req *http.Request) bool {
	switch {
	case !canProbe, req.URL == nil, req.URL.Scheme != "http", req.URL.Host == "",
		req.Method != "" && !httpguts.ValidHeaderFieldName(req.Method): // both are tokens
		return false
	case req.Body != nil && req.Body != http.NoBody && (req.GetBody == nil || req.ContentLength <= 0 ||
		req.ContentLength > maxBody):
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
	if t.rest.Proxy == nil {
		return true
	}
	proxy, err := t.rest.Proxy(req)
	return proxy == nil && err == nil
}

// repeatable reports whether a request may be repeated even if the server may have seen it, by the rules of net/http.
func repeatable(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return req.Header["Idempotency-Key"] != nil || req.Header["X-Idempotency-Key"] != nil
}

// again returns a request with its body rewound.
func again(req *http.Request) (*http.Request, error) {
	if req.Body == nil {
		return req, nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	fresh := *req
	fresh.Body = body
	return &fresh, nil
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}

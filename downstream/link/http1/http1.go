// Package http1 is an http.RoundTripper that spends little on a short request: it writes and reads on the
// goroutine of the caller, where http.Transport has two goroutines for each connection and hands every request
// and response from one to the next.
//
// It takes requests over plain HTTP/1.1 that need no proxy, with bodies of at most 64 KiB. All others go to an
// http.Transport, whose settings it shares. What is sent again, and when, is as there.
package http1

import (
	"context"
	"errors"
	"net/http"

	"golang.org/x/net/http/httpguts"
)

// maxBody is what the buffers of two sockets hold. A server may answer before it has read a longer body, and
// nobody would read its answer here while that is written.
const maxBody = 64 << 10

// Transport is the RoundTripper. It tells the Watch of a request. It may be used from any goroutine.
type Transport struct {
	rest *http.Transport
	pool pool
}

// New makes a Transport that has the Proxy, DialContext, MaxIdleConnsPerHost and IdleConnTimeout of rest, and
// leaves to rest what is not for it.
func New(rest *http.Transport) *Transport {
	return &Transport{rest: forUploads(rest), pool: newPool(rest)}
}

// CloseIdleConnections closes the connections that are not in use.
func (t *Transport) CloseIdleConnections() {
	t.pool.close()
	t.rest.CloseIdleConnections()
}

// RoundTrip implements http.RoundTripper. The connection is used again if the body of the response is read to
// its end before it is closed.
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

// takes reports whether a request is sent from here. What may be wrong with others, rest tells.
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

// repeatable reports whether a request may be sent again though the server may have seen it, as net/http has it.
func repeatable(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return req.Header["Idempotency-Key"] != nil || req.Header["X-Idempotency-Key"] != nil
}

// again returns a request with its body from the beginning.
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

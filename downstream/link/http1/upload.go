package http1

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"syscall"
)

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

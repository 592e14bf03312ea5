package http1

import (
	"context"
	"net/http"
	"net/http/httptrace"
)

// Watch is implemented by request contexts that track the progress of the request. Its methods correspond to the
// hooks of net/http/httptrace and are called for each connection tried. WroteRequest is called once the request has
// been handed to the connection or could not be.
type Watch interface {
	context.Context
	GetConn()
	GotConn()
	WroteRequest()
}

type watchKey struct{}

// Watched returns a RoundTripper that reports to the Watch of a request, for Transports that are wrapped by others.
func Watched(rt http.RoundTripper) http.RoundTripper {
	if own, ok := rt.(*Transport); ok {
		return own
	}
	return watched{rt}
}

type watched struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (w watched) RoundTrip(req *http.Request) (*http.Response, error) {
	return w.RoundTripper.RoundTrip(traced(req))
}

// traced returns a request with a httptrace that reports to its Watch, if its context is one.
func traced(req *http.Request) *http.Request {
	watch, ok := req.Context().(Watch)
	if !ok {
		return req
	}
	ctx := context.WithValue(watch, watchKey{}, watch)
	return req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { watch.GetConn() },
		GotConn:      func(httptrace.GotConnInfo) { watch.GotConn() },
		WroteRequest: func(httptrace.WroteRequestInfo) { watch.WroteRequest() },
	}))
}

// unwatched is the Watch of requests without one.
type unwatched struct{ context.Context }

func (unwatched) GetConn()      {}
func (unwatched) GotConn()      {}
func (unwatched) WroteRequest() {}

func watchOf(ctx context.Context) Watch {
	if watch, ok := ctx.(Watch); ok {
		return watch
	}
	if watch, ok := ctx.Value(watchKey{}).(Watch); ok {
		return watch
	}
	return unwatched{ctx}
}

// afterFunc is context.AfterFunc, but cheaper for contexts that have it as a method.
func afterFunc(ctx context.Context, f func()) (stop func() bool) {
	if own, ok := ctx.(interface{ AfterFunc(f func()) func() bool }); ok {
		return own.AfterFunc(f)
	}
	return context.AfterFunc(ctx, f)
}

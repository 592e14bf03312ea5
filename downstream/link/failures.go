package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// Unauthorized is the error of a RoundTripper without credentials that the server accepts. The request was not
// handled.
type Unauthorized struct{ Why string } // reason and remedy

// Error implements error.
func (u *Unauthorized) Error() string { return u.Why }

const supportsOAuth = "; it supports OAuth: set auth in its configuration"

// OAuth reports whether the server refused a request without a token, and supports OAuth.
func (f *Failure) OAuth() bool { return strings.HasSuffix(f.Message, supportsOAuth) }

// requestFailure classifies an error before the response: a request without a connection never reached the server.
// cut is the context whose end may have cut the request.
func (l *lifetime) requestFailure(err error, d *dispatch, cut context.Context) *Failure {
	if refused := (*Unauthorized)(nil); errors.As(err, &refused) {
		f := l.failure(reason.Unauthorized, "%s", refused.Why)
		f.NoToken = true
		return f
	}
	started := d != nil && d.started.Load()
	if cut.Err() != nil {
		f := *l.asFailure(context.Cause(l.ctx))
		f.MaybeDelivered = started
		return &f
	}
	if !started {
		return l.failure(reason.Unavailable, "%v", err)
	}
	f := l.failure(reason.Disconnected, "%v", err)
	f.MaybeDelivered = true
	return f
}

// readFailure classifies an error while a response is read.
func (l *lifetime) readFailure(err error, most int) *Failure {
	f := l.failure(reason.Disconnected, "the response was cut off: %v", err)
	switch {
	case errors.Is(err, errTooLong):
		f = l.failure(reason.TooLarge, "its response exceeds %d bytes", most)
	case errors.Is(err, errNoRoom):
		f = l.failure(reason.TooLarge, "its response and the caller's unread responses exceed the caller's memory limit")
	case errors.Is(err, io.EOF):
		f.Message = "the stream ended without a response"
	}
	f.MaybeDelivered = true
	return f
}

// statusFailure classifies an HTTP status other than success.
func (l *lifetime) statusFailure(resp *http.Response) *Failure {
	code := resp.StatusCode
	f := l.failure(reason.Unavailable, "it answered %d %s", code, http.StatusText(code))
	f.status = code
	switch {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		f.Reason = reason.Unauthorized
		if strings.Contains(strings.Join(resp.Header.Values("WWW-Authenticate"), ","), "resource_metadata=") {
			f.Message += supportsOAuth
		}
	case code == http.StatusTooManyRequests:
		// The status says that the request was rate-limited, not handled (RFC 6585 §4). But a tool may relay the 429
		// of another service after having done half of its work.
		f.Reason, f.MaybeDelivered = reason.Overloaded, true
		f.After = retryAfter(resp.Header)
	case code == http.StatusRequestEntityTooLarge:
		f.Reason = reason.TooLarge
	case code >= 500:
		// Proxies also answer 502, 503 or 504 when they lose a server that has read the request.
		f.MaybeDelivered = true
		if code == http.StatusServiceUnavailable {
			f.After = retryAfter(resp.Header)
		}
	case code >= 300 && code < 400:
		f.Reason = reason.Protocol
		f.Message = fmt.Sprintf("it redirects (%d) to another origin, which is not followed; configure the final URL", code)
	default:
		f.Reason = reason.Protocol
	}
	return f
}

const maxRetryAfter = time.Hour

// retryAfter parses Retry-After, a number of seconds or a date (RFC 9110 §10.2.3); 0 = none.
func retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if date, err := http.ParseTime(v); err == nil {
		return min(max(0, time.Until(date)), maxRetryAfter)
	}
	seconds, err := strconv.ParseInt(v, 10, 32)
	if err != nil {
		return 0
	}
	return min(max(0, time.Duration(seconds)*time.Second), maxRetryAfter)
}

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

// Unauthorized is the error of a RoundTripper that has no credentials which the server accepts. The request was not
// handled.
type Unauthorized struct{ Why string } // and what to do

// Error implements error.
func (u *Unauthorized) Error() string { return u.Why }

// requestFailure judges an error before any answer: what never got a connection never reached the server.
// end is the context that cut the request if it is done.
func (l *lifetime) requestFailure(err error, d *dispatch, end context.Context) *Failure {
	if refused := (*Unauthorized)(nil); errors.As(err, &refused) {
		return l.failure(reason.Unauthorized, "%s", refused.Why)
	}
	started := d != nil && d.started.Load()
	if end.Err() != nil {
		f := *l.asFailure(context.Cause(l.ctx))
		f.Delivered = started
		return &f
	}
	if !started {
		return l.failure(reason.Unavailable, "%v", err)
	}
	f := l.failure(reason.Disconnected, "%v", err)
	f.Delivered = true
	return f
}

// readFailure judges an error in the middle of an answer.
func (l *lifetime) readFailure(err error, most int) *Failure {
	f := l.failure(reason.Disconnected, "the answer was cut: %v", err)
	switch {
	case errors.Is(err, errTooLong):
		f = l.failure(reason.TooLarge, "its answer is over %d bytes", most)
	case errors.Is(err, errNoRoom):
		f = l.failure(reason.TooLarge, "its answer is more than the caller may hold beside the answers that it has not read")
	case errors.Is(err, io.EOF):
		f.Message = "the stream ended without a response"
	}
	f.Delivered = true
	return f
}

// statusFailure judges an HTTP status that is no success.
func (l *lifetime) statusFailure(resp *http.Response) *Failure {
	code := resp.StatusCode
	f := l.failure(reason.Unavailable, "it answered %d %s", code, http.StatusText(code))
	f.status = code
	switch {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		f.Reason = reason.Unauthorized
		if strings.Contains(strings.Join(resp.Header.Values("WWW-Authenticate"), ","), "resource_metadata=") {
			f.Message += "; it offers OAuth, which auth in its configuration uses"
		}
	case code == http.StatusTooManyRequests:
		// It says that the request was counted instead of handled (RFC 6585 §4). But a tool may pass on the 429 of
		// another service after it has done half of its work.
		f.Reason, f.Delivered = reason.Overloaded, true
		f.After = retryAfter(resp.Header)
	case code == http.StatusRequestEntityTooLarge:
		f.Reason = reason.TooLarge
	case code >= 500:
		// Proxies answer 502, 503 or 504 also when a server is lost that has read the request.
		f.Delivered = true
		if code == http.StatusServiceUnavailable {
			f.After = retryAfter(resp.Header)
		}
	case code >= 300 && code < 400:
		f.Reason = reason.Protocol
		f.Message = fmt.Sprintf("it redirects (%d) elsewhere, which is not followed; configure the URL that answers", code)
	default:
		f.Reason = reason.Protocol
	}
	return f
}

const maxRetryAfter = time.Hour

// retryAfter reads Retry-After, which is a number of seconds or a date (RFC 9110 §10.2.3); 0 = none.
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

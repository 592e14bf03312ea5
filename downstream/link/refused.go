package link

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// refused turns an answer other than 200 into an error, or into the JSON-RPC error in its body.
func (t *httpTransport) refused(ctx context.Context, resp *http.Response, c *inflight, sent http.Header) (jsonrpc.Message, error) {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	m, invalid := jsonrpc.Parse(body)
	explained := invalid == nil && m.Err != nil // whatever its id: servers that refuse the message itself do not know it
	if sent.Get("Mcp-Session-Id") != "" {
		switch code := resp.StatusCode; {
		case code == http.StatusNotFound:
			return jsonrpc.Message{}, t.s.gone()
		case code == http.StatusBadRequest && !(explained && m.ID == c.wire):
			// It is about this message, or the server was restarted and does not know the session.
			if c.call.probe || t.probes.run(ctx, t.s) {
				return jsonrpc.Message{}, t.s.gone()
			}
		}
	}
	f := t.s.statusFailure(resp)
	if f.Reason == ReasonProtocol && explained {
		return m, nil
	}
	return jsonrpc.Message{}, f
}

// gone ends a session that the server does not know.
func (s *Session) gone() *Failure {
	s.forgotten.Store(true)
	f := s.failure(ReasonDisconnected, "the session is gone")
	s.lose(f)
	return &Failure{Server: f.Server, Reason: f.Reason, Message: f.Message, Lost: true, Unknown: true}
}

// probes are the pings that tell whether the server still knows the session. The calls that doubt it at the same
// time share one.
type probes struct {
	mu      sync.Mutex
	current chan struct{} // closed when the one under way is over; nil if there is none
}

// run waits for the ping, within ctx, and reports whether the session is gone.
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
	ctx, cancel := context.WithTimeout(s.ctx, courtesyTime)
	defer cancel()
	if err := s.Ping(ctx); err != nil {
		s.opts.Logger.Debug("ping of a session in doubt failed", "server", s.opts.Server, "error", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = nil
	close(done)
}

// statusFailure judges an HTTP status that is no success.
func (s *Session) statusFailure(resp *http.Response) *Failure {
	code := resp.StatusCode
	f := s.failure(ReasonUnavailable, "it answered %d %s", code, http.StatusText(code))
	f.status = code
	switch {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		f.Reason = ReasonUnauthorized
	case code == http.StatusTooManyRequests:
		// It says that the request was counted instead of handled (RFC 6585 §4). But a tool may pass on the 429 of
		// another service after it has done half of its work.
		f.Reason, f.Delivered = ReasonOverloaded, true
		f.After = retryAfter(resp.Header)
	case code == http.StatusRequestEntityTooLarge:
		f.Reason = ReasonTooLarge
	case code >= 500:
		// Proxies answer 502, 503 or 504 also when a server is lost that has read the request.
		f.Delivered = true
		if code == http.StatusServiceUnavailable {
			f.After = retryAfter(resp.Header)
		}
	case code >= 300 && code < 400:
		f.Reason = ReasonProtocol
		f.Message = fmt.Sprintf("it redirects (%d), which is not followed", code)
	default:
		f.Reason = ReasonProtocol
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

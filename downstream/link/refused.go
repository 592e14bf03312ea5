package link

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// refused converts a response with a status other than 200 to an error, or to the JSON-RPC error in its body.
func (t *httpTransport) refused(
	ctx context.Context, resp *http.Response, c *pending, sent http.Header,
) (jsonrpc.Message, error) {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	m, invalid := jsonrpc.Parse(body)
	explained := invalid == nil && m.Err != nil // of any id: a server that rejects the message may not know its id
	if sent.Get("Mcp-Session-Id") != "" {
		switch code := resp.StatusCode; {
		case code == http.StatusNotFound:
			return jsonrpc.Message{}, t.s.gone()
		case code == http.StatusBadRequest && !(explained && m.ID == c.wire):
			// The error is about this message, or the restarted server does not know the session.
			if c.call.probe || t.probes.run(ctx, t.s) {
				return jsonrpc.Message{}, t.s.gone()
			}
		}
	}
	f := t.s.statusFailure(resp)
	if f.Reason == reason.Protocol && explained {
		return m, nil
	}
	return jsonrpc.Message{}, f
}

// probes are the pings that test whether the server still knows the session. Concurrent calls share one.
type probes struct {
	mu      sync.Mutex
	current chan struct{} // closed when the current ping is done; nil if there is none
}

// run waits for the ping within ctx and reports whether the session is gone.
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
	ctx, cancel := context.WithTimeout(s.ctx, messageTimeout)
	defer cancel()
	if err := s.Ping(ctx); err != nil {
		s.opts.Logger.Debug("ping of a session in doubt failed", "server", s.opts.Server, "error", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = nil
	close(done)
}

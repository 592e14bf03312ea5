package link

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/agenticnexus/agenticnexus/downstream/link/http1"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/sse"
)

// sseTransport is HTTP+SSE of 2024-11-05: one stream for all that the server sends, a POST for each
// message to it.
type sseTransport struct {
	s        *Session
	url      *url.URL
	rt       http.RoundTripper
	header   http.Header
	endpoint atomic.Pointer[url.URL]
}

// openSSE opens the stream and waits for the endpoint within ctx.
func openSSE(ctx context.Context, s *Session) (transport, error) {
	u, header, err := httpTarget(s)
	if err != nil {
		return nil, err
	}
	s.calls.shared = true
	t := &sseTransport{s: s, url: u, rt: http1.Watched(s.opts.HTTP), header: header}
	get := header.Clone()
	get.Set("Accept", "text/event-stream")
	// The stream lives as long as the session; only its beginning is bound by ctx.
	streamCtx, cancel := context.WithCancel(s.ctx)
	stop := context.AfterFunc(ctx, cancel)
	resp, err := follow(t.rt, newRequest(streamCtx, http.MethodGet, u, get, nil))
	if err != nil {
		cancel()
		return nil, s.requestFailure(err, nil, s.ctx)
	}
	kind := mediaType(resp.Header)
	if resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		resp.Body.Close()
		cancel()
		if resp.StatusCode >= 300 {
			return nil, s.statusFailure(resp)
		}
		return nil, s.failure(reason.Protocol, "it answered %d with content type %.100q where an event stream belongs",
			resp.StatusCode, kind)
	}
	er := sse.NewReader(resp.Body, s.opts.MaxMessage)
	er.Memory = room(nil)
	if err := t.readEndpoint(er); err != nil {
		resp.Body.Close()
		cancel()
		return nil, err
	}
	if !stop() {
		resp.Body.Close()
		cancel()
		return nil, s.failure(reason.Timeout, "no endpoint in time")
	}
	s.run(func() {
		defer cancel()
		defer resp.Body.Close()
		t.read(er)
	})
	return t, nil
}

// readEndpoint reads where messages go to. Another origin than the stream's own is refused.
func (t *sseTransport) readEndpoint(er *sse.Reader) error {
	for {
		e, err := er.Next()
		if err != nil {
			return t.s.failure(reason.Protocol, "the stream has no endpoint: %v", err)
		}
		if e.Name != "endpoint" {
			continue
		}
		u, err := t.url.Parse(string(bytes.TrimSpace(e.Data)))
		if err != nil || u.Host != t.url.Host || u.Scheme != t.url.Scheme {
			return t.s.failure(reason.Protocol, "the endpoint %.200q is not on the server itself", e.Data)
		}
		t.endpoint.Store(u)
		return nil
	}
}

func (t *sseTransport) read(er *sse.Reader) {
	for {
		e, err := er.Next()
		if err != nil {
			f := t.s.failure(reason.Disconnected, "the stream ended: %v", err)
			if errors.Is(err, errTooLong) {
				f = t.s.failure(reason.TooLarge, "it sent a message over %d bytes", t.s.opts.MaxMessage)
			}
			t.s.lose(f)
			return
		}
		if e.Name != "" && e.Name != "message" {
			continue
		}
		for m := range t.s.messages(e.Data) {
			t.s.inbox.deliver(m)
		}
	}
}

func (t *sseTransport) opened() {}

func (t *sseTransport) watching() int64 { return 1 }

// close has nothing to say: the end of the stream is the end of the session.
func (t *sseTransport) close(context.Context, bool) {}

func (t *sseTransport) roundTrip(ctx context.Context, c *pending, message []byte) (jsonrpc.Message, error) {
	d := &dispatch{Context: ctx, sent: c.call.Sent}
	if err := t.send(d, message, c.call.Header); err != nil {
		select {
		case m := <-c.reply: // it came nevertheless
			return m, nil
		default:
			c.unsent = !d.started.Load()
			return jsonrpc.Message{}, err
		}
	}
	select {
	case m := <-c.reply:
		return m, nil
	case <-ctx.Done():
		return jsonrpc.Message{}, ctx.Err()
	case <-t.s.ctx.Done():
		select {
		case m := <-c.reply:
			return m, nil
		default:
		}
		f := *t.s.asFailure(t.s.Err())
		f.Delivered = true
		return jsonrpc.Message{}, &f
	}
}

func (t *sseTransport) post(ctx context.Context, message []byte) error {
	return t.send(&dispatch{Context: ctx}, message, nil)
}

// send posts a message. The loss of the stream does not end it at once: whether the server took the message
// only the status tells.
func (t *sseTransport) send(d *dispatch, message []byte, more http.Header) error {
	// net/http has a connection taken by the next message before this one's answer is handed over: cut off just
	// then, it would take that message with it. So who does not wait any more leaves the answer a moment.
	defer d.cancel()
	defer endLater(d.Context, lastWords, d.cancel)()
	defer context.AfterFunc(t.s.closed, d.cancel)()
	defer endLater(t.s.ctx, courtesyTime, d.cancel)()
	header := t.header.Clone()
	maps.Copy(header, more)
	header.Set("Content-Type", "application/json")
	resp, err := follow(t.rt, newRequest(d, http.MethodPost, t.endpoint.Load(), header, message))
	if err != nil {
		return t.s.requestFailure(err, d, t.s.ctx)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxErrorBody))
	if resp.StatusCode < 300 {
		return nil
	}
	// The end of a session is the end of its stream; 400 is about this message alone.
	if resp.StatusCode == http.StatusNotFound {
		return t.s.gone()
	}
	return t.s.statusFailure(resp)
}

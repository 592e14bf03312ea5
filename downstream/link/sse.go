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

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/sse"
)

// sseTransport implements HTTP+SSE of 2024-11-05: one stream for all messages of the server, and a POST for each
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
	t := &sseTransport{s: s, url: u, rt: s.opts.HTTP, header: header}
	get := header.Clone()
	get.Set("Accept", "text/event-stream")
	// The stream lives as long as the session; ctx limits only its opening.
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
		return nil, s.failure(reason.Protocol, "it answered %d with content type %.100q instead of an event stream",
			resp.StatusCode, s.mask.Text(kind))
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
		return nil, s.failure(reason.Timeout, "no endpoint event in time")
	}
	s.run(func() {
		defer cancel()
		defer resp.Body.Close()
		t.read(er)
	})
	return t, nil
}

// readEndpoint reads the URL for messages. It refuses an origin other than the stream's.
func (t *sseTransport) readEndpoint(er *sse.Reader) error {
	for {
		e, err := er.Next()
		if err != nil {
			return t.s.failure(reason.Protocol, "the stream has no endpoint event: %v", err)
		}
		if e.Name != "endpoint" {
			continue
		}
		u, err := t.url.Parse(string(bytes.TrimSpace(e.Data)))
		if err != nil || u.Host != t.url.Host || u.Scheme != t.url.Scheme {
			return t.s.failure(reason.Protocol, "the endpoint %.200q is not on the server itself", t.s.mask.Text(string(e.Data)))
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
				f = t.s.failure(reason.TooLarge, "it sent a message of more than %d bytes", t.s.opts.MaxMessage)
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

// close does nothing: the end of the stream ends the session.
func (t *sseTransport) close(context.Context, bool) {}

func (t *sseTransport) exchange(ctx context.Context, c *pending, message []byte) (jsonrpc.Message, error) {
	d := newDispatch(ctx, c.call.Sent)
	if err := t.send(ctx, d, message, c.call.Header); err != nil {
		select {
		case m := <-c.reply: // the response has arrived anyway
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
		f.MaybeDelivered = true
		return jsonrpc.Message{}, &f
	}
}

func (t *sseTransport) post(ctx context.Context, message []byte) error {
	return t.send(ctx, newDispatch(ctx, nil), message, nil)
}

// send posts a message. Losing the stream does not cancel the POST at once: only its status tells whether the server
// accepted the message.
func (t *sseTransport) send(ctx context.Context, d *dispatch, message []byte, more http.Header) error {
	// net/http may assign the connection to the next message before this response is returned. Cancelling at that
	// moment would break the next message, so a cancelled request gets a short time for its response.
	defer d.cancel()
	defer endLater(ctx, flushTimeout, d.cancel)()
	defer context.AfterFunc(t.s.closed, d.cancel)()
	defer endLater(t.s.ctx, messageTimeout, d.cancel)()
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
	// 404 means that the session has ended, and its stream with it; 400 concerns only this message.
	if resp.StatusCode == http.StatusNotFound {
		return t.s.gone()
	}
	return t.s.statusFailure(resp)
}

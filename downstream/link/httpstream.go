package link

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/sse"
)

// answer is a response body and the function that ends its request.
type answer struct {
	io.ReadCloser
	cancel context.CancelFunc
	ended  bool // it was read to the end
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	a.ended = a.ended || err != nil
	return n, err
}

// Close returns the connection to the pool if the body was read to its end, else closes it.
func (a *answer) Close() error {
	defer a.cancel()
	return a.ReadCloser.Close()
}

// linger closes a response whose message has arrived. Most servers end their stream shortly after that. Waiting for
// it keeps the connection reusable.
func (t *httpTransport) linger(a *answer) {
	if a.ended || t.lingers.Load() >= maxLingering {
		a.Close()
		return
	}
	t.lingers.Add(1)
	if !t.s.spawn(func() {
		defer t.lingers.Add(-1)
		defer a.Close()
		defer context.AfterFunc(t.s.ctx, a.cancel)()
		defer time.AfterFunc(lingerTime, a.cancel).Stop()
		_, _ = io.Copy(io.Discard, io.LimitReader(a, maxErrorBody))
	}) {
		t.lingers.Add(-1)
		a.Close()
	}
}

// events reads a stream up to the response to c and closes it. A stream that ends early is resumed if the server
// numbers its events (MCP 2025-11-25, resumability).
func (t *httpTransport) events(ctx context.Context, a *answer, c *pending) (jsonrpc.Message, error) {
	if c.call.Streams != nil {
		c.call.Streams()
	}
	last := ""
	for resumed := 0; ; resumed++ {
		m, retry, err := t.readEvents(a, c, &last)
		if err == nil {
			t.linger(a)
			return m, nil
		}
		a.ReadCloser.Close()
		final := last == "" || c.call.listens || errors.Is(err, errTooLong) || errors.Is(err, errNoRoom) || resumed == maxResumes
		if final || !t.resume(ctx, a, last, retry) {
			a.cancel()
			return jsonrpc.Message{}, t.s.readFailure(err, t.s.opts.MaxMessage)
		}
	}
}

// readEvents reads one stream and sets last to the id of the last event.
func (t *httpTransport) readEvents(body io.Reader, c *pending, last *string) (jsonrpc.Message, time.Duration, error) {
	er := sse.NewReader(body, t.s.opts.MaxMessage)
	er.Memory = room(c.call.Reserve)
	defer er.Free()
	for {
		e, err := er.Next()
		if err != nil {
			return jsonrpc.Message{}, er.Retry(), err
		}
		if e.ID != "" {
			*last = e.ID
		}
		if len(e.Data) == 0 {
			continue
		}
		if m := t.reply(e.Data, c); m != nil {
			return *m, 0, nil
		}
	}
}

// resume waits for the server's retry time and requests the rest of a stream. It reports whether there is one.
func (t *httpTransport) resume(ctx context.Context, a *answer, last string, retry time.Duration) bool {
	select {
	case <-time.After(min(max(retry, streamWait/10), streamWaits)):
	case <-ctx.Done():
		return false
	}
	header := t.ready.Load().get.Clone()
	header.Set("Last-Event-ID", last)
	resp, err := t.request(ctx, http.MethodGet, header, nil)
	if err != nil {
		return false
	}
	if resp.StatusCode != http.StatusOK || mediaType(resp.Header) != "text/event-stream" {
		resp.Body.Close()
		return false
	}
	a.ReadCloser, a.ended = resp.Body, false
	return true
}

// position is the position in the standalone stream.
type position struct {
	openings int64
	last     string // id of the last event
}

// listen reads the standalone stream, if the server has one, until the session ends.
func (t *httpTransport) listen(ctx context.Context) {
	var at position
	reopen(ctx, func() (time.Duration, bool) { return t.listenOnce(ctx, &at) })
}

// listenOnce reads one standalone stream to its end. ok reports whether to open another.
func (t *httpTransport) listenOnce(ctx context.Context, p *position) (retry time.Duration, ok bool) {
	header := t.ready.Load().get
	if p.last != "" {
		header = header.Clone()
		header.Set("Last-Event-ID", p.last)
	}
	resp, err := t.request(ctx, http.MethodGet, header, nil)
	if err != nil {
		return 0, ctx.Err() == nil
	}
	defer resp.Body.Close()
	kind := mediaType(resp.Header)
	if resp.StatusCode == http.StatusNotFound && p.openings > 0 && ctx.Err() == nil {
		_ = t.s.gone() // the stream existed before, so the server has lost the session
		return 0, false
	}
	if resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		return retryAfter(resp.Header), resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests
	}
	p.openings++
	t.listens.Store(p.openings)
	defer t.listens.Store(0)
	er := sse.NewReader(resp.Body, t.s.opts.MaxMessage)
	er.Memory = room(nil)
	defer er.Free()
	for {
		e, err := er.Next()
		if err != nil {
			return er.Retry(), ctx.Err() == nil
		}
		if e.ID != "" {
			p.last = e.ID
		}
		if len(e.Data) == 0 {
			continue
		}
		for m := range t.s.messages(e.Data) {
			t.s.inbox.receive(*m, nil)
		}
	}
}

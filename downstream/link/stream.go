package link

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/lines"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

const outQueue = 1024 // queued messages for a slow server; beyond that, senders wait within their contexts

// streamTransport exchanges newline-delimited messages over one byte stream: a child process or a pipe.
type streamTransport struct {
	s    *Session
	conn io.ReadWriteCloser
	out  chan *outgoing
	end  func(ctx context.Context) // closes conn and ends the process behind it
	last func() string             // how the process behind conn ended; nil without a process

	silent chan struct{} // closed when the writer has ended
}

// outgoing is a queued message. It is skipped if its call ends before its turn.
type outgoing struct {
	message []byte
	sent    func() // called after it is written; may be nil
	state   atomic.Int32
	cut     bool // the message was written only in part; valid once the writer has ended
}

// States of an outgoing message.
const (
	queued int32 = iota
	taken        // being written
	skipped
)

func openStream(ctx context.Context, s *Session) (transport, error) {
	s.calls.shared = true
	t := &streamTransport{s: s, out: make(chan *outgoing, outQueue), silent: make(chan struct{})}
	if dial := s.opts.Target.Dial; dial != nil {
		conn, err := dial(ctx)
		if err != nil {
			return nil, s.failure(reason.Unavailable, "%v", err)
		}
		t.conn, t.end = conn, func(context.Context) { conn.Close() }
	} else {
		p, err := startProcess(s)
		if err != nil {
			return nil, s.failure(reason.Unavailable, "%v", err)
		}
		t.conn, t.end, t.last = p, p.stop, p.ending
	}
	s.run(t.write)
	s.run(t.read)
	return t, nil
}

func (t *streamTransport) opened() {}

func (t *streamTransport) watching() int64 { return 1 }

func (t *streamTransport) close(ctx context.Context, _ bool) { t.end(ctx) }

func (t *streamTransport) exchange(ctx context.Context, c *pending, message []byte) (jsonrpc.Message, error) {
	o := &outgoing{message: message, sent: c.call.Sent}
	if err := t.enqueue(ctx, o); err != nil {
		c.unsent = true
		return jsonrpc.Message{}, err
	}
	select {
	case m := <-c.reply:
		return m, nil
	case <-ctx.Done():
		if o.state.CompareAndSwap(queued, skipped) {
			o.message, c.unsent = nil, true
		}
		return jsonrpc.Message{}, ctx.Err()
	case <-t.s.ctx.Done():
		select {
		case m := <-c.reply: // it arrived just before the end
			return m, nil
		default:
		}
		<-t.silent // afterwards it is known how far the request got
		f := *t.s.asFailure(t.s.Err())
		f.MaybeDelivered = o.state.Load() == taken && !o.cut
		return jsonrpc.Message{}, &f
	}
}

// post waits until the message is written, at most until ctx or the session ends. One that is only queued then is not
// written, and the error is that of the session or of ctx.
func (t *streamTransport) post(ctx context.Context, message []byte) error {
	written := make(chan struct{})
	o := &outgoing{message: message, sent: func() { close(written) }}
	if err := t.enqueue(ctx, o); err != nil {
		return err
	}
	var ended error
	select {
	case <-written:
		return nil
	case <-ctx.Done():
		ended = ctx.Err()
	case <-t.silent:
		ended = t.s.Err()
	}
	if o.state.CompareAndSwap(queued, skipped) {
		o.message = nil
		return ended
	}
	return nil // it may be written
}

func (t *streamTransport) enqueue(ctx context.Context, o *outgoing) error {
	select {
	case t.out <- o:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-t.s.ctx.Done():
		return t.s.Err()
	}
}

func (t *streamTransport) write() {
	defer close(t.silent)
	for {
		select {
		case o := <-t.out:
			if !o.state.CompareAndSwap(queued, taken) {
				continue
			}
			line := append(jsonrpc.SingleLine(o.message), '\n')
			if n, err := t.conn.Write(line); err != nil {
				o.cut = n < len(line)-1
				f := t.s.failure(reason.Disconnected, "writing: %v", err)
				if t.last != nil && t.s.ctx.Err() == nil {
					f.Message = t.last()
				}
				t.s.lose(f)
				return
			}
			if o.sent != nil {
				o.sent()
			}
		case <-t.s.ctx.Done():
			return
		}
	}
}

func (t *streamTransport) read() {
	in := lines.New(t.conn, 64<<10, t.s.opts.MaxMessage)
	in.Memory = room(nil) // the caller is known only once the message is complete
	for {
		line, err := in.Next()
		if len(bytes.TrimSpace(line)) > 0 && (err == nil || errors.Is(err, io.EOF)) {
			t.message(in.Keep(line))
		}
		if err == nil {
			continue
		}
		f := t.s.failure(reason.Disconnected, "the server closed its output")
		switch {
		case errors.Is(err, errTooLong):
			f = t.s.failure(reason.TooLarge, "it sent a message of more than %d bytes", t.s.opts.MaxMessage)
		case t.s.ctx.Err() != nil:
		case t.last != nil:
			f.Message = t.last()
		case !errors.Is(err, io.EOF):
			f.Message = err.Error()
		}
		t.s.lose(f)
		t.end(t.s.graceful)
		return
	}
}

func (t *streamTransport) message(line []byte) {
	for m := range t.s.messages(line) {
		t.s.inbox.deliver(m)
	}
}

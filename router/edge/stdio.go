package edge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/lines"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/safe"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// ServeStdio serves h to one client over in and out until in ends. Then it ends tasks, answers the requests already
// read, and returns nil. It also returns when ctx ends or the edge stops, after cancelling requests in flight, and when
// writing to out fails. If in is an io.Closer, ServeStdio closes it to end a blocked Read; a Read that does not end is
// abandoned.
func (e *Edge) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, h Handler) error {
	if !e.life.beginWork() {
		return ErrStopped
	}
	defer e.life.endWork()
	t := &stdio{
		endpoint: endpoint{edge: e, handler: h, surface: "stdio"},
		src:      source{ctx: ctx, caller: auth.Anonymous("local"), local: true, shared: true},
	}
	s, refused := e.sessions.open(&t.endpoint, t.src, protocol.V20251125, inbound.ClientInfo{})
	if refused != nil {
		if e.life.stopping.Load() {
			return ErrStopped
		}
		return errors.New("serving stdio: there are too many sessions")
	}
	t.s = s
	var writeErr error
	written := make(chan struct{})
	write := s.own.WriteLines(out) // before reading: a session that ends without a writer drops its responses
	e.life.spawn("writing to the client", func() {
		defer close(written)
		writeErr = errors.New("panicked") // unless write returns
		writeErr = write()
	})
	read := make(chan error, 1)
	go func() {
		err := errors.New("panicked") // unless readLines returns
		defer func() { read <- err }()
		defer safe.Recover(e.log, "reading standard input", nil)
		err = t.readLines(in)
	}()
	err := t.wait(ctx, read, written)
	s.end(ErrSessionEnded)
	if closer, ok := in.(io.Closer); ok {
		_ = closer.Close() // ends a blocked Read
	}
	if !within(stopGrace, s.life.done) {
		s.own.Abandon()
	}
	if within(stopGrace, written) && err == nil && writeErr != nil {
		err = fmt.Errorf("writing to the client: %w", writeErr)
	}
	return err
}

type stdio struct {
	endpoint
	s   *session
	src source
}

// wait waits until everything is read and written, ctx ends or the edge stops.
func (t *stdio) wait(ctx context.Context, read <-chan error, written <-chan struct{}) (err error) {
	select {
	case err = <-read:
		t.s.end(nil) // the writer ends when everything is answered and written
		t.edge.mrtrs.tasks.stop(t.s, ErrSessionEnded)
		select {
		case <-written:
		case <-t.edge.life.quit.Done(): // Stop no longer finds the session
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	case <-written:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return err
}

// readLines serves the messages of in until it ends.
func (t *stdio) readLines(in io.Reader) error {
	r := lines.New(in, 64<<10, int(t.edge.limits.BodyBytes))
	for {
		line, err := r.Next()
		if errors.Is(err, lines.ErrTooLong) {
			t.reject("", inbound.InvalidRequest("the message is larger than "+t.edge.limits.BodyBytes.String()))
			continue
		}
		if len(bytes.TrimSpace(line)) > 0 {
			t.line(r.Keep(line))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading from the client: %w", err)
		}
	}
}

// line serves one message or a batch.
func (t *stdio) line(line []byte) {
	s := t.s
	if jsonrpc.IsBatch(line) {
		version, _ := s.handshake.agreed()
		items, _, err := t.splitBatch(t.src, s, version, line)
		if err != nil {
			t.reject("", err)
			return
		}
		t.serveBatch(t.src, s, items, s.own.Sender)
		return
	}
	in, err := inbound.Parse(line)
	if err == nil && in.Version != nil {
		err = inbound.CheckVersion(nil, &in, true)
	}
	if err == nil && in.Version == nil && in.Method == "initialize" && in.IsRequest() {
		_, _, err = t.initialize(s, t.src, &in)
	}
	if err != nil {
		t.reject(in.ID, err)
		return
	}
	logReceived(t.edge.log, s, &in)
	if !in.IsRequest() {
		if t.accept(t.src, s, &in) != nil {
			t.edge.log.Warn("Dropped a notification: too many are waiting", "method", in.Method)
		}
		return
	}
	if err := t.serveShared(t.src, s, &in); err != nil {
		t.reject(in.ID, wireError(err))
	}
}

func (t *stdio) reject(id jsonrpc.ID, err *jsonrpc.Error) { t.s.respond(output.Error(id, err)) }

package edge

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge/access"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// item is one message of a batch. All are checked before any is served.
type item struct {
	in       inbound.Message
	caller   auth.Caller
	response *output.Message // response that replaces serving; may be nil
	skip     bool            // neither serve nor answer it
}

func (it *item) respond(m output.Message) { it.response = &m }

// splitBatch parses and authorizes the messages of a batch. The verdict is not access.Admitted if the key of one
// message refuses the whole batch.
func (f *surface) splitBatch(
	src source, s *session, version protocol.Version, body []byte,
) ([]item, access.Verdict, *jsonrpc.Error) {
	raws, err := jsonrpc.Batch(body)
	if err != nil {
		return nil, access.Admitted, err
	}
	if version != protocol.V20250326 {
		return nil, access.Admitted, noBatches(version)
	}
	items := make([]item, len(raws))
	ids := map[string]bool{}
	for i, raw := range raws {
		it := &items[i]
		if err := it.parse(raw, ids); err != nil {
			it.respond(output.Error(it.in.ID, err))
			continue
		}
		logReceived(f.edge.log, s, &it.in)
		var v access.Verdict
		switch it.caller, v = f.authorize(&it.in, src); {
		case v == access.KeyWrong && it.in.IsRequest():
			it.respond(wrongKey(f.edge, &it.in.Message, ""))
		case v == access.Unauthenticated && it.in.IsRequest():
			it.respond(f.unauthenticated(&it.in))
		case v == access.Unauthenticated:
			it.skip = true
		case v != access.Admitted:
			return nil, v, nil
		}
		if it.response != nil && src.shared && s.inFlight.has(it.in.ID) {
			return nil, access.Admitted, inFlightError(it.in.ID)
		}
	}
	return items, access.Admitted, nil
}

// parse parses a message of a batch. ids holds the request ids so far.
func (it *item) parse(raw []byte, ids map[string]bool) (err *jsonrpc.Error) {
	it.in, err = inbound.Parse(raw)
	switch {
	case err != nil:
		return err
	case it.in.Version != nil:
		return noBatches(protocol.V20260728)
	case it.in.Method == "initialize":
		return inbound.InvalidRequest("initialize must not be in a batch")
	case !it.in.IsRequest():
		return nil
	case ids[string(it.in.ID)]:
		return inFlightError(it.in.ID)
	}
	ids[string(it.in.ID)] = true
	return nil
}

func noBatches(v protocol.Version) *jsonrpc.Error {
	return inbound.InvalidRequest("protocol version " + string(v) + " has no batches")
}

// serveBatch serves the messages of a batch in order. responds reports whether there will be a response; wait waits
// for it.
func (f *surface) serveBatch(
	src source, s *session, items []item, sender func() output.Sender,
) (responds bool, wait func()) {
	e := f.edge
	b := output.NewBatch(e.budget, src.caller.ID, sender, len(items))
	var queue []batched
	for i := range items {
		it := &items[i]
		src.caller = it.caller
		switch {
		case it.response != nil:
			b.Set(i, *it.response)
			responds = true
			continue
		case it.skip:
			continue
		case s != nil && !s.belongsTo(it.caller):
			if it.in.IsRequest() {
				b.Set(i, output.Error(it.in.ID, inbound.InvalidRequest("the session belongs to another key")))
				responds = true
			}
			continue
		case !it.in.IsRequest():
			_ = f.accept(src, s, &it.in) // notifications in a batch have no status of their own
			continue
		}
		responds = true
		x := &Exchange{}
		ctx := f.fill(x, src, s, &it.in)
		x.out.sender = b.Sender(i)
		if err := e.track(x); err != nil {
			x.abort(nil)
			b.Set(i, output.Error(it.in.ID, wireError(err)))
			continue
		}
		b.Add()
		queue = append(queue, batched{ctx, x})
	}
	wait = f.serveQueue(b, queue)
	b.Done()
	return responds, wait
}

// batchWidth is the number of a batch's requests that are served concurrently.
const batchWidth = 64

// batched is a tracked request of a batch.
type batched struct {
	ctx context.Context
	x   *Exchange
}

// serveQueue serves tracked requests of a batch, batchWidth at a time, and returns a function that waits for them.
func (f *surface) serveQueue(b *output.Batch, queue []batched) (wait func()) {
	e := f.edge
	var served sync.WaitGroup
	var next atomic.Int64
	for range min(len(queue), batchWidth) {
		served.Add(1)
		e.life.spawn("serving a batch", func() {
			defer served.Done()
			for i := next.Add(1) - 1; i < int64(len(queue)); i = next.Add(1) - 1 {
				q := queue[i]
				func() {
					defer b.Done()
					defer e.untrack(q.x)
					f.serveRequest(q.ctx, q.x)
				}()
			}
		})
	}
	return served.Wait
}

// batch serves a batch over streamable HTTP.
func (t *streamable) batch(w http.ResponseWriter, r *http.Request, caller auth.Caller, body []byte) {
	e := t.edge
	version := inbound.HeaderVersion(r.Header)
	if version == "" {
		version = protocol.V20250326
	} else if version != protocol.V20260728 && !version.IsHandshake() {
		t.reply.error(w, http.StatusBadRequest, "", inbound.Unsupported(version, protocol.Versions()))
		return
	}
	src := httpSource(r, caller)
	id := sessionID(r.Header)
	s := t.current(src, id)
	if s != nil {
		version, _ = s.handshake.agreed()
	} else if record, ok := e.sessions.sealed(src, id); ok {
		version = record.Version
	} else if id != "" {
		t.reply.sessionNotFound(w, "")
		return
	}
	items, v, err := t.splitBatch(src, s, version, body)
	switch {
	case err != nil:
		t.reply.error(w, http.StatusBadRequest, "", err)
		return
	case v != access.Admitted:
		t.reply.unauthorized(w, r, "", v == access.KeyWrong)
		return
	}
	if id != "" {
		var err error
		if s, err = t.sessionOf(src, id, items); err != nil {
			t.reply.noSession(w, "", err)
			return
		}
	}
	e.life.begin() // until the response is written
	defer e.life.done()
	resp := &output.Response{}
	resp.Begin(&e.out, w, r, nil, nil)
	responds, wait := t.serveBatch(src, s, items, resp.Sender)
	if !responds {
		resp.Discard()
		w.WriteHeader(http.StatusAccepted)
		return
	}
	wait()
	resp.Finish()
}

// sessionOf returns the session of a batch after completing its handshake. It is nil if no message has a key; then
// the edge answers without the session.
func (t *streamable) sessionOf(src source, id string, items []item) (*session, error) {
	for i := range items {
		if it := &items[i]; it.response == nil && !it.skip {
			src.caller = it.caller
			s, err := t.edge.sessions.find(&t.surface, src, id)
			if err == nil {
				t.completeHandshake(s, src, it.in.Method)
			}
			return s, err
		}
	}
	return nil, nil
}

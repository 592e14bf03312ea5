package edge

import (
	"net/http"

	"golang.org/x/sync/errgroup"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
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

// splitBatch parses and authorizes the messages of a batch. The verdict is not admitted if the key of one
// message refuses the whole batch.
func (ep *endpoint) splitBatch(
	src source, s *session, version protocol.Version, body []byte,
) ([]item, verdict, *jsonrpc.Error) {
	raws, err := jsonrpc.Batch(body)
	if err != nil {
		return nil, admitted, err
	}
	if version != protocol.V20250326 {
		return nil, admitted, noBatches(version)
	}
	items := make([]item, len(raws))
	ids := map[string]bool{}
	for i, raw := range raws {
		it := &items[i]
		if err := it.parse(raw, ids); err != nil {
			it.respond(output.Error(it.in.ID, err))
			continue
		}
		logReceived(ep.edge.log, s, &it.in)
		var v verdict
		switch it.caller, v = ep.authorize(&it.in, src); {
		case v == keyWrong && it.in.IsRequest():
			it.respond(wrongKey(ep.edge, &it.in.Message, ""))
		case v == unauthenticated && it.in.IsRequest():
			it.respond(ep.unauthenticated(&it.in, "")) // a batch has no initialize
		case v == unauthenticated:
			it.skip = true
		case v != admitted:
			return nil, v, nil
		}
		if it.response != nil && src.shared && s.inFlight.has(it.in.ID) {
			return nil, admitted, inFlightError(it.in.ID)
		}
	}
	return items, admitted, nil
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

// batchWidth is the number of a batch's requests that are served concurrently.
const batchWidth = 64

// serveBatch serves the messages of a batch in order. done is closed when all are served; it is nil if there will be no
// response.
func (ep *endpoint) serveBatch(
	src source, s *session, items []item, sender func() output.Sender,
) (done <-chan struct{}) {
	e := ep.edge
	b := output.NewBatch(e.budget, src.caller.ID, sender, len(items))
	responds := false
	var serve []func()
	for i := range items {
		it := &items[i]
		src.caller = it.caller
		foreign := it.response == nil && s != nil && !s.belongsTo(it.caller)
		switch {
		case it.skip, foreign && !it.in.IsRequest():
			continue
		case it.response != nil:
		case foreign:
			it.respond(output.Error(it.in.ID, inbound.InvalidRequest("the session belongs to another key")))
		case !it.in.IsRequest():
			_ = ep.accept(src, s, &it.in) // notifications in a batch have no status of their own
			continue
		default:
			x := &Exchange{}
			ctx := ep.fill(x, src, s, &it.in)
			x.reply.sender = b.Sender(i)
			if err := e.track(x); err != nil {
				x.abort(nil)
				it.respond(output.Error(it.in.ID, wireError(err)))
				break
			}
			b.Add()
			serve = append(serve, func() {
				defer b.Done()
				defer e.untrack(x)
				ep.serveRequest(ctx, x)
			})
		}
		responds = true
		if it.response != nil {
			b.Set(i, *it.response)
		}
	}
	served := make(chan struct{})
	e.life.spawn("serving a batch", func() {
		defer close(served)
		defer b.Done()
		var group errgroup.Group
		group.SetLimit(batchWidth)
		for _, f := range serve {
			group.Go(func() error { f(); return nil })
		}
		_ = group.Wait() // always nil
	})
	if !responds {
		return nil
	}
	return served
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
	case v != admitted:
		t.reply.unauthorized(w, r, "", v == keyWrong)
		return
	}
	if id != "" {
		var answered bool
		if s, answered = t.sessionOf(w, r, src, id, items, body); answered {
			return
		}
	} else if (hop{replies: t.reply}).toAnother(w, r, caller, body) {
		return
	}
	e.life.busy.begin() // until the response is written
	defer e.life.busy.end()
	resp := &output.Response{}
	resp.Begin(&e.out, w, r, nil, nil)
	served := t.serveBatch(src, s, items, resp.Sender)
	if served == nil {
		resp.Discard()
		w.WriteHeader(http.StatusAccepted)
		return
	}
	<-served
	resp.Finish()
}

// sessionOf returns the session of a batch after completing its handshake. It is nil if the batch is answered, and if
// no message has a key; then the edge answers without the session.
func (t *streamable) sessionOf(
	w http.ResponseWriter, r *http.Request, src source, id string, items []item, body []byte,
) (s *session, answered bool) {
	for i := range items {
		if it := &items[i]; it.response == nil && !it.skip {
			src.caller = it.caller
			s = t.session(w, r, src, id, it.in.Method, body)
			return s, s == nil
		}
	}
	return nil, false
}

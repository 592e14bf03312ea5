package edge

import (
	"net/http"
	"sync"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge/access"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// item is one message of a batch, as judged before any of them is served.
type item struct {
	in     inbound.Message
	caller auth.Caller
	answer *output.Message // instead of serving it
	skip   bool
}

// splitBatch judges the messages of a batch. verdict is access.KeyMissing if one of them needs a key.
func (f *surface) splitBatch(src source, s *session, version protocol.Version, body []byte) ([]item, access.Verdict, *jsonrpc.Error) {
	raws, err := jsonrpc.Batch(body)
	if err != nil {
		return nil, access.Admitted, err
	}
	if version != protocol.V20250326 {
		return nil, access.Admitted, inbound.InvalidRequest("protocol version " + string(version) + " has no batches")
	}
	items := make([]item, len(raws))
	ids := map[string]bool{}
	for i, raw := range raws {
		it := &items[i]
		it.in, err = inbound.Parse(raw)
		switch {
		case err != nil:
		case it.in.Version != nil:
			err = inbound.InvalidRequest("protocol version " + string(protocol.V20260728) + " has no batches")
		case it.in.Method == "initialize":
			err = inbound.InvalidRequest("initialize must stand alone")
		case it.in.IsRequest():
			if ids[string(it.in.ID)] {
				err = inFlightError(it.in.ID)
			}
			ids[string(it.in.ID)] = true
		}
		if err != nil {
			m := output.Error(it.in.ID, err)
			it.answer = &m
			continue
		}
		logReceived(f.edge.log, s, &it.in)
		var v access.Verdict
		switch it.caller, v = f.edge.admit(&it.in, src); {
		case v == access.KeyWrong && it.in.IsRequest():
			m := wrongKey(&it.in.Message, "")
			it.answer = &m
		case v == access.Unauthenticated && it.in.IsRequest():
			m := f.edge.unauthenticated(&it.in)
			it.answer = &m
		case v == access.Unauthenticated:
			it.skip = true
		case v != access.Admitted:
			return nil, v, nil
		}
		if it.answer != nil && src.shared && s.busyWith(it.in.ID) {
			return nil, access.Admitted, inFlightError(it.in.ID)
		}
	}
	return items, access.Admitted, nil
}

// serveBatch serves a batch in the order it stands in. It returns whether there will be an answer, and a
// function that waits for it.
func (f *surface) serveBatch(src source, s *session, items []item, out output.Outlet) (answers bool, wait func()) {
	e := f.edge
	b := output.NewBatch(e.budget, src.caller.ID, out, len(items))
	var served sync.WaitGroup
	for i := range items {
		it := &items[i]
		src.caller = it.caller
		switch {
		case it.answer != nil:
			b.Set(i, *it.answer)
			answers = true
			continue
		case it.skip:
			continue
		case s != nil && !s.of(it.caller):
			if it.in.IsRequest() {
				b.Set(i, output.Error(it.in.ID, inbound.InvalidRequest("the session belongs to another key")))
				answers = true
			}
			continue
		case !it.in.IsRequest():
			_ = f.takeOne(src, s, &it.in) // notifications in a batch have no answer of their own
			continue
		}
		answers = true
		x := &Exchange{}
		ctx := f.fill(x, src, s, &it.in)
		x.out = b.Outlet(i)
		if err := e.track(x); err != nil {
			x.abort(nil)
			b.Set(i, output.Error(it.in.ID, wireError(err)))
			continue
		}
		b.Add()
		served.Add(1)
		e.life.spawn("serving a batch", func() {
			defer served.Done()
			defer b.Done()
			defer e.untrack(x)
			e.request(ctx, f.handler, x)
		})
	}
	b.Done()
	return answers, served.Wait
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
	s := t.present(src, id)
	if s != nil {
		version, _ = s.agreed()
	} else if record, ok := t.sealed(src, id); ok {
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
		t.reply.unauthorized(w, "", v == access.KeyWrong)
		return
	}
	if id != "" {
		var err error
		if s, err = t.sessionOf(src, id, items); err != nil {
			t.reply.noSession(w, "", err)
			return
		}
	}
	e.life.begin() // until the answer is written
	defer e.life.done()
	a := &output.Response{}
	a.Begin(&e.out, w, r, nil)
	answers, wait := t.serveBatch(src, s, items, a)
	if !answers {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	wait()
	a.Finish()
}

// sessionOf returns the session that a batch is for, and has the handler know it. It is nil where the batch is
// answered without one, because no message of it has a key.
func (t *streamable) sessionOf(src source, id string, items []item) (*session, error) {
	for i := range items {
		if it := &items[i]; it.answer == nil && !it.skip {
			src.caller = it.caller
			s, err := t.session(src, id)
			if err == nil {
				t.settle(s, src, it.in.Method)
			}
			return s, err
		}
	}
	return nil, nil
}

package edge

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/auth"
)

// item is one message of a batch, as judged before any of them is served.
type item struct {
	in     inbound
	caller auth.Caller
	answer *message // instead of serving it
}

// splitBatch judges the messages of a batch. verdict is keyMissing if one of them needs a key.
func (f *surface) splitBatch(src source, s *session, version string, body []byte) ([]item, verdict, *jsonrpc.Error) {
	raws, err := jsonrpc.Batch(body)
	if err != nil {
		return nil, admitted, err
	}
	if version != versionBatch {
		return nil, admitted, invalidRequest("protocol version " + version + " has no batches")
	}
	items := make([]item, len(raws))
	ids := map[string]bool{}
	for i, raw := range raws {
		it := &items[i]
		it.in, err = parse(raw)
		switch {
		case err != nil:
		case it.in.version != nil:
			err = invalidRequest("protocol version " + versionModern + " has no batches")
		case it.in.msg.Method == "initialize":
			err = invalidRequest("initialize must stand alone")
		case it.in.msg.IsRequest():
			if ids[string(it.in.msg.ID)] {
				err = inFlight(it.in.msg.ID)
			}
			ids[string(it.in.msg.ID)] = true
		}
		if err != nil {
			it.answer = &message{form: failure, id: it.in.msg.ID, body: err.Encode()}
			continue
		}
		f.edge.arrived(s, &it.in)
		var v verdict
		switch it.caller, v = f.edge.admit(&it.in, src, s); {
		case v == keyWrong && it.in.msg.IsRequest():
			m := wrongKey(&it.in.msg, false)
			it.answer = &m
		case v != admitted:
			return nil, v, nil
		}
	}
	return items, admitted, nil
}

func invalidRequest(reason string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "Invalid request: " + reason}
}

func inFlight(id jsonrpc.ID) *jsonrpc.Error {
	return invalidRequest("the id " + id.Text() + " is in flight already")
}

// batch collects the responses to the requests of a batch: one array, when the last of them is done.
type batch struct {
	out  outlet
	lane lane

	mu    sync.Mutex
	parts [][]byte
	left  int
}

// slot is the outlet of one request of a batch. What is not its response goes out at once.
type slot struct {
	batch  *batch
	index  int
	mu     sync.Mutex
	closed bool
}

func (p *slot) send(l *lane, m message, last bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if !last {
		return p.batch.out.send(l, m, false)
	}
	p.closed = true
	p.batch.set(p.index, m)
	return true
}

func (p *slot) open() bool { return p.batch.out.open() }

func (p *slot) favour()                            { p.batch.out.favour() }
func (p *slot) quiet(now, heartbeat time.Duration) { p.batch.out.quiet(now, heartbeat) }
func (p *slot) lost() <-chan struct{}              { return p.batch.out.lost() }

func (b *batch) set(i int, m message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parts[i] = m.append(nil)
}

// leave counts one request less. The last one sends the array, unless nothing is in it.
func (b *batch) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left--; b.left > 0 {
		return
	}
	array := []byte{'['}
	for _, part := range b.parts {
		if part == nil {
			continue
		}
		if len(array) > 1 {
			array = append(array, ',')
		}
		array = append(array, part...)
	}
	if len(array) > 1 {
		b.out.send(&b.lane, message{keep: true, body: append(array, ']')}, true)
	}
}

// serveBatch serves a batch in the order it stands in. It returns whether there will be an answer, and a
// function that waits for it.
func (f *surface) serveBatch(src source, s *session, items []item, out outlet) (answers bool, wait func()) {
	e := f.edge
	b := &batch{out: out, parts: make([][]byte, len(items)), left: 1}
	var served sync.WaitGroup
	for i := range items {
		it := &items[i]
		src.caller = it.caller
		switch {
		case it.answer != nil:
			b.set(i, *it.answer)
			answers = true
			continue
		case s != nil && !s.claim(it.caller):
			if it.in.msg.IsRequest() {
				b.set(i, message{form: failure, id: it.in.msg.ID, body: invalidRequest("the session belongs to another key").Encode()})
				answers = true
			}
			continue
		case !it.in.msg.IsRequest():
			_ = f.takeOne(src, s, &it.in) // notifications in a batch have no answer of their own
			continue
		}
		answers = true
		x := &Exchange{}
		ctx := f.fill(x, src, s, &it.in)
		x.out = &slot{batch: b, index: i}
		if err := e.track(x); err != nil {
			x.abort(nil)
			b.set(i, message{form: failure, id: it.in.msg.ID, body: wireError(err).Encode()})
			continue
		}
		b.mu.Lock()
		b.left++
		b.mu.Unlock()
		served.Add(1)
		e.work.Go(func() {
			defer served.Done()
			defer b.leave()
			e.request(ctx, f.handler, x)
			e.untrack(x)
		})
	}
	b.leave()
	return answers, served.Wait
}

// wireError is what track's errors look like in a response.
func wireError(err error) *jsonrpc.Error {
	var wire *jsonrpc.Error
	if errors.As(err, &wire) {
		return wire
	}
	return ownError(false, "The request was not served: "+err.Error(), "unavailable", false)
}

// batch serves a batch over streamable HTTP.
func (t *streamable) batch(w http.ResponseWriter, r *http.Request, caller auth.Caller, body []byte) {
	e := t.edge
	version := headerVersion(r.Header)
	if version == "" {
		version = versionBatch
	} else if version != versionModern && !knownHandshake(version) {
		e.writeError(w, http.StatusBadRequest, "", unsupported(version, true))
		return
	}
	id := sessionID(r.Header)
	var s *session
	if id != "" {
		if s = t.session(id); s != nil {
			version, _ = s.agreed()
		}
	}
	src := httpSource(r, caller)
	items, v, err := t.splitBatch(src, s, version, body)
	switch {
	case err != nil:
		e.writeError(w, http.StatusBadRequest, "", err)
		return
	case v != admitted:
		e.unauthorized(w, "", v == keyWrong)
		return
	case id != "" && (s == nil || !s.claim(caller)):
		e.notFound(w, "")
		return
	}
	e.busy.Add(1) // until the answer is written
	defer e.done()
	a := &answer{}
	a.begin(e, w, r, false)
	answers, wait := t.serveBatch(src, s, items, a)
	if !answers {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	wait()
	a.finish()
}

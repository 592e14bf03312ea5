package edge

import (
	"bytes"
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// trip is the outlet of a request of the modern era whose client can be asked (MCP 2026-07-28, multi round-trip
// requests). A question ends the request with an input_required result while its handler waits; the client's retry
// with the answers takes its place. Each of them is a leg of the trip.
type trip struct {
	x       *Exchange
	ctx     context.Context // of the handler
	surface *surface
	token   []byte          // of the first leg's progress, raw; nil = none
	deaf    <-chan struct{} // closed when the client can come back no more; nil = never

	mu        sync.Mutex
	leg       *leg          // who waits for an answer; nil while the client is away
	came      chan struct{} // closed when the client comes back
	state     string        // what it comes back with
	over      bool          // whoever comes back now is too late
	asked     uint64
	questions []*question // that are not answered
}

// leg is one request of a trip.
type leg struct {
	id    jsonrpc.ID
	token []byte // of its progress, raw; nil = none
	out   output.Outlet
	lane  output.Lane
	done  chan struct{} // closed when it is answered, or never will be
}

// question is one request to the client.
type question struct {
	key, method string
	params      []byte
	reply       chan jsonrpc.Message
}

const (
	stateMark = "nexus-"         // how the requestState of our trips begins; others are the servers'
	maxAway   = 10 * time.Minute // that a client may take to come back
)

func newLeg(in *inbound.Message, out output.Outlet) *leg {
	return &leg{id: in.ID, token: in.ProgressToken, out: out, done: make(chan struct{})}
}

// answer sends the last message of a leg.
func (l *leg) answer(m output.Message) bool {
	defer close(l.done)
	return l.out.Send(&l.lane, m, true)
}

// travel makes the exchange, whose context is ctx, a trip that begins with first.
func (f *surface) travel(ctx context.Context, x *Exchange, first *leg) *trip {
	t := &trip{x: x, ctx: ctx, surface: f, token: first.token, leg: first}
	if x.session != nil {
		t.deaf = x.session.deaf
	}
	x.trip, x.out = t, t
	return t
}

// Send implements outlet.
func (t *trip) Send(_ *output.Lane, m output.Message, last bool) bool {
	t.mu.Lock()
	l := t.leg
	if last {
		t.leg = nil
	}
	t.mu.Unlock()
	switch {
	case l == nil:
		return false
	case last:
		return l.answer(m)
	}
	m, ok := t.retoken(l, m)
	return ok && l.out.Send(&l.lane, m, false)
}

// retoken puts the token of a later leg into a notification of progress; a leg without one gets none.
func (t *trip) retoken(l *leg, m output.Message) (output.Message, bool) {
	if bytes.Equal(l.token, t.token) || jsonrpc.Text(jsonrpc.Get(m.Body, "method")) != "notifications/progress" {
		return m, true
	}
	token := jsonrpc.Get(m.Body, "params", "progressToken")
	if l.token == nil || token == nil {
		return m, false
	}
	m.Body = jsonrpc.Splice(m.Body, jsonrpc.Edit{Span: jsonrpc.At(m.Body, token), With: l.token})
	return m, true
}

func (t *trip) present() *leg {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.leg
}

func (t *trip) Open() bool {
	l := t.present()
	return l != nil && l.out.Open()
}

func (t *trip) PreferStream() {
	if l := t.present(); l != nil {
		l.out.PreferStream()
	}
}

func (t *trip) KeepAlive(now, heartbeat time.Duration) {
	if l := t.present(); l != nil {
		l.out.KeepAlive(now, heartbeat)
	}
}

func (t *trip) Lost() <-chan struct{} { return t.ctx.Done() }

// back waits until the client is there and returns the id of its request. It is false if the client does not come
// in time; from then on it is refused.
func (t *trip) back() (jsonrpc.ID, bool) {
	patience := time.NewTimer(maxAway)
	defer patience.Stop()
	for waited := false; ; {
		t.mu.Lock()
		l, came := t.leg, t.came
		t.over = l == nil && waited
		t.mu.Unlock()
		switch {
		case l != nil:
			return l.id, true
		case waited:
			return "", false
		}
		select {
		case <-came:
			continue
		case <-t.ctx.Done():
		case <-t.deaf:
		case <-patience.C:
		}
		waited = true
	}
}

// ask puts a question to the client and waits for the answer. The errors are those of Exchange.Request.
func (t *trip) ask(ctx context.Context, method string, params []byte) (jsonrpc.Message, error) {
	if ctx.Err() != nil {
		return jsonrpc.Message{}, context.Cause(ctx)
	}
	if !t.x.Client.Supports(method) {
		return jsonrpc.Message{}, ErrNoClient
	}
	q := &question{method: method, params: params, reply: make(chan jsonrpc.Message, 1)}
	t.mu.Lock()
	if t.x.state.Load() != live || t.x.edge.stopping.Load() {
		t.mu.Unlock()
		return jsonrpc.Message{}, ErrClientGone
	}
	t.asked++
	q.key = "q" + strconv.FormatUint(t.asked, 10)
	t.questions = append(t.questions, q)
	send := t.putLocked()
	t.mu.Unlock()
	send()
	defer t.drop(q)
	patience := time.NewTimer(maxAway)
	defer patience.Stop()
	select {
	case m := <-q.reply:
		return m, nil
	case <-t.deaf:
		return jsonrpc.Message{}, ErrClientGone
	case <-patience.C:
		return jsonrpc.Message{}, ErrClientGone
	case <-ctx.Done():
		return jsonrpc.Message{}, context.Cause(ctx)
	}
}

// drop forgets a question.
func (t *trip) drop(q *question) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.questions = slices.DeleteFunc(t.questions, func(other *question) bool { return other == q })
}

// putLocked ends the present leg with all questions, if there are any, and returns what is left to do without the lock.
func (t *trip) putLocked() (send func()) {
	l := t.leg
	if l == nil || len(t.questions) == 0 {
		return func() {}
	}
	t.leg, t.came = nil, make(chan struct{})
	t.state = stateMark + rand.Text()
	t.x.edge.trips.Store(t.state, t)
	body := []byte(`{"resultType":"input_required","inputRequests":{`)
	for i, q := range t.questions {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(append(append(body, jsonrpc.StringID(q.key)...), `:{"method":`...), jsonrpc.StringID(q.method)...)
		if q.params != nil {
			body = append(append(body, `,"params":`...), q.params...)
		}
		body = append(body, '}')
	}
	body = append(append(append(body, `},"requestState":`...), jsonrpc.StringID(t.state)...), '}')
	return func() {
		m := output.Result(l.id, body)
		m.Payer = t.x.Caller.ID
		t.x.edge.trace("Message sent", t.x.session, m)
		t.x.scope.settle(t.x)
		l.answer(m)
		if t.x.edge.stopping.Load() {
			t.x.abort(ErrStopped) // Stop may have looked before
		}
	}
}

// stopTrips ends the requests whose clients are away: nobody waits for them.
func (e *Edge) stopTrips() {
	e.trips.Range(func(_, v any) bool {
		if t := v.(*trip); t.present() == nil {
			t.x.abort(ErrStopped)
		}
		return true
	})
}

// goOn takes the client's answers; what it has not answered it is asked again. It is false if the client comes too
// late.
func (t *trip) goOn(l *leg, answers []byte) bool {
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return false
	}
	t.leg = l
	close(t.came)
	t.questions = slices.DeleteFunc(t.questions, func(q *question) bool {
		answer := jsonrpc.Get(answers, q.key)
		switch {
		case answer == nil:
			return false
		case inbound.Object(answer) != nil:
			q.reply <- jsonrpc.Message{Result: answer}
		default:
			refusal := jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the answer is no object"}
			q.reply <- jsonrpc.Message{Err: refusal.Encode()}
		}
		return true
	})
	send := t.putLocked()
	t.mu.Unlock()
	send()
	return true
}

// end ends the trip: its handler has returned.
func (t *trip) end() {
	t.mu.Lock()
	l := t.leg
	t.leg, t.over = nil, true
	t.x.edge.trips.Delete(t.state)
	t.mu.Unlock()
	if l != nil {
		close(l.done)
	}
}

// returning finds the trip that a request goes on with; nil if it is a request like others. What a client brings
// back is good once, for the same request of the same caller.
func (f *surface) returning(caller auth.Caller, in *inbound.Message) (*trip, *jsonrpc.Error) {
	state := jsonrpc.Text(jsonrpc.Get(in.Params, "requestState"))
	if in.Version == nil || !strings.HasPrefix(state, stateMark) {
		return nil, nil
	}
	found, _ := f.edge.trips.Load(state)
	t, _ := found.(*trip)
	same := func(member string) bool {
		return bytes.Equal(jsonrpc.Get(t.x.Message.Params, member), jsonrpc.Get(in.Params, member))
	}
	if t == nil || t.surface != f || t.x.Caller.ID != caller.ID || t.x.Message.Method != in.Method || !same("name") || !same("uri") ||
		!f.edge.trips.CompareAndDelete(state, t) {
		return nil, staleState()
	}
	return t, nil
}

func staleState() *jsonrpc.Error {
	return inbound.InvalidParams("unknown or expired requestState; call again without it")
}

// travelled serves a request of the modern era that is a leg of a trip. It is false if it is none.
func (t *streamable) travelled(w http.ResponseWriter, r *http.Request, src source, in *inbound.Message) bool {
	e := t.edge
	way, err := t.returning(src.caller, in)
	switch {
	case err != nil:
		e.writeError(w, http.StatusBadRequest, in.ID, err)
		return true
	case way == nil && !in.TakesRequests():
		return false
	}
	e.busy.Add(1) // until the answer is written
	defer e.done()
	a := &output.Response{}
	a.Begin(&e.out, w, r, inbound.HTTPStatus)
	l := newLeg(in, a)
	switch {
	case way == nil:
	case way.goOn(l, jsonrpc.Get(in.Params, "inputResponses")):
		way.ride(r, l, a)
		return true
	default:
		e.writeError(w, http.StatusBadRequest, in.ID, staleState())
		return true
	}
	x := &Exchange{}
	src.ctx = context.WithoutCancel(src.ctx) // the handler outlives the legs
	ctx := t.fill(x, src, nil, in)
	way = t.travel(ctx, x, l)
	if err := e.track(x); err != nil {
		e.refuse(w, x, err)
		return true
	}
	e.spawn("serving a request", func() {
		defer e.untrack(x)
		e.request(ctx, t.handler, x)
	})
	way.ride(r, l, a)
	return true
}

// ride waits for the end of a leg and writes its answer. A client that hangs up has cancelled the request.
func (t *trip) ride(r *http.Request, l *leg, a *output.Response) {
	select {
	case <-l.done:
	case <-r.Context().Done():
		t.x.abort(context.Canceled)
		<-l.done
	}
	a.Finish()
}

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

// mrtr is a multi round-trip request (MCP 2026-07-28) and its Sender. A request to the client ends the current round
// trip with an input_required result while the handler waits. The client retries with its input, which starts the
// next round trip.
type mrtr struct {
	x        *Exchange
	ctx      context.Context // of the handler
	endpoint *endpoint
	token    []byte          // progress token of the first round trip, raw; nil = none
	closing  <-chan struct{} // closed when the client can no longer retry; nil = never

	mu       sync.Mutex
	round    *roundTrip    // the current one; nil while the client collects input
	retried  chan struct{} // closed when the next round trip begins
	state    string        // requestState of the next round trip
	over     bool          // no further round trip is accepted
	requests uint64        // to the client so far
	pending  []*inputRequest
	arrived  chan struct{} // capacity 1: signalled by requests while others are collected; nil = none is
	since    time.Time     // when the last round trip ended, or a task began to wait for input
}

// roundTrip is one HTTP or stdio request of an mrtr.
type roundTrip struct {
	id     jsonrpc.ID
	token  []byte // progress token, raw; nil = none
	sender output.Sender
	conn   <-chan struct{} // closed when its connection ends; nil on stdio
	done   chan struct{}   // closed when it is answered or abandoned
}

// inputRequest is a request to the client that waits for its response.
type inputRequest struct {
	key, method string
	params      []byte
	response    chan jsonrpc.Message
}

const (
	statePrefix  = "nexus-"         // marks requestState values of this package; others belong to servers
	retryTimeout = 10 * time.Minute // for the client to start the next round trip

	quietTime   = 10 * time.Millisecond  // without a request to the client, after which its round trip ends
	collectTime = 100 * time.Millisecond // the longest time in which requests are collected
)

func newRoundTrip(in *inbound.Message, sender output.Sender, conn <-chan struct{}) *roundTrip {
	return &roundTrip{id: in.ID, token: in.ProgressToken, sender: sender, conn: conn, done: make(chan struct{})}
}

// finish sends the last message of a round trip.
func (r *roundTrip) finish(m output.Message) bool {
	defer close(r.done)
	return r.sender.Send(m, true)
}

// newMRTR turns x, whose context is ctx, into a multi round-trip request.
func (ep *endpoint) newMRTR(ctx context.Context, x *Exchange, first *roundTrip) *mrtr {
	t := &mrtr{x: x, ctx: ctx, endpoint: ep, token: first.token, round: first}
	if x.session != nil {
		t.closing = x.session.life.closing
	}
	x.reply.mrtr, x.reply.sender = t, t
	return t
}

// Send implements output.Sender.
func (t *mrtr) Send(m output.Message, last bool) bool {
	if task := t.x.reply.task; task != nil {
		if last {
			task.keep(m)
		}
		return last // a task has no notifications of its request
	}
	t.mu.Lock()
	r := t.round
	if last {
		t.round = nil
	}
	t.mu.Unlock()
	switch {
	case r == nil:
		return false
	case last:
		return r.finish(m)
	}
	m, ok := t.withToken(r, m)
	return ok && r.sender.Send(m, false)
}

// withToken puts the token of a later round trip into a progress notification. It reports false if that round trip
// has no token.
func (t *mrtr) withToken(r *roundTrip, m output.Message) (output.Message, bool) {
	if bytes.Equal(r.token, t.token) || jsonrpc.Text(jsonrpc.Get(m.Body, "method")) != "notifications/progress" {
		return m, true
	}
	token := jsonrpc.Get(m.Body, "params", "progressToken")
	if r.token == nil || token == nil {
		return m, false
	}
	m.Body = jsonrpc.Splice(m.Body, jsonrpc.Edit{Span: jsonrpc.At(m.Body, token), With: r.token})
	return m, true
}

func (t *mrtr) current() *roundTrip {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.round
}

// Open implements output.Sender.
func (t *mrtr) Open() bool {
	r := t.current()
	return r != nil && r.sender.Open()
}

// PreferStream implements output.Sender.
func (t *mrtr) PreferStream() {
	if r := t.current(); r != nil {
		r.sender.PreferStream()
	}
}

// Lost implements output.Sender.
func (t *mrtr) Lost() <-chan struct{} { return t.ctx.Done() }

// awaitRoundTrip waits for a current round trip and returns its id. It reports false if the client does not retry in
// time; then no further round trip is accepted.
func (t *mrtr) awaitRoundTrip() (jsonrpc.ID, bool) {
	for waited := false; ; {
		t.mu.Lock()
		r, retried := t.round, t.retried
		t.over = r == nil && waited
		t.mu.Unlock()
		switch {
		case r != nil:
			return r.id, true
		case waited:
			return "", false
		}
		_, err := awaitClient(t.ctx, t, retried)
		waited = err != nil // a retry at the last moment counts, too
	}
}

// awaitClient waits until the client has answered, which closes or fills answered. The error is ErrClientGone if it can
// no longer answer, or the cause of ctx.
func awaitClient[T any](ctx context.Context, t *mrtr, answered <-chan T) (answer T, err error) {
	timeout := time.NewTimer(retryTimeout)
	defer timeout.Stop()
	select {
	case answer = <-answered:
	case <-t.closing:
		err = ErrClientGone
	case <-timeout.C:
		err = ErrClientGone
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return answer, err
}

// request sends a request to the client and waits for the response. The errors are those of Exchange.Request.
func (t *mrtr) request(ctx context.Context, method string, params []byte) (jsonrpc.Message, error) {
	if ctx.Err() != nil {
		return jsonrpc.Message{}, context.Cause(ctx)
	}
	if !t.x.Client.Supports(method, params) {
		return jsonrpc.Message{}, ErrNoClient
	}
	if method == "elicitation/create" {
		params = jsonrpc.Remove(params, "elicitationId") // which that version lacks
	}
	q := &inputRequest{method: method, params: params, response: make(chan jsonrpc.Message, 1)}
	t.mu.Lock()
	if t.x.reply.state.Load() != live || t.x.edge.life.stopping.Load() {
		t.mu.Unlock()
		return jsonrpc.Message{}, ErrClientGone
	}
	t.requests++
	q.key = "q" + strconv.FormatUint(t.requests, 10)
	t.pending = append(t.pending, q)
	task := t.x.reply.task
	first := t.arrived == nil && task == nil
	switch {
	case first:
		t.arrived = make(chan struct{}, 1)
	case len(t.pending) == 1:
		t.since = time.Now()
	}
	arrived := t.arrived
	t.mu.Unlock()
	defer t.drop(q)
	switch {
	case task != nil:
		task.touch()
	case first:
		t.collect(ctx, q)
	default:
		select {
		case arrived <- struct{}{}:
		default: // already signalled
		}
	}
	return awaitClient(ctx, t, q.response)
}

// collect waits for the requests that a server sends at nearly the same time as the first one, and ends the round trip
// with all of them.
func (t *mrtr) collect(ctx context.Context, first *inputRequest) {
	quiet, limit := time.NewTimer(quietTime), time.NewTimer(collectTime)
	defer quiet.Stop()
	defer limit.Stop()
	for waits := true; waits; {
		select {
		case <-t.arrived:
			quiet.Reset(quietTime)
			continue
		case <-quiet.C:
		case <-limit.C:
		case <-ctx.Done():
			t.drop(first)
		}
		waits = false
	}
	t.mu.Lock()
	t.arrived = nil
	send := t.endRoundTripLocked()
	t.mu.Unlock()
	send()
}

// drop removes a pending request.
func (t *mrtr) drop(q *inputRequest) {
	t.mu.Lock()
	t.pending = slices.DeleteFunc(t.pending, func(other *inputRequest) bool { return other == q })
	t.mu.Unlock()
	if task := t.x.reply.task; task != nil {
		task.touch()
	}
}

// endRoundTripLocked ends the current round trip if requests are pending. The caller calls send, which sends the
// result, after unlocking.
func (t *mrtr) endRoundTripLocked() (send func()) {
	r := t.round
	if r == nil || len(t.pending) == 0 {
		return func() {}
	}
	t.round, t.retried, t.since = nil, make(chan struct{}), time.Now()
	homes := &t.x.edge.sessions.homes
	t.state = statePrefix + homes.prefix(homes.directory.Self()) + rand.Text()
	t.x.edge.mrtrs.byState.Store(t.state, t)
	body := t.inputRequired()
	return func() {
		m := output.Result(r.id, body)
		m.Payer = t.x.Caller.ID
		logSent(t.x.edge.log, t.x.session, m)
		t.x.entry.table.freeID(t.x)
		r.finish(m)
		if t.x.edge.life.stopping.Load() {
			t.x.abort(ErrStopped) // Stop may have looked before
		}
	}
}

// yield tells that a server cannot ask another client while the request waits for its client.
func (t *mrtr) yield(server string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.round == nil && !t.over && (t.x.reply.task == nil || len(t.pending) > 0) {
		t.x.edge.mrtrs.turns.yield(t, server, t.since)
	}
}

// inputRequired returns the result that asks the client for the pending input. The caller holds t.mu.
func (t *mrtr) inputRequired() []byte {
	body := append([]byte(`{"resultType":"input_required","inputRequests":`), inputRequests(t.pending)...)
	return append(append(append(body, `,"requestState":`...), jsonrpc.StringID(t.state)...), '}')
}

// waiting returns the raw requests that wait for input; nil if there are none.
func (t *mrtr) waiting() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.pending) == 0 {
		return nil
	}
	return inputRequests(t.pending)
}

// inputRequests returns the raw requests by their keys.
func inputRequests(pending []*inputRequest) []byte {
	body := []byte{'{'}
	for i, q := range pending {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(append(append(body, jsonrpc.StringID(q.key)...), `:{"method":`...), jsonrpc.StringID(q.method)...)
		if q.params != nil {
			body = append(append(body, `,"params":`...), q.params...)
		}
		body = append(body, '}')
	}
	return append(body, '}')
}

// mrtrTable holds the multi round-trip requests that wait for a retry, and the tasks.
type mrtrTable struct {
	byState sync.Map // *mrtr by the requestState of its next round trip
	turns   turns
	tasks   taskTable
}

// stop ends all of them with a cause, because their clients can no longer retry.
func (m *mrtrTable) stop(cause error) {
	m.byState.Range(func(_, v any) bool {
		if t := v.(*mrtr); t.current() == nil {
			t.x.abort(cause)
		}
		return true
	})
	m.tasks.stop(nil, cause)
}

// resume starts the next round trip with the client's input. Requests without a response are sent again. It reports
// false if the client retried too late.
func (t *mrtr) resume(r *roundTrip, responses []byte) bool {
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return false
	}
	t.round = r
	close(t.retried)
	t.answerLocked(responses)
	send := t.endRoundTripLocked()
	t.mu.Unlock()
	send()
	return true
}

// answer passes the client's responses on to the requests with their keys. Others are ignored.
func (t *mrtr) answer(responses []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answerLocked(responses)
}

func (t *mrtr) answerLocked(responses []byte) {
	t.pending = slices.DeleteFunc(t.pending, func(q *inputRequest) bool {
		response := jsonrpc.Get(responses, q.key)
		switch {
		case response == nil:
			return false
		case inbound.Object(response) != nil:
			q.response <- jsonrpc.Message{Result: response}
		default:
			refusal := jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the response is not an object"}
			q.response <- jsonrpc.Message{Err: refusal.Encode()}
		}
		return true
	})
	if len(t.pending) == 0 {
		t.x.edge.mrtrs.turns.withdraw(t)
	}
}

// end ends the request after its handler has returned.
func (t *mrtr) end() {
	t.mu.Lock()
	r := t.round
	t.round, t.over = nil, true
	t.x.edge.mrtrs.turns.withdraw(t)
	t.x.edge.mrtrs.byState.Delete(t.state)
	t.mu.Unlock()
	if r != nil {
		close(r.done)
	}
	if task := t.x.reply.task; task != nil {
		task.ended()
	}
}

// ErrNoRoundTrip answers a requestState that continues no request of the caller.
var ErrNoRoundTrip = inbound.InvalidParams("unknown or expired requestState, which is valid for 10 minutes, or for 1 " +
	"minute while another client waits to be asked by the server; call again without it")

// isRetry reports whether a request continues a multi round-trip request of the edge.
func isRetry(in *inbound.Message) bool {
	return in.Version != nil && in.Names.Has(jsonrpc.NameRequestState) &&
		strings.HasPrefix(jsonrpc.Text(jsonrpc.Get(in.Params, "requestState")), statePrefix)
}

// retry starts the next round trip of the request that in continues. A requestState is valid once, for the same
// request of the same caller.
func (ep *endpoint) retry(
	caller auth.Caller, in *inbound.Message, sender output.Sender, conn <-chan struct{},
) (*mrtr, *roundTrip, *jsonrpc.Error) {
	state := jsonrpc.Text(jsonrpc.Get(in.Params, "requestState"))
	found, _ := ep.edge.mrtrs.byState.Load(state)
	t, _ := found.(*mrtr)
	if t == nil || t.endpoint != ep || !caller.Owns(t.x.Caller) || !sameRequest(&t.x.Message, &in.Message) ||
		!ep.edge.mrtrs.byState.CompareAndDelete(state, t) {
		return nil, nil, ErrNoRoundTrip
	}
	table := t.x.entry.table
	if !table.rename(t.x, in.ID) {
		return nil, nil, inFlightError(in.ID)
	}
	r := newRoundTrip(in, sender, conn)
	if !t.resume(r, jsonrpc.Get(in.Params, "inputResponses")) {
		table.freeID(t.x)
		return nil, nil, ErrNoRoundTrip
	}
	return t, r, nil
}

// sameRequest reports whether two requests have the same method and name.
func sameRequest(a, b *jsonrpc.Message) bool {
	same := func(member string) bool {
		return bytes.Equal(jsonrpc.Get(a.Params, member), jsonrpc.Get(b.Params, member))
	}
	return a.Method == b.Method && same("name") && same("uri")
}

// retryHTTP serves a retry.
func (t *streamable) retryHTTP(w http.ResponseWriter, r *http.Request, src source, in *inbound.Message) {
	e := t.edge
	e.life.busy.begin() // until the response is written
	defer e.life.busy.end()
	resp := &output.Response{}
	resp.Begin(&e.out, w, r, inbound.HTTPStatus, nil)
	m, round, err := t.retry(src.caller, in, resp, r.Context().Done())
	if err != nil {
		resp.Discard()
		t.reply.error(w, http.StatusBadRequest, in.ID, err)
		return
	}
	m.writeRoundTrip(r, round, resp)
}

// firstRoundTrip serves a request whose client answers requests. Its handler outlives its round trips.
func (t *streamable) firstRoundTrip(w http.ResponseWriter, r *http.Request, src source, in *inbound.Message) {
	e := t.edge
	e.life.busy.begin() // until the response is written
	defer e.life.busy.end()
	resp := &output.Response{}
	resp.Begin(&e.out, w, r, inbound.HTTPStatus, nil)
	round := newRoundTrip(in, resp, r.Context().Done())
	x := &Exchange{}
	src.ctx = context.WithoutCancel(src.ctx)
	ctx := t.fill(x, src, nil, in)
	m := t.newMRTR(ctx, x, round)
	if err := e.track(x); err != nil {
		resp.Discard()
		t.reply.refused(w, x, err)
		return
	}
	e.life.spawn("serving a request", func() {
		defer e.untrack(x)
		t.serveRequest(ctx, x)
	})
	m.writeRoundTrip(r, round, resp)
}

// writeRoundTrip waits for the end of a round trip and writes its response. A client that hangs up cancels the request.
func (t *mrtr) writeRoundTrip(r *http.Request, round *roundTrip, resp *output.Response) {
	select {
	case <-round.done:
	case <-r.Context().Done():
		t.x.reply.hungUp.Store(true)
		t.x.abort(context.Canceled)
		<-round.done
	}
	resp.Finish()
}

package edge

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/cluster"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// hop passes requests on to other replicas.
type hop struct {
	replies
	isLate bool // nothing is served here any more: the HTTP server alone limits how long a message takes
}

// lateTime is how long a request may take that is passed on when all others have ended. Stop waits longer.
const lateTime = stopGrace / 2

// forward passes a request on to another replica as it came. It reports false if that is not the home, or no longer;
// then nothing is written. A request whose replica cannot be reached is answered.
func (a hop) forward(w http.ResponseWriter, r *http.Request, caller auth.Caller, to cluster.Place, body []byte) bool {
	err := a.pass(w, r, caller, to, body)
	if errors.Is(err, cluster.ErrUnavailable) {
		a.homeUnavailable(w, idOf(body), versionOf(body), err)
		return true
	}
	return err == nil
}

// pass is like forward. With an error nothing is written, and another replica may be tried.
func (a hop) pass(w http.ResponseWriter, r *http.Request, caller auth.Caller, to cluster.Place, body []byte) error {
	e := a.edge
	if a.passedOn(w, r) {
		return nil
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if e.tracer.On() {
		in, _ := inbound.Parse(body) // a batch has no trace context of its own
		within, links := remote(r.Header, &in).Context(ctx, trusted(caller, r.Header))
		var span trace.Span
		ctx, span = e.tracer.Start(within, "forward", trace.WithSpanKind(trace.SpanKindClient), trace.WithLinks(links...))
		defer span.End()
	}
	until, end := e.life.quit, func() { time.AfterFunc(lateTime, cancel) }
	room, size := e.sessions.streams, 0
	switch {
	case r.Method == http.MethodPost:
		room, size = e.budget, len(body)+output.SmallMessage
	case !e.life.stopping.Load():
		until, end = e.life.stopped, cancel // the client goes on with another stream
	}
	if !room.Enter(caller.ID, size) {
		a.tooManyRequests(w, idOf(body), e.noRoom(versionOf(body)))
		return nil
	}
	defer room.Leave(caller.ID, size)
	if !a.isLate || r.Method == http.MethodGet {
		defer context.AfterFunc(until, end)()
	}
	own := maps.Clone(w.Header())
	clear(w.Header()) // the other replica sets them, too
	relay := output.NewRelay(&e.out, w, r, func() []jsonrpc.ID { return requestsIn(body) })
	err := to.Forward(relay, original(ctx, r, body))
	if !relay.Begun() {
		maps.Copy(w.Header(), own)
	}
	switch {
	case err == nil, r.Context().Err() != nil: // nobody reads it
	case relay.Begun():
		if !relay.Complete(func(id jsonrpc.ID) output.Message { return output.Error(id, lost(versionOf(body))) }) {
			panic(http.ErrAbortHandler) // the client sees that the response is incomplete
		}
	case errors.Is(err, cluster.ErrRefused), errors.Is(err, cluster.ErrMoved), errors.Is(err, cluster.ErrUnavailable),
		r.Method != http.MethodPost: // to repeat it does no harm
		return err
	case len(requestsIn(body)) == 0:
		a.homeUnavailable(w, "", versionOf(body), err)
	default:
		a.lost(w, r, caller, body)
	}
	return nil
}

// passedOn answers a request that another replica has passed on: that happens once only. It reports whether it did.
func (a hop) passedOn(w http.ResponseWriter, r *http.Request) bool {
	forwarded := cluster.Forwarded(r.Context())
	if forwarded {
		w.WriteHeader(http.StatusMisdirectedRequest)
	}
	return forwarded
}

// lost answers the requests of a body whose outcome is unknown.
func (a hop) lost(w http.ResponseWriter, r *http.Request, caller auth.Caller, body []byte) {
	version, requests := versionOf(body), requestsIn(body)
	resp := &output.Response{}
	resp.Begin(&a.edge.out, w, r, statusOf(version), nil)
	if jsonrpc.IsBatch(body) {
		b := output.NewBatch(a.edge.budget, caller.ID, resp.Sender, len(requests))
		for i, id := range requests {
			b.Set(i, output.Error(id, lost(version)))
		}
		b.Done()
	} else {
		resp.Send(output.Error(requests[0], lost(version)), true)
	}
	resp.Finish()
}

// lost returns the error for a request whose replica has gone.
func lost(v protocol.Version) *jsonrpc.Error {
	const text = "The replica that served the request has gone; the request may have done its work"
	return routerError(v, text, reason.OutcomeUnknown, false)
}

// homeUnavailable answers a request whose session lives where it cannot be reached now.
func (a replies) homeUnavailable(w http.ResponseWriter, id jsonrpc.ID, v protocol.Version, err error) {
	w.Header()["Retry-After"] = []string{"1"}
	var wire *jsonrpc.Error
	if !errors.As(err, &wire) {
		a.edge.log.Debug("A session cannot be reached", "error", err)
		wire = routerError(v, "The session cannot be reached now", reason.Unavailable, true)
	}
	a.unavailable(w, id, wire)
}

// requestsIn returns the ids of the requests in a body that may be a batch.
func requestsIn(body []byte) (ids []jsonrpc.ID) {
	raws := [][]byte{body}
	if jsonrpc.IsBatch(body) {
		raws, _ = jsonrpc.Batch(body) // the home refuses a bad one
	}
	for _, raw := range raws {
		if m, err := jsonrpc.Parse(raw); err == nil && m.IsRequest() {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// idOf returns the id of the request in a body; empty if there is not one.
func idOf(body []byte) jsonrpc.ID {
	if ids := requestsIn(body); len(ids) == 1 && !jsonrpc.IsBatch(body) {
		return ids[0]
	}
	return ""
}

// versionOf returns the protocol version that the message in a body declares.
func versionOf(body []byte) protocol.Version {
	m, _ := inbound.Parse(body) // a batch has none
	return m.DeclaredVersion()
}

// credentials are the headers of a request that name its caller. The edge removes them when it has read them.
type credentials struct{ authorization, apiKey []string }

type credentialsKey struct{}

// keepCredentials returns r with its credentials, so that the request can be passed on.
func keepCredentials(r *http.Request) *http.Request {
	c := &credentials{r.Header["Authorization"], r.Header["X-Api-Key"]}
	return r.WithContext(context.WithValue(r.Context(), credentialsKey{}, c))
}

// original returns the request as it came, with ctx.
func original(ctx context.Context, r *http.Request, body []byte) *http.Request {
	r = r.WithContext(ctx)
	r.Header = maps.Clone(r.Header)
	if c, ok := ctx.Value(credentialsKey{}).(*credentials); ok {
		for name, values := range map[string][]string{"Authorization": c.authorization, "X-Api-Key": c.apiKey} {
			if values != nil {
				r.Header[name] = values
			}
		}
	}
	if body != nil {
		r.Header.Del("Expect") // the client has been told to go on
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.Body, _ = r.GetBody()
		r.ContentLength, r.TransferEncoding = int64(len(body)), nil
	}
	return r
}

// late passes a request on that came after the lease of this replica, or the edge, has ended. It reports whether the
// request is answered.
func (a hop) late(w http.ResponseWriter, r *http.Request) bool {
	if !a.edge.sessions.directory.Draining() {
		return false
	}
	p := a.edge.access
	identify, body := a.authenticate, []byte(nil)
	if r.Method == http.MethodPost && p.needsKey() && p.keys.Any() { // one may be in _meta
		identify = a.identify
	}
	caller, ok := identify(w, r)
	if ok && r.Method == http.MethodPost {
		body, ok = a.readBody(w, r, caller)
	}
	return !ok || a.toAnother(w, r, caller, body)
}

// toAnother passes a request on to the first other replica that serves it, if this one drains and another has not
// chosen it. It reports whether the request is answered.
func (a hop) toAnother(w http.ResponseWriter, r *http.Request, caller auth.Caller, body []byte) bool {
	d := a.edge.sessions.directory
	if !d.Draining() || cluster.Forwarded(r.Context()) && !a.isLate && d.Acts() == nil {
		return false
	}
	return a.passedOn(w, r) || slices.ContainsFunc(cluster.Others(d), func(to cluster.Place) bool {
		return a.pass(w, r, caller, to, body) == nil
	})
}

// boundElsewhere passes a request on whose name, as begun by prefix, tells another home. What the name denotes ends
// with its home. It reports whether the request is answered; gone means that the home is no more.
func (a hop) boundElsewhere(
	w http.ResponseWriter, r *http.Request, caller auth.Caller, name string, body []byte,
) (answered, gone bool) {
	d := a.edge.sessions.directory
	digits, _, found := strings.Cut(name, "-")
	home, err := strconv.ParseUint(digits, 16, 64)
	if !found || err != nil || home == 0 || home == d.Self() {
		return false, false
	}
	to, err := d.At(home)
	switch {
	case errors.Is(err, cluster.ErrEnded):
		return false, true
	case err != nil:
		a.homeUnavailable(w, idOf(body), versionOf(body), err)
		return true, false
	}
	answered = a.forward(w, r, caller, to, body)
	return answered, !answered
}

// Home names this replica to others, for PassOn. It is empty without others, or if this replica must not act now.
func Home(e *Edge) string {
	if self := e.sessions.directory.Self(); self != 0 {
		return strconv.FormatUint(self, 16)
	}
	return ""
}

// PassOn passes a request of a browser on to a Home, as it came. body is that of a POST. It reports whether the request
// is answered; it is not if the home is this replica or gone.
func PassOn(e *Edge, w http.ResponseWriter, r *http.Request, home string, body []byte) bool {
	id, err := strconv.ParseUint(home, 16, 64)
	if err != nil || id == 0 || id == e.sessions.directory.Self() || cluster.Forwarded(r.Context()) {
		return false
	}
	to, err := e.sessions.directory.At(id)
	if err == nil {
		err = to.Forward(w, original(r.Context(), r, body))
	}
	switch {
	case err == nil, r.Context().Err() != nil:
	case errors.Is(err, cluster.ErrEnded), errors.Is(err, cluster.ErrRefused), errors.Is(err, cluster.ErrMoved):
		return false
	case errors.Is(err, cluster.ErrCut):
		panic(http.ErrAbortHandler) // the browser sees that the page is incomplete
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "The login cannot be reached now. Load this page again.", http.StatusServiceUnavailable)
	}
	return true
}

// elsewhere passes a message without a session on: a retry, or a request about tasks, to the home of its request, and
// others while this replica drains. It reports whether the message is answered. A task whose home is gone is unknown.
func (t *streamable) elsewhere(w http.ResponseWriter, r *http.Request, src source, in *inbound.Message) bool {
	a, retries, handle := hop{replies: t.reply}, isRetry(in), ""
	switch {
	case retries:
		handle = jsonrpc.Text(jsonrpc.Get(in.Params, "requestState"))
	case in.Version != nil && protocol.OfTasks(in.Method):
		handle = jsonrpc.Text(jsonrpc.Get(in.Params, "taskId"))
	case in.Version != nil && in.Method == protocol.MethodListen: // to the home of the first task
		ids := jsonrpc.Elements(jsonrpc.Get(in.Params, "notifications", protocol.MemberTasks))
		if len(ids) > 0 {
			handle = jsonrpc.Text(ids[0])
		}
	}
	name, bound := strings.CutPrefix(handle, statePrefix)
	if !bound {
		return in.IsRequest() && a.toAnother(w, r, src.caller, in.Sent)
	}
	answered, gone := a.boundElsewhere(w, r, src.caller, name, in.Sent)
	if gone && retries {
		a.lost(w, r, src.caller, in.Sent)
		return true
	}
	return answered
}

// elsewhere passes a message of a session that is not open here on to the home of the session.
func (t *sse) elsewhere(w http.ResponseWriter, r *http.Request, caller auth.Caller, id string) {
	if t.edge.sessions.replicated {
		body, ok := t.reply.readBody(w, r, caller)
		if !ok {
			return
		}
		if answered, _ := (hop{replies: t.reply}).boundElsewhere(w, r, caller, id, body); answered {
			return
		}
	}
	t.reply.sessionNotFound(w, "")
}

package proxy_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// TestInterleavings runs random schedules of three clients and three servers, whose ids and tokens collide
// on purpose, against a model: every response, notification and request reaches exactly its owner, once and
// in order. PROXY_SCHEDULES says how many, PROXY_SEED runs one again.
func TestInterleavings(t *testing.T) {
	setting{variables: "PROXY", schedules: 25, kinds: opKinds}.test(t)
}

// TestInterleavings_Replicas is TestInterleavings through three replicas and a balancer that takes another one for each
// request, in time that the tests keep. Replicas hand their sessions over, leave, are killed, start again, and lose the
// store and each other. REPLICAS_SCHEDULES says how many schedules, REPLICAS_SEED runs one again.
func TestInterleavings_Replicas(t *testing.T) {
	setting{variables: "REPLICAS", schedules: 50, kinds: slices.Concat(opKinds, replicaKinds), replicated: true}.test(t)
}

// setting is where schedules run.
type setting struct {
	variables  string // prefix of their names
	schedules  int    // make property runs more
	kinds      []string
	replicated bool
}

func (s setting) test(t *testing.T) {
	schedules := s.schedules
	if n, err := strconv.Atoi(os.Getenv(s.variables + "_SCHEDULES")); err == nil {
		schedules = n
	}
	first := rand.Uint64()
	if seed, err := strconv.ParseUint(os.Getenv(s.variables+"_SEED"), 10, 64); err == nil {
		first, schedules = seed, 1
	}
	var next atomic.Int64
	var failed atomic.Bool
	began := time.Now()
	workers := 2 * runtime.GOMAXPROCS(0) // schedules wait more than they compute
	t.Run("", func(t *testing.T) {
		for range workers {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for !failed.Load() {
					n := next.Add(1) - 1
					if n >= int64(schedules) {
						return
					}
					seed := first + uint64(n)
					ops := s.schedule(seed)
					if problems := s.execute(t, seed, ops); len(problems) > 0 && !failed.Swap(true) {
						t.Errorf("%s_SEED=%d: got a wrong outcome:\n%s\nof the schedule\n%s", s.variables, seed,
							strings.Join(problems, "\n"), write(ops))
					}
				}
			})
		}
	})
	t.Logf("%d schedules from seed %d in %v", min(next.Load(), int64(schedules)), first, time.Since(began).Round(time.Millisecond))
}

// op is one thing that happens. What its numbers choose among is known when it happens.
type op struct {
	kind           string
	client, server int
	pick           int
}

// kinds of ops, the frequent ones several times.
var opKinds = strings.Fields(`call call call call call call progress progress progress progress respond respond respond refuse
	cancel cancel ask ask askall askall answer answer report announce announce relist subscribe subscribe unsubscribe update update
	note note hangup restart leave settle`)

func (s setting) schedule(seed uint64) []op {
	r := rand.New(rand.NewPCG(seed, 0))
	ops := make([]op, 5+r.IntN(25))
	for i := range ops {
		ops[i] = op{s.kinds[r.IntN(len(s.kinds))], r.IntN(3), r.IntN(3), r.IntN(1 << 16)}
	}
	return ops
}

func write(ops []op) string {
	lines := make([]string, len(ops))
	for i, o := range ops {
		lines[i] = fmt.Sprintf("  {%q, %d, %d, %d},", o.kind, o.client, o.server, o.pick)
	}
	return strings.Join(lines, "\n")
}

// verdict is the testing.TB of one schedule: it keeps what went wrong instead of failing the test.
type verdict struct {
	testing.TB
	mu       sync.Mutex
	problems []string
	cleanups []func()
}

func (v *verdict) Helper()                           {}
func (v *verdict) Cleanup(f func())                  { v.cleanups = append(v.cleanups, f) }
func (v *verdict) Fatal(args ...any)                 { v.Fatalf("%s", fmt.Sprint(args...)) }
func (v *verdict) Fatalf(format string, args ...any) { v.Errorf(format, args...); runtime.Goexit() }
func (v *verdict) Errorf(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// execute runs a schedule in a world of its own and returns what went wrong.
func (s setting) execute(t *testing.T, seed uint64, ops []op) []string {
	v := &verdict{}
	run := func(t *testing.T) {
		v.TB = t
		done := make(chan struct{})
		go func() {
			defer close(done)
			m := newModel(v, s.replicated)
			for _, o := range ops {
				m.do(o)
			}
			m.finish()
		}()
		<-done
		for i := len(v.cleanups) - 1; i >= 0; i-- {
			ended := make(chan struct{})
			go func() { defer close(ended); v.cleanups[i]() }()
			<-ended
		}
	}
	if s.replicated {
		hangs := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("%s_SEED=%d: it hangs", s.variables, seed)) })
		defer hangs.Stop()
		synctest.Test(t, run)
	} else {
		run(t)
	}
	return v.problems
}

// model drives a world and knows what has to come of it.
type model struct {
	v       *verdict
	w       *world
	servers [3]*server
	clients [3]*actor
	actors  []*actor // all incarnations

	mu        sync.Mutex
	calls     []*modelCall
	questions []*question
	said      [3][]announcement
	numbers   [3]int  // of announcements so far
	shaky     [3]bool // restarted, and not settled since
	restarts  [3]int
	rs        *replicas // of the router; nil = it is one
}

// actor is a client session.
type actor struct {
	*client
	name  string
	place int
	left  bool
	notes int // sent so far
	lost  int // of these, notes that may be lost

	subscribed map[string]certainty // by server and URI
	moves      int                  // how often its session or its stream may have been lost so far
	shaky      bool                 // such as now
	unwritten  []*replica           // where its end may be known alone
	mayLive    bool                 // though it has left
}

// certainty of the model about a subscription.
type certainty int

const (
	not certainty = iota
	perhaps
	surely
)

// modelCall is a call and all that happened to it. The server's part is guarded by model.mu.
type modelCall struct {
	n      int
	actor  *actor
	server int
	token  string
	answer *answer

	request   *request // at the server
	arrivals  int
	answered  chan struct{}
	response  string // what the server sent
	progress  int
	cancelled bool
	mustEnd   bool // it was cancelled while it waited for its server
	cut       bool // a restart may have ended it
}

// open reports whether the call surely waits at its server.
func (c *modelCall) open() bool {
	return c.request != nil && c.response == "" && !c.cancelled && !c.cut && !c.actor.left
}

// question is a request of a server.
type question struct {
	q         int
	call      *modelCall
	refuse    bool // another client surely has a call in flight on the shared session
	doubt     bool // another client may have
	disturbed bool // what it hangs on may have ended
	answered  bool
	notes     int // of its client before the answer

	at      *actor // who got it
	message jsonrpc.Message
	replies []string // at the server
	reports []string // values of the client's progress
}

type announcement struct {
	to    *actor // whom it is for; nil = whoever is there when it arrives
	k     int
	at    int  // restarts of the server before it
	moves int  // of the client before it
	must  bool // it arrives unless one of these happens
}

const shared = 2 // the server whose session all clients share

func newModel(v *verdict, replicated bool) *model {
	m := &model{v: v}
	for i := range m.servers {
		s := newServer("work")
		s.caps = `{"tools":{"listChanged":true},"resources":{"subscribe":true}}`
		s.on = func(r *request) bool { return m.serve(i, r) }
		m.servers[i] = s
	}
	quiet := func(o *setup) { o.quiet = true }
	if replicated {
		m.w = newReplicated(v, quiet, place{"s0", overPipe, m.servers[0], downstream.SessionPerClient},
			place{"s1", overPipe, m.servers[1], downstream.SessionPerClient}, place{"s2", overPipe, m.servers[2], ""})
		m.rs = m.w.replicas
	} else {
		m.w = newWorld(v, quiet,
			place{"s0", overHTTP, m.servers[0], ""}, place{"s1", overSSE, m.servers[1], ""}, place{"s2", overPipe, m.servers[2], ""})
	}
	for i := range m.clients {
		m.enter(i)
	}
	return m
}

// enter gives a client a new session.
func (m *model) enter(i int) {
	a := &actor{name: fmt.Sprintf("c%d", len(m.actors)), place: i, subscribed: map[string]certainty{}}
	if i == 1 && m.rs == nil {
		a.client = m.w.stdio()
	} else {
		a.client = m.w.newClient(proxyPath)
		a.persists = true
	}
	if i == 1 && m.rs != nil {
		a.version = "2025-06-18" // without resumption
	}
	a.shaky = m.rs != nil && len(m.rs.in(draining, retiring, leaving)) > 0 // it may begin where it does not stay
	a.client.name, a.answers = a.name, m.ask(a)
	a.hello()
	a.listen()
	m.clients[i] = a
	m.actors = append(m.actors, a)
}

// ask notes a question that has reached a client. It is answered later, if at all.
func (m *model) ask(a *actor) func(jsonrpc.Message) string {
	return func(message jsonrpc.Message) string {
		q, err := strconv.Atoi(string(jsonrpc.Get(message.Params, "q")))
		m.mu.Lock()
		defer m.mu.Unlock()
		if err != nil || q >= len(m.questions) || m.questions[q].at != nil {
			m.v.Errorf("client %s: got question %s, want each once", a.name, message.Raw)
			return ""
		}
		m.questions[q].at, m.questions[q].message = a, message
		return ""
	}
}

// serve parks a call until it is answered or ends.
func (m *model) serve(i int, r *request) bool {
	if r.Method != "tools/call" {
		r.peer.subscribe(r)
		return false
	}
	n, _ := strconv.Atoi(string(jsonrpc.Get(r.Params, "arguments", "n")))
	m.mu.Lock()
	c := m.calls[n]
	if c.arrivals++; c.arrivals > 1 || c.server != i || i != shared && r.peer.clientName() != c.actor.name {
		m.v.Errorf("call %d of %s to server %d: got it %d times, now at server %d in the session of %s", n, c.actor.name, c.server, c.arrivals, i, r.peer.clientName())
	}
	c.request = r
	m.mu.Unlock()
	select {
	case <-c.answered:
	case <-r.ctx.Done():
	}
	return true
}

// pickCall chooses among the calls that fit.
func (m *model) pickCall(o op, fits func(*modelCall) bool) *modelCall {
	var fit []*modelCall
	for _, c := range m.calls {
		if fits(c) {
			fit = append(fit, c)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return fit[o.pick%len(fit)]
}

func (m *model) do(o op) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch o.kind {
	case "call":
		m.call(o)
	case "progress":
		if c := m.pickCall(o, (*modelCall).open); c != nil {
			m.progress(c)
		}
	case "respond", "refuse":
		if c := m.pickCall(o, func(c *modelCall) bool { return c.request != nil && c.response == "" }); c != nil {
			m.respond(c, o.kind == "refuse")
		}
	case "cancel":
		if c := m.pickCall(o, func(c *modelCall) bool { return !c.cancelled && !c.actor.left && !c.done() }); c != nil {
			m.cancel(c)
		}
	case "ask":
		if c := m.pickCall(o, m.mayAsk); c != nil {
			m.question(c)
		}
	case "askall": // so that clients have questions with equal ids
		for _, a := range m.clients {
			if c := m.pickCall(o, func(c *modelCall) bool { return c.actor == a && m.mayAsk(c) }); c != nil {
				m.question(c)
			}
		}
	case "answer":
		if q := m.pickQuestion(o); q != nil {
			m.answer(q)
		}
	case "report":
		if q := m.pickQuestion(o); q != nil && !q.disturbed && q.call.open() {
			m.report(q)
		}
	case "announce":
		m.announce(o.server, "notifications/announce", "")
	case "relist":
		m.relist(o.server)
	case "subscribe", "unsubscribe":
		m.subscribe(o)
	case "update":
		m.announce(o.server, "notifications/resources/updated", uri(o))
	case "hangup":
		m.hangUp(o)
	case "note":
		a := m.clients[o.client]
		a.notes++
		params := fmt.Sprintf(`{"client":%q,"k":%d}`, a.name, a.notes)
		m.unlocked(func() { a.notify("notifications/note", params) })
	case "restart":
		m.restart(o.server)
	case "leave":
		m.leave(o.client)
	case "settle":
		m.settle()
	default:
		m.replicate(o)
	}
}

// unlocked runs f while others may go on.
func (m *model) unlocked(f func()) {
	m.mu.Unlock()
	defer m.mu.Lock()
	f()
}

// wait waits until ok, which is called with the lock held.
func (m *model) wait(what string, ok func() bool) {
	m.unlocked(func() {
		mcptest.Eventually(m.v, what, func() bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			return ok()
		})
	})
}

// done reports whether the client has the end of the answer.
func (c *modelCall) done() bool {
	select {
	case <-c.answer.done:
		return true
	default:
		return false
	}
}

// adrift reports whether the client has lost the answer of a call that may go on.
func (c *modelCall) adrift() bool {
	if !c.cut || c.request != nil && c.request.ctx.Err() != nil {
		return false
	}
	c.actor.mu.Lock()
	defer c.actor.mu.Unlock()
	return c.answer.result == "" && (c.answer.err == "" || strings.Contains(c.answer.err, reason.OutcomeUnknown))
}

func (m *model) call(o op) {
	a := m.clients[o.client]
	taken := func(get func(c *modelCall) string, v string) bool {
		return slices.ContainsFunc(m.calls, func(c *modelCall) bool {
			return c.actor == a && get(c) == v && (!c.done() && !m.surelyCancelled(c) || c.adrift())
		})
	}
	choose := func(from []string, get func(c *modelCall) string) string {
		for i := range from {
			if v := from[(o.pick+i)%len(from)]; !taken(get, v) {
				return v
			}
		}
		return ""
	}
	id := choose([]string{`1`, `"1"`, `2`, `"2"`, `"a"`}, func(c *modelCall) string { return c.answer.id })
	token := choose([]string{`1`, `"t"`, `"1"`}, func(c *modelCall) string { return c.token })
	if id == "" {
		return
	}
	if o.pick%5 == 0 {
		token = ""
	}
	c := &modelCall{n: len(m.calls), actor: a, server: o.server, token: token, answered: make(chan struct{}), cut: m.shaky[o.server]}
	params := fmt.Sprintf(`{"name":"s%d__work","arguments":{"n":%d}`, o.server, c.n)
	if token != "" {
		params += `,"_meta":{"progressToken":` + token + `}`
	}
	c.answer = &answer{id: id, done: make(chan struct{})}
	m.calls = append(m.calls, c)
	m.unlocked(func() { a.startInto(c.answer, "tools/call", params+"}") })
}

// surelyCancelled tells whether the server has heard of the cancellation; until then its call may still be
// under way, and its id and token taken.
func (m *model) surelyCancelled(c *modelCall) bool {
	return c.cancelled && c.request != nil && m.cancellations(c) > 0
}

func (m *model) progress(c *modelCall) {
	c.progress++
	raw := fmt.Sprintf(`"progress":%d,"message":"n%d"`, c.progress, c.n)
	m.unlocked(func() { c.request.progress(raw) })
}

// answer has the client answer a question.
func (m *model) answer(q *question) {
	q.answered, q.notes = true, q.at.notes
	m.unlocked(func() {
		q.at.send(`{"jsonrpc":"2.0","id":` + string(q.message.ID) + `,"result":{"q":` + fmt.Sprint(q.q) + `}}`)
	})
}

// disturb notes that the calls behind questions may be ending.
func (m *model) disturb(fits func(c *modelCall) bool) {
	for _, q := range m.questions {
		if fits(q.call) {
			q.disturbed = true
		}
	}
}

func (m *model) respond(c *modelCall, refuse bool) {
	m.disturb(func(of *modelCall) bool { return of == c })
	if c.mustEnd && m.cancellations(c) == 0 {
		c.mustEnd = false // now they race
	}
	c.response = fmt.Sprintf(`{"content":[],"n":%d,"server":%d}`, c.n, c.server)
	if refuse {
		c.response = fmt.Sprintf(`{"code":%d,"message":"no","data":{"n":%d}}`, 1000+c.n, c.n)
	}
	m.unlocked(func() {
		if refuse {
			c.request.fail(c.response)
		} else {
			c.request.result(c.response)
		}
	})
	close(c.answered)
}

func (m *model) cancel(c *modelCall) {
	m.disturb(func(of *modelCall) bool { return of == c })
	c.mustEnd = c.open()
	c.cancelled = true
	m.unlocked(func() {
		c.actor.notify("notifications/cancelled", `{"requestId":`+c.answer.id+`,"reason":"n`+fmt.Sprint(c.n)+`"}`)
	})
}

// cancellations is how often the server was told to stop the call.
func (m *model) cancellations(c *modelCall) (n int) {
	for _, p := range m.servers[c.server].got("notifications/cancelled") {
		if strings.Contains(p, fmt.Sprintf(`"reason":"n%d"`, c.n)) && string(jsonrpc.Get([]byte(p), "requestId")) == string(c.request.ID) {
			n++
		}
	}
	return n
}

// mayAsk reports whether a question because of a call reaches its client: it may come with each of the client's calls in
// the same session, also with one whose answer the client has lost.
func (m *model) mayAsk(c *modelCall) bool {
	return c.open() && !slices.ContainsFunc(m.calls, func(of *modelCall) bool { return of.actor == c.actor && of.server == c.server && of.adrift() })
}

func (m *model) question(c *modelCall) {
	m.wait("clients to read their streams again", func() bool { // who does not read one counts as gone
		return c.server != shared || !slices.ContainsFunc(m.calls, func(of *modelCall) bool {
			return of.server == shared && of.open() && !of.actor.reads()
		})
	})
	q := &question{q: len(m.questions), call: c}
	m.questions = append(m.questions, q)
	if c.server == shared {
		for _, other := range m.calls {
			if other.server != shared || other.actor == c.actor {
				continue
			}
			if other.open() && other.request.peer == c.request.peer {
				q.refuse = true
			} else if other.actor.lines != nil && other.cancelled || !other.done() && !other.actor.left || other.adrift() {
				q.doubt = true
			}
		}
	}
	r := c.request
	m.servers[c.server].wg.Go(func() {
		reply := r.ask("sampling/createMessage", fmt.Sprintf(`{"q":%d,"_meta":{"progressToken":1}}`, q.q))
		m.mu.Lock()
		defer m.mu.Unlock()
		q.replies = append(q.replies, string(reply.Result)+string(reply.Err))
		if heard := len(m.notesAt(c.server, c.actor)); reply.Result != nil && heard < q.notes-c.actor.lost && m.restarts[c.server] == 0 {
			m.v.Errorf("the answer to question %d of call %d: got it after %d notifications of %s, want it after %d", q.q, c.n, heard, c.actor.name, q.notes)
		}
	})
	m.wait(fmt.Sprintf("question %d of call %d to reach anybody", q.q, c.n), func() bool { return q.at != nil || len(q.replies) > 0 })
	refused := len(q.replies) > 0
	switch {
	case q.refuse && !refused:
		m.v.Errorf("question %d of call %d: got it at %s, want it refused: several clients have calls in flight", q.q, c.n, q.at.name)
	case refused && !q.refuse && !q.doubt:
		m.v.Errorf("question %d of call %d: got %s, want it at %s", q.q, c.n, q.replies[0], c.actor.name)
	case refused && !strings.Contains(q.replies[0], "-32601"):
		m.v.Errorf("question %d of call %d: got %s, want -32601", q.q, c.n, q.replies[0])
	case !refused && q.at != c.actor:
		m.v.Errorf("question %d of call %d: got it at %s, want it at %s", q.q, c.n, q.at.name, c.actor.name)
	}
}

// reads reports whether a client reads the session's own stream.
func (a *actor) reads() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lines != nil || a.own.reads
}

// pickQuestion chooses among those that a client has and has not answered.
func (m *model) pickQuestion(o op) *question {
	var fit []*question
	for _, q := range m.questions {
		if q.at != nil && !q.answered && !q.at.left && len(q.replies) == 0 {
			fit = append(fit, q)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return fit[o.pick%len(fit)]
}

func (m *model) report(q *question) {
	value := fmt.Sprintf("q%d r%d", q.q, len(q.reports))
	q.reports = append(q.reports, value)
	token := string(jsonrpc.Get(q.message.Params, "_meta", "progressToken"))
	m.unlocked(func() {
		q.at.notify("notifications/progress", `{"progressToken":`+token+`,"progress":1,"message":`+quote(value)+`}`)
	})
	m.wait("the client's progress "+value, func() bool {
		return slices.ContainsFunc(m.servers[q.call.server].got("notifications/progress"), func(p string) bool { return strings.Contains(p, quote(value)) })
	})
}

// announce lets a server send a notification on its sessions; with a URI, on those that are subscribed to it.
func (m *model) announce(i int, method, uri string) {
	k := m.numbers[i]
	m.numbers[i]++
	params := fmt.Sprintf(`"server":%d,"k":%d`, i, k)
	if uri != "" {
		params += `,"uri":` + quote(uri)
	}
	sent, unsent := map[string]int{}, map[string]int{} // by client, if it has its own session
	for _, p := range m.servers[i].all() {
		name := p.clientName()
		if i == shared {
			name = ""
		} else if !slices.ContainsFunc(m.clients[:], func(a *actor) bool { return a.name == name }) {
			continue // the router's own
		}
		switch {
		case uri != "" && !p.subscribed(uri):
		case p.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{%s}}`, method, params)):
			sent[name]++
		default:
			unsent[name]++
		}
	}
	for _, a := range m.clients {
		name, all, is := a.name, 1, a.subscribed[key(i, uri)]
		if i == shared {
			name, all = "", len(m.faces())
		}
		if uri != "" && is == not || uri == "" && sent[name] == 0 {
			continue
		}
		must := !a.shaky && !m.shaky[i] && unsent[name] == 0 && (is == surely || uri == "" && sent[name] >= all)
		m.said[i] = append(m.said[i], announcement{a, k, m.restarts[i], a.moves, must})
	}
	if i == shared && m.shaky[i] && uri == "" {
		m.said[i] = append(m.said[i], announcement{to: nil, k: k})
	}
	for _, s := range m.said[i] {
		if i == shared && s.k == k && s.must {
			// Who comes later is not there any more when it arrives.
			m.wait(fmt.Sprintf("announcement %d of server %d at %s", k, i, s.to.name), func() bool { return slices.Contains(heardOf(s.to, i), k) })
		}
	}
}

// relist lets a server have another tool. Who has heard of it can list it.
func (m *model) relist(i int) {
	k := m.numbers[i]
	tool := fmt.Sprint("t", k)
	m.servers[i].change(func() {
		lists := m.servers[i].lists
		lists["tools/list"] = append(slices.Clone(lists["tools/list"]), `{"name":`+quote(tool)+`,`+object+`}`)
	})
	m.announce(i, "notifications/tools/list_changed", "")
	for _, s := range m.said[i] {
		if s.k != k || !s.must {
			continue
		}
		m.wait(fmt.Sprintf("%s to hear of the tool %s of server %d", s.to.name, tool, i), func() bool { return slices.Contains(heardOf(s.to, i), k) })
		m.unlocked(func() {
			if got := s.to.tools(); !slices.Contains(got, fmt.Sprintf("s%d__%s", i, tool)) {
				m.v.Errorf("%s: got the tools %v after it has heard of %s of server %d", s.to.name, got, tool, i)
			}
		})
	}
}

// uri is the resource that an op is about.
func uri(o op) string { return fmt.Sprint("u", o.pick%2) }

func key(server int, uri string) string { return fmt.Sprint(server, " ", uri) }

// subscribe lets a client subscribe to a resource or end that.
func (m *model) subscribe(o op) {
	a := m.clients[o.client]
	if m.shaky[o.server] {
		return
	}
	var got *answer
	m.unlocked(func() {
		got = a.wait(a.start(quote("subscribe-"+a.next()), "resources/"+o.kind, fmt.Sprintf(`{"uri":"s%d__%s"}`, o.server, uri(o))))
	})
	if got.result != "{}" {
		m.v.Errorf("%s: got %s %s for its wish to %s, want {}", a.name, got.err, got.refused, o.kind)
	}
	a.subscribed[key(o.server, uri(o))] = map[string]certainty{"subscribe": surely, "unsubscribe": not}[o.kind]
	m.calm()
}

// subscribe notes the subscriptions of a session with a server.
func (p *peer) subscribe(r *request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.Method {
	case "resources/subscribe":
		p.uris[r.name()] = true
	case "resources/unsubscribe":
		delete(p.uris, r.name())
	}
}

func (p *peer) subscribed(uri string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.uris[uri]
}

// hangUp lets a client lose the connection of a stream, and resume it: that of a call, or its own.
func (m *model) hangUp(o op) {
	a := m.clients[o.client]
	if a.lines != nil {
		return
	}
	c := m.pickCall(o, func(c *modelCall) bool { return c.actor == a && c.open() && !c.done() && a.resumable(c.answer) })
	a.mu.Lock()
	stream := &a.own
	if c != nil && o.pick%4 > 0 {
		stream = c.answer
	} else if stream.event == "" {
		a.shaky = true
		a.moves++
	}
	hangUp := stream.hangUp
	a.mu.Unlock()
	hangUp()
}

// resumable reports whether what an answer brings can be read on another connection.
func (c *client) resumable(a *answer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return a.event != ""
}

func (m *model) restart(i int) {
	m.shaky[i] = true
	m.restarts[i]++
	for _, c := range m.calls {
		c.cut = c.cut || c.server == i && (!c.done() || c.mustEnd && m.cancellations(c) == 0)
	}
	m.disturb(func(c *modelCall) bool { return c.server == i })
	m.unlocked(m.servers[i].restart)
}

func (m *model) leave(i int) {
	a := m.clients[i]
	m.disturb(func(c *modelCall) bool { return c.actor == a })
	a.left = true
	m.noteEnd(a)
	m.unlocked(func() {
		a.leave()
		m.enter(i)
	})
}

// settle waits until the calls that must reach their servers have, and servers are themselves again.
func (m *model) settle() {
	if m.rs != nil && m.rs.moving() && m.rs.blackout() {
		m.rs.heal(m.rs.all[:]...) // else each request waits in vain for its session to move, until calls time out
	}
	m.wait("calls to reach their servers", func() bool {
		for _, c := range m.calls {
			if c.request == nil && !c.cut && !c.cancelled && !c.actor.left {
				return false
			}
		}
		return true
	})
	for i := range m.servers {
		for _, a := range m.clients {
			if m.shaky[i] || a.shaky {
				m.unlocked(func() { m.recover(i, a) })
			}
		}
		m.shaky[i] = false
	}
	for _, a := range m.clients {
		if a.shaky && m.settles(a) {
			m.wait("the stream of "+a.name, func() bool {
				a.mu.Lock()
				defer a.mu.Unlock()
				return a.own.reads
			})
			a.shaky = false
		}
	}
	m.calm()
}

// recover waits until a client's session with a server lives again.
func (m *model) recover(i int, a *actor) {
	mcptest.Eventually(m.v, fmt.Sprintf("server %d to serve %s again", i, a.name), func() bool {
		return a.wait(a.start(quote("again-"+a.next()), "completion/complete", fmt.Sprintf(`{"ref":{"type":"ref/prompt","name":"s%d__p"}}`, i))).err == `{"code":-32601,"message":"Method not found"}`
	})
}

// finish brings everything to its end and compares what came with what had to.
func (m *model) finish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settle()
	for _, q := range m.questions {
		if q.at != nil && !q.answered && !q.at.left && len(q.replies) == 0 {
			m.answer(q)
		}
		if !q.disturbed {
			m.wait(fmt.Sprintf("the answer to question %d", q.q), func() bool { return len(q.replies) > 0 })
		}
	}
	m.wait("the cancellations", func() bool {
		return !slices.ContainsFunc(m.calls, func(c *modelCall) bool {
			return c.mustEnd && !c.cut && !c.actor.left && c.response == "" && m.cancellations(c) == 0
		})
	})
	m.wait("the end of all calls", func() bool {
		all := true
		for _, c := range m.calls {
			if c.request != nil && c.response == "" {
				m.respond(c, c.n%2 == 0)
			}
			all = all && (c.done() || c.actor.left || c.cancelled && c.actor.lines != nil)
		}
		return all
	})
	if m.rs != nil {
		m.rs.heal(m.rs.all[:]...)
	}
	m.settle()
	for _, a := range m.clients {
		if a.shaky {
			m.wrong("%s: its session has not come to rest", a.name)
		}
	}
	for _, c := range m.calls {
		m.checkCall(c)
	}
	for _, q := range m.questions {
		m.checkQuestion(q)
	}
	m.checkAnnouncements()
	m.checkNotes()
	for _, a := range m.actors {
		m.checkStreams(a)
		if a.left && a.lines == nil && !a.mayLive {
			m.unlocked(func() { m.checkGone(a) })
		}
	}
	m.unlocked(m.checkRest)
	if m.rs != nil {
		m.rs.checkRefused(m)
	}
}

func (m *model) wrong(format string, args ...any) { m.v.Errorf(format, args...) }

func (m *model) checkCall(c *modelCall) {
	c.actor.mu.Lock()
	result, rpcErr := c.answer.result, c.answer.err
	c.actor.mu.Unlock()
	got := result + rpcErr
	what := fmt.Sprintf("call %d of %s to server %d (cancelled %t, cut %t, left %t)", c.n, c.actor.name, c.server, c.cancelled, c.cut, c.actor.left)
	switch {
	case got == "" && !c.cancelled && !c.actor.left && !(c.cut && m.rs != nil):
		m.wrong("%s: got no response, want %s", what, c.response)
	case got != "" && c.mustEnd && !c.cut:
		m.wrong("%s: got %s, want no response: it was cancelled while it waited for its server", what, got)
	case got != "" && got != c.response && !(c.cut && strings.Contains(rpcErr, `"code":-32000`)) && !(c.actor.left && (strings.Contains(rpcErr, `"code":-32000`) || strings.Contains(rpcErr, "session has ended"))):
		m.wrong("%s: got %s, want %s", what, got, c.response)
	}
	if c.mustEnd && !c.cut && !c.actor.left && m.cancellations(c) != 1 {
		m.wrong("%s: got %d cancellations at the server, want 1", what, m.cancellations(c))
	}
	if c.actor.left && c.request != nil {
		r := c.request
		m.wait("the end at the server of "+what, func() bool { return r.ctx.Err() != nil })
	}
}

func (m *model) checkQuestion(q *question) {
	what := fmt.Sprintf("question %d of call %d", q.q, q.call.n)
	want := fmt.Sprintf(`{"q":%d}`, q.q)
	for _, reply := range q.replies {
		if fine := reply == want && q.answered || reply == "" && q.disturbed || strings.Contains(reply, "-32601") && (q.refuse || q.doubt || q.disturbed); !fine {
			m.wrong("%s: got the answer %s, want %s", what, reply, want)
		}
	}
	for i, s := range m.servers {
		for _, value := range q.reports {
			n := 0
			for _, p := range s.got("notifications/progress") {
				if strings.Contains(p, quote(value)) {
					n++
					if token := string(jsonrpc.Get([]byte(p), "progressToken")); token != "1" {
						m.wrong("%s: got progress under the token %s, want the server's own", what, token)
					}
				}
			}
			if wants := i == q.call.server; wants != (n == 1) {
				m.wrong("%s: got the progress %q at server %d %d times, want it once at server %d", what, value, i, n, q.call.server)
			}
		}
	}
}

// heardOf returns the numbers of a server's announcements as a client heard them.
func heardOf(a *actor, server int) (ks []int) {
	for _, raw := range a.heard() {
		msg, _ := jsonrpc.Parse([]byte(raw))
		if string(jsonrpc.Get(msg.Params, "server")) == fmt.Sprint(server) {
			k := 0
			_, _ = fmt.Sscan(string(jsonrpc.Get(msg.Params, "k")), &k) // it is ours
			ks = append(ks, k)
		}
	}
	return ks
}

func (m *model) checkAnnouncements() {
	for i := range m.servers {
		m.announce(i, "notifications/announce", "") // the last one shows that nothing is on its way any more
		for _, a := range m.actors {
			var must, may []int
			for _, s := range m.said[i] {
				if s.to != a && s.to != nil {
					continue
				}
				may = append(may, s.k)
				if s.must && s.at == m.restarts[i] && s.moves == a.moves && !a.left {
					must = append(must, s.k)
				}
			}
			has := func() bool {
				heard := heardOf(a, i)
				return !slices.ContainsFunc(must, func(k int) bool { return !slices.Contains(heard, k) })
			}
			m.wait(fmt.Sprintf("the announcements %v of server %d to reach %s, which heard %v", must, i, a.name, heardOf(a, i)), has)
			heard := heardOf(a, i)
			severally := i == shared && m.rs != nil && a.moves > 0 // the server has a session with each replica
			for n, k := range heard {
				if !slices.Contains(may, k) || n > 0 && heard[n-1] >= k && !severally {
					m.wrong("%s: got the announcements %v of server %d, want among %v, in order", a.name, heard, i, may)
					break
				}
			}
		}
	}
}

// notesAt returns the numbers of a client's notifications as a server has got them.
func (m *model) notesAt(server int, a *actor) (ks []int) {
	for _, p := range m.servers[server].got("notifications/note") {
		if jsonrpc.Text(jsonrpc.Get([]byte(p), "client")) == a.name {
			k := 0
			_, _ = fmt.Sscan(string(jsonrpc.Get([]byte(p), "k")), &k) // it is ours
			ks = append(ks, k)
		}
	}
	return ks
}

func (m *model) checkNotes() {
	for i := range m.servers {
		for _, a := range m.actors {
			ks := func() []int { return m.notesAt(i, a) }
			if m.restarts[i] == 0 && !a.left {
				m.wait(fmt.Sprintf("notifications %d to %d of %s at server %d", a.lost+1, a.notes, a.name, i), func() bool {
					got := ks()
					for k := a.lost + 1; k <= a.notes; k++ {
						if !slices.Contains(got, k) {
							return false
						}
					}
					return true
				})
			}
			got := ks()
			for n := 1; n < len(got); n++ {
				if got[n-1] >= got[n] {
					m.wrong("server %d: got the notifications %v of %s, want them in order and each once", i, got, a.name)
					break
				}
			}
		}
	}
}

// checkStreams looks at all that a client received.
func (m *model) checkStreams(a *actor) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.surplus) > 0 {
		m.wrong("%s: got the responses %q, want nothing that nobody waits for", a.name, a.surplus)
	}
	seen := map[int][]int{} // progress by call
	look := func(raw string, on *modelCall) {
		msg, _ := jsonrpc.Parse([]byte(raw))
		switch msg.Method {
		case "notifications/progress":
			n, k := -1, 0
			_, _ = fmt.Sscanf(jsonrpc.Text(jsonrpc.Get(msg.Params, "message")), "n%d", &n) // it is ours
			_, _ = fmt.Sscan(string(jsonrpc.Get(msg.Params, "progress")), &k)
			if n < 0 || m.calls[n].actor != a || on != nil && on.n != n || string(jsonrpc.Get(msg.Params, "progressToken")) != m.calls[n].token {
				m.wrong("%s: got %s, which is not for it", a.name, raw)
				return
			}
			seen[n] = append(seen[n], k)
		case "notifications/announce", "notifications/resources/updated", "notifications/tools/list_changed":
			if on != nil {
				m.wrong("%s: got %s on the stream of call %d, want it on its own", a.name, raw, on.n)
			}
		case "sampling/createMessage", "notifications/cancelled":
		default:
			m.wrong("%s: got %s, which nobody sent", a.name, raw)
		}
	}
	for _, raw := range a.loose {
		look(raw, nil)
	}
	for _, c := range m.calls {
		if c.actor != a {
			continue
		}
		for _, raw := range c.answer.notes {
			look(raw, c)
		}
		got := seen[c.n]
		want := c.progress
		if c.token == "" {
			want = 0
		}
		whole := !c.cancelled && !c.cut && !a.left
		inOrder := true
		for i, k := range got {
			inOrder = inOrder && (k == i+1 || !whole && k <= want && (i == 0 || k > got[i-1]))
		}
		if !inOrder || whole && len(got) != want {
			m.wrong("call %d of %s: got the progress %v, want 1 to %d", c.n, a.name, got, want)
		}
	}
}

// checkGone looks whether a client that has left is served.
func (m *model) checkGone(a *actor) {
	c := m.w.newClient(proxyPath)
	c.persists = true
	c.header = a.header
	for range 3 { // at each replica
		if got := c.do("ping", ""); got.status != http.StatusNotFound {
			m.wrong("%s: got %d after DELETE, want 404", a.name, got.status)
		}
	}
}

// checkRest ends all sessions and looks for what they left.
func (m *model) checkRest() {
	faces := m.faces()
	sum := func(of func(face) int) (n int) {
		for _, f := range faces {
			n += of(f)
		}
		return n
	}
	mcptest.Eventually(m.v, "the end of all requests", func() bool { return sum(func(f face) int { return f.edge.Tracked() }) == 0 })
	for _, a := range m.clients {
		a.leave()
	}
	mcptest.Eventually(m.v, "the end of all sessions", func() bool { return sum(func(f face) int { return f.edge.Sessions() }) == 0 })
	for i, s := range m.servers {
		mcptest.Eventually(m.v, fmt.Sprintf("the end of the sessions with server %d", i), func() bool { return len(s.all()) <= len(faces) })
	}
}

package edge

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/texts"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

const (
	maxTasks    = 10_000           // Requests of limit.Bounds: kept for one caller, half as many while others begin some
	taskBytes   = 4 << 10          // charged for a task besides a large result
	taskLife    = 30 * time.Minute // from its creation; then it is cancelled, and forgotten
	taskPoll    = 500 * time.Millisecond
	taskMessage = 1000 // bytes of statusMessage
)

var errTasks = errors.New("too many tasks, or too large results of tasks, are kept for the caller; each is forgotten 30 " +
	"minutes after it began. Call again without the extension " + protocol.ExtensionTasks + ", or later")

// task is a request whose reply is kept until its client fetches it (MCP extension io.modelcontextprotocol/tasks). Its
// mrtr serves it and has the requests that wait for input; it outlives the mrtr.
type task struct {
	id, surface string
	owner       auth.Caller // whose call has begun it
	created     time.Time

	mu      sync.Mutex
	run     *mrtr // nil when the handler has returned
	updated time.Time
	message string // what the progress of the request says
	status  string // of a task that has ended; else empty
	reply   output.Message
	heard   map[*Exchange]bool // by the requests that listen to it
}

// Statuses of tasks.
const (
	taskWorking   = "working"
	taskInput     = "input_required"
	taskCompleted = "completed"
	taskFailed    = "failed"
	taskCancelled = "cancelled"
)

// AsTask turns a request whose client takes tasks into one: the client gets the id of the task, x is no longer
// cancelled by the end of its connection, and its reply is kept for 30 minutes from now. The client fetches it, answers
// requests and cancels with requests that [ServeTask] serves. Other requests stay as they are. The error means that too
// much is kept for the caller. AsTask must precede all other messages to the client.
func AsTask(x *Exchange) error {
	run := x.reply.mrtr
	if run == nil || !x.Client.TakesTasks() {
		return nil
	}
	x.entry.table.freeID(x) // notifications/cancelled no longer finds it
	if x.reply.state.Load() != live {
		return nil // it was cancelled
	}
	homes := &x.edge.sessions.homes
	now := time.Now()
	t := &task{id: statePrefix + homes.prefix(homes.directory.Self()) + rand.Text(), owner: x.Caller,
		surface: x.Surface, created: now, updated: now, run: run}
	if !x.edge.mrtrs.tasks.add(x.edge.budget, t) {
		x.edge.refusals.overloaded.Add(1)
		return errTasks
	}
	x.reply.task = t
	run.mu.Lock()
	r := run.round
	run.round = nil
	run.mu.Unlock()
	m := output.Result(r.id, jsonrpc.Set(t.state(), "resultType", []byte(`"`+protocol.ResultTask+`"`)))
	m.Payer = t.owner.ID
	logSent(x.edge.log, x.session, m)
	r.finish(m)
	switch { // those who end tasks may have looked before
	case x.edge.life.stopping.Load():
		x.abort(ErrStopped)
	case x.session != nil && x.session.closes():
		x.abort(ErrSessionEnded)
	}
	return nil
}

// ServeTask serves tasks/get, tasks/update and tasks/cancel for the tasks that AsTask has made for the caller on the
// surface. Unknown ids and those of others are answered alike.
func ServeTask(x *Exchange) {
	x.ReleaseWaiting()
	id, err := TaskID(x)
	t := x.edge.mrtrs.tasks.of(x, id)
	switch {
	case err != nil:
		x.Fail(err)
		return
	case t == nil:
		x.Fail(ErrNoTask)
		return
	}
	answer := []byte("{}")
	switch x.Message.Method {
	case protocol.MethodUpdate:
		responses := jsonrpc.Get(x.Message.Params, "inputResponses")
		if inbound.Object(responses) == nil {
			x.Fail(inbound.InvalidParams("inputResponses must be an object"))
			return
		}
		if run := t.running(); run != nil {
			run.answer(responses)
		}
	case protocol.MethodCancel:
		t.cancel()
	default:
		answer = t.state()
	}
	x.Reply(answer)
}

// ErrNoTask answers an id that names no task of the caller.
var ErrNoTask = inbound.InvalidParams("unknown or expired taskId; call the tool again")

// TaskID returns the id in a request about a task. The error is for its client.
func TaskID(x *Exchange) (string, *jsonrpc.Error) {
	if !x.Client.TakesTasks() {
		return "", inbound.MissingTasks()
	}
	span, ambiguous := jsonrpc.Find(x.Message.Params, "taskId")
	if ambiguous {
		return "", inbound.InvalidParams("taskId must appear once")
	}
	return jsonrpc.Text(span.Of(x.Message.Params)), nil
}

// SealTask returns the id under which the caller of x knows a task that is kept elsewhere; the text names it for
// [OpenTask]. It holds on this surface as long as session ids do, also at other replicas.
func SealTask(x *Exchange, text string) string {
	return x.edge.sessions.ids.Seal(text, sealedFor(x))
}

// OpenTask returns the text that SealTask has sealed for the caller of x on its surface. It reports false for all other
// ids.
func OpenTask(x *Exchange, id string) (text string, ok bool) {
	return x.edge.sessions.ids.Unseal(id, sealedFor(x))
}

func sealedFor(x *Exchange) string { return "task\x00" + x.Caller.Owner() + "\x00" + x.Surface }

// running returns the request; nil when its handler has returned.
func (t *task) running() *mrtr {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.run
}

// keep keeps the reply.
func (t *task) keep(m output.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status, t.reply = taskCompleted, m
	if m.IsError() {
		t.status = taskFailed
		t.message = texts.Line(jsonrpc.Text(jsonrpc.Get(m.Body, "message")), taskMessage)
	}
	t.changedLocked()
}

// cancel cancels the request, unless it is answered.
func (t *task) cancel() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.run == nil || !t.run.x.reply.state.CompareAndSwap(live, cancelled) {
		return
	}
	t.status = taskCancelled
	t.changedLocked()
	t.run.x.abort(&Cancelled{})
}

// progressed notes what the progress of the request says.
func (t *task) progressed(message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.status == "" {
		t.message = texts.Line(message, taskMessage)
		t.changedLocked()
	}
}

// touch notes that the requests that wait for input have changed.
func (t *task) touch() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.status == "" {
		t.changedLocked()
	}
}

// changedLocked tells those who listen.
func (t *task) changedLocked() {
	t.updated = time.Now()
	if len(t.heard) == 0 {
		return
	}
	state := t.stateLocked()
	for x := range t.heard {
		t.tell(x, state)
	}
}

// tell sends the state to a request that listens, unless its caller has no room for that.
func (t *task) tell(x *Exchange, state []byte) {
	if x.edge.budget.Fits(t.owner.ID, len(state)) {
		x.Notify(Subscribed(x, protocol.MethodTask, state))
	}
}

// watch tells x, a request that listens, the state of the task until end is called.
func (t *task) watch(x *Exchange) (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.heard == nil {
		t.heard = map[*Exchange]bool{}
	}
	t.heard[x] = true
	t.tell(x, t.stateLocked())
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.heard, x)
	}
}

// ended notes that the handler has returned.
func (t *task) ended() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.run = nil
}

// state returns the raw task as tasks/get tells it (DetailedTask).
func (t *task) state() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stateLocked()
}

func (t *task) stateLocked() []byte {
	var more []byte
	status := t.status
	switch status {
	case taskCompleted:
		more = append([]byte(`,"result":`), t.reply.Body...)
	case taskFailed:
		more = append([]byte(`,"error":`), t.reply.Body...)
	case "":
		status = taskWorking
		if requests := t.run.waiting(); requests != nil {
			status, more = taskInput, append([]byte(`,"inputRequests":`), requests...)
		}
	}
	at := func(moment time.Time) string { return moment.UTC().Format("2006-01-02T15:04:05.000Z") }
	body, _ := json.Marshal(struct { // always marshals
		ID      string `json:"taskId"`
		Status  string `json:"status"`
		Message string `json:"statusMessage,omitempty"`
		Created string `json:"createdAt"`
		Updated string `json:"lastUpdatedAt"`
		Life    int64  `json:"ttlMs"`
		Poll    int64  `json:"pollIntervalMs"`
	}{t.id, status, t.message, at(t.created), at(t.updated), taskLife.Milliseconds(), taskPoll.Milliseconds()})
	return append(append(body[:len(body)-1], more...), '}')
}

// taskTable holds the tasks of all callers.
type taskTable struct {
	room *limit.Budget // tasks by caller

	mu   sync.Mutex
	byID map[string]*task
}

// add adds a task and charges its caller. It reports false if there is no room.
func (k *taskTable) add(budget *limit.Budget, t *task) bool {
	if !k.room.Enter(t.owner.ID, 0) {
		return false
	}
	if !budget.ReserveSpare(t.owner.ID, taskBytes) {
		k.room.Leave(t.owner.ID, 0)
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.byID[t.id] = t
	return true
}

// of returns the task with an id if it is one of the caller of x on its surface; else nil.
func (k *taskTable) of(x *Exchange, id string) *task {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t := k.byID[id]; t != nil && x.Caller.Owns(t.owner) && t.surface == x.Surface {
		return t
	}
	return nil
}

func (k *taskTable) all() []*task {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Values(k.byID))
}

// stop ends the requests of the tasks of a session, or of all if it is nil, with a cause.
func (k *taskTable) stop(s *session, cause error) {
	for _, t := range k.all() {
		if run := t.running(); run != nil && (s == nil || run.x.session == s) {
			run.x.abort(cause)
		}
	}
}

// expire cancels and forgets the tasks that were not created after a moment.
func (k *taskTable) expire(budget *limit.Budget, last time.Time) {
	for _, t := range k.all() {
		if t.created.After(last) {
			continue
		}
		if t.cancel(); t.running() != nil {
			continue // until its handler has returned
		}
		k.mu.Lock()
		delete(k.byID, t.id)
		k.mu.Unlock()
		output.Release(budget, t.reply)
		budget.Release(t.owner.ID, taskBytes)
		k.room.Leave(t.owner.ID, 0)
	}
}

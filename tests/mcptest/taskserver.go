package mcptest

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
)

// taskTools are the tools of a Server of 2026-07-28 that the official suite wants for tasks. All but greet begin a
// task: slow_compute for a client that takes one, confirm_delete and multi_input with one and two forms, and
// test_tool_with_task after a form.
var taskTools = []string{
	"greet", "slow_compute", "failing_job", "protocol_error_job", "confirm_delete", "multi_input", "test_tool_with_task",
}

// taskStore has the tasks of a Server.
type taskStore struct {
	mu   sync.Mutex
	byID map[string]*serverTask
}

// serverTask is a task. The mutex of its store guards it.
type serverTask struct {
	id, status string
	asks       map[string]string // raw requests by key
	answers    map[string]string // raw responses by key
	end        string            // raw member: result or error
	timer      *time.Timer
}

func (t *serverTask) raw() string {
	members := fmt.Sprintf(`"taskId":%q,"status":%q,"createdAt":"2026-07-28T10:00:00Z","lastUpdatedAt":"2026-07-28T10:00:00Z","ttlMs":60000,"pollIntervalMs":20`, t.id, t.status)
	if t.end != "" {
		members += "," + t.end
	}
	if t.status == "input_required" {
		var asks []string
		for _, key := range slices.Sorted(maps.Keys(t.asks)) {
			asks = append(asks, `"`+key+`":`+t.asks[key])
		}
		members += `,"inputRequests":{` + strings.Join(asks, ",") + `}`
	}
	return "{" + members + "}"
}

// changed announces the state of a task. The caller holds the mutex of the store.
func changed(s *Server, t *serverTask, status, end string) {
	t.status, t.end = status, end
	s.Notify(string(jsonrpc.Notification(protocol.MethodTask, []byte(t.raw()))))
}

// begin begins a task that ends after a time, or when its requests are answered.
func (s *Server) begin(
	after time.Duration, asks map[string]string, status string, end func(t *serverTask) string,
) string {
	k := &s.era.tasks
	k.mu.Lock()
	defer k.mu.Unlock()
	t := &serverTask{id: "of the server/" + rand.Text(), status: "working", asks: asks, answers: map[string]string{}}
	if k.byID == nil {
		k.byID = map[string]*serverTask{}
	}
	k.byID[t.id] = t
	t.timer = time.AfterFunc(after, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		switch {
		case t.status == "cancelled":
		case len(t.asks) > 0:
			changed(s, t, "input_required", "")
		default:
			changed(s, t, status, end(t))
		}
	})
	return `{"resultType":"task",` + t.raw()[1:]
}

// callTask answers a call of one of taskTools.
func (s *Server) callTask(m Message, send func(raw string)) {
	c := m.Call()
	var args struct {
		Name    string  `json:"name"`
		Seconds float64 `json:"seconds"`
	}
	_ = json.Unmarshal(c.Arguments, &args) // what does not fit is left zero
	takes := jsonrpc.Get(m.Params, "_meta", "io.modelcontextprotocol/clientCapabilities", "extensions", protocol.ExtensionTasks) != nil
	text := func(text string) string {
		return `"result":{"resultType":"complete","content":[{"type":"text","text":` + string(jsonrpc.StringID(text)) +
			`},{"type":"resource_link","uri":"` + Resource + `","name":"x"}]}`
	}
	form := func(message string) string {
		return fmt.Sprintf(`{"method":"elicitation/create","params":{"mode":"form","message":%q,"requestedSchema":{"type":"object","properties":{"user_name":{"type":"string"}}}}}`, message)
	}
	reply := func(member string) string { return strings.TrimPrefix(member, `"result":`) }
	const soon = 10 * time.Millisecond
	done := func(what string) func(*serverTask) string { return func(*serverTask) string { return text(what) } }
	var result string
	switch {
	case c.Name == "greet":
		result = reply(text("Hello, " + args.Name + "!"))
	case c.Name == "slow_compute" && !takes:
		result = reply(text("computed"))
	case !takes:
		send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":` + needsTasks + `}`)
		return
	case c.Name == "slow_compute":
		result = s.begin(time.Duration(args.Seconds*float64(time.Second)), nil, "completed", done("computed"))
	case c.Name == "failing_job":
		result = s.begin(soon, nil, "completed", func(*serverTask) string {
			return `"result":{"resultType":"complete","isError":true,"content":[{"type":"text","text":"it failed"}]}`
		})
	case c.Name == "protocol_error_job":
		result = s.begin(soon, nil, "failed", func(*serverTask) string { return `"error":{"code":-32603,"message":"it broke"}` })
	case c.Name == "confirm_delete":
		result = s.begin(soon, map[string]string{"confirm": form("Delete it?")}, "completed",
			func(t *serverTask) string { return text("answered " + t.answers["confirm"]) })
	case c.Name == "multi_input":
		result = s.begin(soon, map[string]string{"a": form("A?"), "b": form("B?")}, "completed", done("answered"))
	default:
		given := jsonrpc.Get(m.Params, "inputResponses", "name")
		if given == nil {
			result = `{"resultType":"input_required","inputRequests":{"name":` + form("Who?") + `},"requestState":"s"}`
			break
		}
		result = s.begin(soon, nil, "completed", done("Hello, "+string(given)))
	}
	send(m.Response(result))
}

const needsTasks = `{"code":-32021,"message":"needs tasks","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}`

// ofTask answers tasks/get, tasks/update and tasks/cancel.
func (s *Server) ofTask(m Message, send func(raw string)) {
	k := &s.era.tasks
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.byID[jsonrpc.Text(jsonrpc.Get(m.Params, "taskId"))]
	fails := func(err string) { send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":` + err + `}`) }
	switch {
	case jsonrpc.Get(m.Params, "_meta", "io.modelcontextprotocol/clientCapabilities", "extensions", protocol.ExtensionTasks) == nil:
		fails(needsTasks)
		return
	case t == nil:
		fails(`{"code":-32602,"message":"no such task"}`)
		return
	case m.Method == protocol.MethodTaskGet:
		send(m.Response(`{"resultType":"complete",` + t.raw()[1:]))
		return
	case m.Method == protocol.MethodCancel && t.end == "":
		t.timer.Stop()
		changed(s, t, "cancelled", "")
	case m.Method == protocol.MethodUpdate:
		responses := jsonrpc.Get(m.Params, "inputResponses")
		for key := range t.asks {
			if answer := jsonrpc.Get(responses, key); answer != nil {
				t.answers[key] = string(answer)
				delete(t.asks, key)
			}
		}
		if t.status == "input_required" && len(t.asks) == 0 {
			t.status = "working"
			t.timer.Reset(0)
		}
	}
	send(m.Response(`{"resultType":"complete"}`))
}

// CheckHeaders refuses requests of 2026-07-28 whose headers and bodies differ. It is an OnHTTP.
func CheckHeaders(w http.ResponseWriter, r *http.Request, m Message) bool {
	name := m.Call().Name
	if protocol.OfTasks(m.Method) {
		name = jsonrpc.Text(jsonrpc.Get(m.Params, "taskId"))
	}
	if r.Method != http.MethodPost || m.ID == nil ||
		r.Header.Get("Mcp-Method") == m.Method && (name == "" || r.Header.Get("Mcp-Name") == name) {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32020,"message":"header mismatch"}}`, m.ID)
	return true
}

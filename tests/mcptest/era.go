package mcptest

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
)

// Resource is the resource of a Server with a Version.
const Resource = "file:///x"

// Vendor is a member that a Server with a Version adds to results of echo.
const Vendor = `"vendor":{"b":9007199254740993,"a":[1.0,"\u0061"]}`

// era is the state of a Server with a Version.
type era struct {
	calls      sync.Map // raw ids of calls that take time and were not cancelled by a notification
	cancelled  atomic.Int64
	subscribed atomic.Bool
	level      atomic.Bool
	tasks      taskStore
}

// Cancelled returns how many calls were cancelled as the version of the server has it.
func (s *Server) Cancelled() int64 { return s.era.cancelled.Load() }

// Update announces a change of the resource to those who have subscribed.
func (s *Server) Update() {
	if s.Version == Modern || s.era.subscribed.Load() {
		s.Notify(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + Resource + `"}}`)
	}
}

// removed are the methods that 2026-07-28 does not have any more.
var removed = []string{"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}

// answerInEra answers what a Server with a Version knows and others do not: it has a resource and a log, echo returns
// its params, ask sends the request that its arguments name, and log sends a message to the log. It returns false for
// what Answer knows.
func (s *Server) answerInEra(ctx context.Context, m Message, send func(raw string)) bool {
	describes := `"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"logging":{}}`
	result := func(members string) bool {
		if s.Version == Modern {
			members = strings.TrimPrefix(members+`,"resultType":"complete","ttlMs":0,"cacheScope":"private"`, ",")
		}
		send(m.Response("{" + members + "}"))
		return true
	}
	text := func(text []byte) string {
		return `"content":[{"type":"text","text":` + string(jsonrpc.StringID(string(text))) + `}]`
	}
	switch m.Method {
	case "server/discover", protocol.MethodListen:
		if s.Version != Modern {
			return false
		}
		if m.Method == protocol.MethodListen {
			s.listen(ctx, m, send)
			return true
		}
		describes = strings.TrimSuffix(describes, "}") + `,"extensions":{"` + protocol.ExtensionTasks + `":{}}}`
		return result(`"supportedVersions":["` + Modern + `"],"_meta":{"io.modelcontextprotocol/serverInfo":` + clientInfo + `},` + describes)
	case "tools/list":
		tools := strings.TrimSuffix(Tools, "]") + `,{"name":"log","description":"Logs","inputSchema":{"type":"object"}}`
		if s.Version == Modern {
			for _, name := range taskTools {
				tools += fmt.Sprintf(`,{"name":%q,"description":"A task","inputSchema":{"type":"object"}}`, name)
			}
		}
		return result(`"tools":` + tools + "]")
	case "resources/list":
		return result(`"resources":[{"uri":"` + Resource + `","name":"x"}]`)
	case "tools/call":
		if s.Version == Modern && slices.Contains(taskTools, m.Call().Name) {
			s.callTask(m, send)
			return true
		}
		switch m.Call().Name {
		case "echo":
			return result(text(m.Params) + `,"_meta":{"example.com/answer":1},` + Vendor)
		case "log":
			asked := s.era.level.Swap(false) // each client sets it
			if s.Version == Modern {
				asked = jsonrpc.Get(m.Params, "_meta", "io.modelcontextprotocol/logLevel") != nil
			}
			if asked {
				send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"logged"}}`)
			}
			return result(text(nil))
		case "ask":
			method := jsonrpc.Text(jsonrpc.Get(m.Params, "arguments", "method"))
			params := string(jsonrpc.Get(m.Params, "arguments", "params"))
			answer := jsonrpc.Get(m.Params, "inputResponses", "q")
			switch {
			case s.Version != Modern:
				came, ok := s.ask(ctx, method, params, send)
				return !ok || result(text(came.Result))
			case answer == nil:
				send(m.Response(fmt.Sprintf(`{"resultType":"input_required","requestState":"s","inputRequests":{"q":{"method":%q,"params":%s}}}`, method, params)))
				return true
			}
			return result(text(answer))
		}
		return false
	}
	if s.Version == Modern {
		if protocol.OfTasks(m.Method) {
			s.ofTask(m, send)
		}
		return protocol.OfTasks(m.Method)
	}
	switch m.Method {
	case "initialize":
		return result(`"protocolVersion":"` + s.Version + `","serverInfo":` + clientInfo + "," + describes)
	case "resources/subscribe", "resources/unsubscribe":
		s.era.subscribed.Store(m.Method == "resources/subscribe")
	case "logging/setLevel":
		s.era.level.Store(true)
	default:
		return false
	}
	return result("")
}

// listen sends the notifications that a request asks for until ctx ends.
func (s *Server) listen(ctx context.Context, m Message, send func(raw string)) {
	id := "listen " + rand.Text()
	s.mu.Lock()
	out := s.open(id)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.sessions, id)
	}()
	filter := jsonrpc.Get(m.Params, "notifications")
	notify := func(method string, params []byte) {
		meta := jsonrpc.Set(nil, protocol.MetaSubscription, m.ID)
		send(string(jsonrpc.Notification(method, jsonrpc.Set(params, "_meta", meta))))
	}
	notify(protocol.MethodAcknowledged, jsonrpc.Set(nil, "notifications", filter))
	for {
		select {
		case raw := <-out:
			method, params := jsonrpc.Text(jsonrpc.Get([]byte(raw), "method")), jsonrpc.Get([]byte(raw), "params")
			for _, of := range protocol.Announcements {
				wanted := string(jsonrpc.Get(filter, of.Member))
				if method == of.Method && (wanted == "true" || strings.Contains(wanted, `"`+Resource+`"`)) {
					notify(method, params)
				}
			}
			if id := jsonrpc.Get(params, "taskId"); method == protocol.MethodTask &&
				strings.Contains(string(jsonrpc.Get(filter, protocol.MemberTasks)), string(id)) {
				notify(method, params)
			}
		case <-ctx.Done():
			return
		}
	}
}

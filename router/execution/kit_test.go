package execution_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/router/execution"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kit is an Executor with servers in this process, named a, b and so on.
type kit struct {
	*execution.Executor
	t       *testing.T
	servers *downstream.Manager
}

func newKit(t *testing.T, log *slog.Logger, servers ...*scripted) *kit {
	t.Helper()
	o := downstream.Options{Access: downstream.Access{Embedded: map[string]downstream.DialFunc{}}, Logger: log}
	for i, s := range servers {
		name := string(rune('a' + i))
		o.Servers = append(o.Servers, downstream.ServerConfig{Name: name, Type: downstream.TransportStdio})
		o.Embedded[name] = s.dial
	}
	k := &kit{t: t, servers: downstream.New(o)}
	k.servers.Start()
	t.Cleanup(k.servers.Stop)
	k.Executor = execution.New(execution.Options{Servers: k.servers, Logger: log})
	return k
}

func (k *kit) catalog() *downstream.Catalog {
	k.t.Helper()
	c, err := k.servers.Catalog(k.t.Context())
	if err != nil {
		k.t.Fatalf("Catalog: %v", err)
	}
	return c
}

// execute checks and runs a plan.
func (k *kit) execute(ctx context.Context, text string, r execution.Request) []plan.Outcome {
	k.t.Helper()
	r.Plan, r.Catalog, r.Began = planOf(k.t, text), k.catalog(), time.Now()
	r.Problems = k.Check(&r.Plan, r.Catalog, r.Origin.Visible, nil)
	return k.Execute(ctx, r)
}

func planOf(t *testing.T, text string) plan.Plan {
	t.Helper()
	p, err := plan.ParseJSON(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// tool is a plain definition; more is added to it, such as annotations.
func tool(name string, more ...string) string {
	return fmt.Sprintf(`{"name":%q,"description":"does %s","inputSchema":{"type":"object"}%s}`, name, name, strings.Join(more, ""))
}

const readOnly = `,"annotations":{"readOnlyHint":true}`

// scripted is a server whose tools do what their names say.
type scripted struct {
	mcptest.Server
	modern bool // refuses the handshake and speaks 2026-07-28

	mu    sync.Mutex
	calls []string // raw params of tools/call
	ends  []func() // of the connections
}

func script(tools ...string) *scripted {
	s := &scripted{}
	s.SetTools("[" + strings.Join(tools, ",") + "]")
	s.OnLine = s.answer
	return s
}

func modern(tools ...string) *scripted {
	s := script(tools...)
	s.modern = true
	return s
}

func (s *scripted) dial(context.Context) (io.ReadWriteCloser, error) {
	ours, theirs := net.Pipe()
	s.mu.Lock()
	s.ends = append(s.ends, func() { theirs.Close() })
	s.mu.Unlock()
	go func() {
		defer theirs.Close()
		s.ServeLines(theirs, theirs)
	}()
	return ours, nil
}

// params returns the params of the calls, in order.
func (s *scripted) params() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func (s *scripted) answer(m mcptest.Message, write func(raw string)) bool {
	result := func(raw string) { write(m.Response(raw) + "\n") }
	switch m.Method {
	case "server/discover":
		result(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
		return true
	case "initialize":
		if s.modern {
			write(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32602,"message":"no handshake here"}}` + "\n")
		}
		return s.modern
	case "tools/call":
	default:
		return false
	}
	s.mu.Lock()
	s.calls = append(s.calls, string(m.Params))
	ends := slices.Clone(s.ends)
	s.mu.Unlock()
	call := m.Call()
	switch call.Name {
	case "progress":
		for i := range 10 {
			write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":10,"message":"m%d"}}`+"\n", call.Meta.Token, i, i))
		}
		result(`{"content":[{"type":"text","text":"done"}]}`)
	case "hang":
	case "die":
		for _, end := range ends {
			end()
		}
	case "fail":
		result(`{"isError":true,"content":[{"type":"text","text":"no luck"}]}`)
	case "refuse":
		write(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32050,"message":"refused"}}` + "\n")
	case "nonsense":
		result(`[1]`)
	case "form": // asks for input, and then again if the user declines
		switch action := string(jsonrpc.Get(m.Params, "inputResponses", "a", "action")); action {
		case "", `"decline"`:
			result(`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"m"}}},"requestState":"s"}`)
		default:
			text := jsonrpc.StringID(fmt.Sprintf("got %s", jsonrpc.Get(m.Params, "inputResponses", "a")))
			result(`{"content":[{"type":"text","text":` + string(text) + `}]}`)
		}
	default:
		result(`{"content":[],"structuredContent":` + string(call.Arguments) + `}`)
	}
	return true
}

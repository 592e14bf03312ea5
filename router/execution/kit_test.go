package execution_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
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
	"github.com/agenticnexus/agenticnexus/downstream/link"
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

// lookup finds tools for a caller.
func (k *kit) lookup(visible downstream.Visible) plan.Lookup {
	k.t.Helper()
	c, err := k.servers.Catalog(k.t.Context())
	if err != nil {
		k.t.Fatalf("Catalog: %v", err)
	}
	return func(name string) (plan.Tool, *plan.Error) {
		tool, unknown := c.Lookup(name, visible)
		if unknown != nil {
			return plan.Tool{}, unknown
		}
		return tool.Tool, nil
	}
}

// check reads and checks a plan.
func (k *kit) check(text string, visible downstream.Visible) execution.Work {
	k.t.Helper()
	w := execution.Work{Plan: planOf(k.t, text), Lookup: k.lookup(visible)}
	w.Problems = plan.Check(&w.Plan, plan.NewValidator(), w.Lookup, nil)
	return w
}

// begin begins a round that ends with the test.
func (k *kit) begin() *execution.Round {
	r := k.Begin(k.t.Context(), execution.Request{Began: time.Now()})
	k.t.Cleanup(func() { r.Stop() })
	return r
}

// start starts the steps of a plan early.
func (k *kit) start(r *execution.Round, w execution.Work) {
	for _, step := range w.Plan.Steps {
		if tool, unknown := w.Lookup(step.Tool); unknown == nil {
			r.Start(step, tool, downstream.Provenance{})
		}
	}
}

// execute checks and runs a plan.
func (k *kit) execute(ctx context.Context, text string, origin execution.Origin, change ...func(*execution.Work)) []plan.Outcome {
	k.t.Helper()
	w := k.check(text, origin.Visible)
	for _, f := range change {
		f(&w)
	}
	r := k.Begin(ctx, execution.Request{Origin: origin, Began: time.Now()})
	defer r.Stop()
	return r.Execute(ctx, w)
}

func planOf(t testing.TB, text string) plan.Plan {
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

// called returns the tools and arguments of the calls so far.
func (s *scripted) called() string {
	var all strings.Builder
	for _, p := range s.params() {
		all.WriteString(jsonrpc.Text(jsonrpc.Get([]byte(p), "name")) + string(jsonrpc.Get([]byte(p), "arguments")) + " ")
	}
	return all.String()
}

// serve is a ToolCaller without servers: it returns the value that a tool returns, or the text of the tool's failure.
type serve func(ctx context.Context, tool string, arguments json.RawMessage, report execution.ProgressFunc) (value string, err error)

// Call implements execution.ToolCaller.
func (f serve) Call(ctx context.Context, r *downstream.Request) (link.Reply, error) {
	*r.Attempts = 1
	value, err := f(ctx, r.Tool, jsonrpc.Get(r.Params, "arguments"), func(fraction float64, message string) {
		params, _ := json.Marshal(map[string]any{"progress": fraction, "total": 1, "message": message})
		r.Hooks.Progress(params)
	})
	switch {
	case ctx.Err() != nil:
		return link.Reply{}, ctx.Err()
	case err != nil:
		text, _ := json.Marshal(err.Error())
		return link.Reply{Result: []byte(`{"isError":true,"content":[{"type":"text","text":` + string(text) + `}]}`)}, nil
	}
	return link.Reply{Result: []byte(`{"content":[],"structuredContent":` + value + `}`)}, nil
}

// echo returns the arguments; the tool "fail" fails.
func echo(_ context.Context, tool string, arguments json.RawMessage, _ execution.ProgressFunc) (string, error) {
	if tool == "fail" {
		return "", errors.New("no luck")
	}
	return string(arguments), nil
}

// runs says how a plan without servers runs. The tool "number" takes only an object with a number x.
type runs struct {
	parallel int // 0 = no limit
	request  execution.Request
	work     execution.Work
	log      *slog.Logger
}

// run runs a plan without servers.
func (f serve) run(ctx context.Context, p plan.Plan, r runs) []plan.Outcome {
	x := execution.New(execution.Options{Servers: f, MaxParallel: cmp.Or(r.parallel, 1000), Logger: r.log})
	if r.request.Began.IsZero() {
		r.request.Began = time.Now()
	}
	r.work.Plan = p
	r.work.Lookup = func(name string) (plan.Tool, *plan.Error) {
		t := plan.Tool{Name: name, Tool: name}
		if name == "number" {
			t.InputSchema = []byte(`{"properties":{"x":{"type":"number"}}}`)
		}
		return t, nil
	}
	round := x.Begin(ctx, r.request)
	defer round.Stop()
	return round.Execute(ctx, r.work)
}

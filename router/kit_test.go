package router_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/planner"
	"github.com/agenticnexus/agenticnexus/planner/rules"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/synth"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

const (
	anything = `"inputSchema":{"type":"object"}`
	readOnly = `,"annotations":{"readOnlyHint":true}`
	hotel    = `"description":"Find a hotel room in a city","inputSchema":{"type":"object","properties":{"city":{"type":"string","description":"Where to\nstay","minLength":2},` +
		`"nights":{"type":["integer","null"],"minimum":1,"maximum":30},"class":{"enum":["low","high"]},"mail":{"type":"string","format":"email"},"late":{"type":"boolean","title":"Late?"},"tags":{"type":"array"}},` +
		`"required":["city"]}` + readOnly
	composed = `"inputSchema":{"$ref":"#/$defs/Stay","type":"object","$defs":{"Place":{"properties":{"city":{"$ref":"#/$defs/City"}},"required":["city"]},"City":{"type":"string","description":"Where to stay"},` +
		`"Stay":{"allOf":[{"$ref":"#/$defs/Place"},{"properties":{"nights":{"anyOf":[{"type":"integer","minimum":1},{"type":"null"}]},"class":{"oneOf":[{"const":"low"},{"const":"high"}]}},"required":["nights","class"]}]}}}`
)

// tools are what the server "peer" offers; what they do is in kit.answer.
var tools = []string{
	`{"name":"echo","description":"Returns its arguments",` + anything + readOnly + `}`,
	`{"name":"note","description":"Writes a note",` + anything + `}`,
	`{"name":"fails","description":"Does not work",` + anything + `}`,
	`{"name":"breaks","description":"Never answers",` + anything + `}`,
	`{"name":"finds","description":"Finds nothing",` + anything + readOnly + `}`,
	`{"name":"long","description":"Says much",` + anything + readOnly + `}`,
	`{"name":"wipe","description":"Wipes a disk",` + anything + `,"annotations":{"destructiveHint":true}}`,
	`{"name":"hang","description":"Never answers",` + anything + readOnly + `}`,
	`{"name":"works","description":"Gets on",` + anything + readOnly + `}`,
	`{"name":"get_x","description":"X",` + anything + `}`,
	`{"name":"get_w","description":"W",` + anything + `,"annotations":{"readOnlyHint":false}}`,
	`{"name":"purge","description":"Empties the bin",` + anything + readOnly + `}`,
	`{"name":"hotel",` + hotel + `}`,
	`{"name":"stay","description":"Reserves",` + composed + readOnly + `}`,
}

// kit is a Router and a Frontend of it with real parts around it: a server in this process and, if there are plans, a
// model that follows a script.
type kit struct {
	*router.Router
	*router.Frontend
	t       *testing.T
	servers *downstream.Manager
	model   *llmtest.Server // nil without plans
	edge    *edge.Edge
	logs    bytes.Buffer // to be read when nothing runs

	mu    sync.Mutex
	calls []string // names and raw arguments, in the order of their ends
}

// byRules begins a plan that is made by the rules, not by a model.
const byRules = "rules: "

// fixedRules plan the same for every question.
type fixedRules string

// Plan implements planner.Fallback. Members open, unmet and about are those of the plan.
func (f fixedRules) Plan(context.Context, planner.Request) (plan.Plan, error) {
	var extra struct {
		Open  json.RawMessage
		Unmet []plan.Unmet
		About bool
	}
	p, err := plan.ParseJSON(json.RawMessage(f))
	if err == nil && f[0] == '{' {
		err = json.Unmarshal([]byte(f), &extra)
	}
	if err == nil && extra.Open != nil {
		var open plan.Plan
		open, err = plan.ParseJSON(extra.Open)
		p.Incomplete = open.Steps
	}
	p.Unmet, p.About = extra.Unmet, extra.About
	return p, err
}

// newKit starts a kit whose model plans as given, one plan a round, and answers with "All well.".
func newKit(t *testing.T, change func(*router.Options, *downstream.Options), plans ...string) *kit {
	t.Helper()
	return newFrontendKit(t, change, router.FrontendOptions{Tools: router.DefaultTools()}, plans...)
}

// newFrontendKit is newKit with options of the Frontend.
func newFrontendKit(
	t *testing.T, change func(*router.Options, *downstream.Options), frontend router.FrontendOptions, plans ...string,
) *kit {
	t.Helper()
	k := &kit{t: t}
	peer := &mcptest.Server{OnLine: k.answer}
	peer.SetTools("[" + strings.Join(tools, ",") + "]")
	servers := downstream.Options{
		Servers: []downstream.ServerConfig{{Name: "peer", Type: downstream.TransportStdio}},
		Access:  downstream.Access{Embedded: map[string]downstream.DialFunc{"peer": func(context.Context) (io.ReadWriteCloser, error) { return dial(peer), nil }}},
	}
	logger := slog.New(slog.NewTextHandler(&k.logs, nil))
	finder := search.NewFinder(search.New(), search.FinderOptions{Logger: logger})
	ranking := planner.Ranking{Finder: finder}
	few := planner.Config{ToolTokens: 150} // so that a prompt does not show all tools
	planning := planner.Options{Config: few, Ranker: ranking, Fallback: planner.Rules{Planner: rules.New(rules.Options{}), Ranking: ranking}}
	composing := synth.Options{}
	if text, ruled := strings.CutPrefix(strings.Join(plans, ""), byRules); ruled {
		planning.Fallback, plans = fixedRules(text), nil
	}
	if len(plans) > 0 {
		k.model = llmtest.New(t)
		var replies []llmtest.Reply
		for _, p := range plans {
			replies = append(replies, llmtest.Reply{Text: p, Chunk: max(1, len(p))})
		}
		k.model.When(llmtest.Structured, replies...)
		k.model.Answer(llmtest.Reply{Text: "All well.", Chunk: 9})
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		model := llm.New(llm.Config{BaseURL: k.model.BaseURL, Model: "stub", Timeout: 5 * time.Second}, llm.Options{HTTPClient: &http.Client{Transport: transport}})
		planning.Model, composing.Model = model, model
	}
	o := router.Options{
		Version: "1.2.3", Ranking: ranking, Query: router.DefaultQuery(), Validation: router.DefaultValidation(),
		Limits: limit.Default(), MaxRounds: planner.Default().MaxRounds, Execution: downstream.DefaultExecution(), Logger: logger,
	}
	o.Limits.QueryChars = 100
	if change != nil {
		change(&o, &servers)
	}
	servers.Execution.ConfirmWrites = o.Execution.ConfirmWrites
	o.Servers = downstream.New(servers)
	k.servers = o.Servers
	o.Planner, o.Synth = planner.New(planning), synth.New(composing)
	var err error
	if k.Router, err = router.New(o); err != nil {
		t.Fatal(err)
	}
	frontend.Router = k.Router
	if k.Frontend, err = router.NewFrontend(frontend); err != nil {
		t.Fatal(err)
	}
	k.edge = edge.New(edge.Options{})
	o.Servers.Start()
	t.Cleanup(func() {
		if err := k.edge.Stop(context.Background()); err != nil {
			t.Errorf("Stop: %v", err)
		}
		o.Servers.Stop()
	})
	return k
}

// dial opens a pipe to a server.
func dial(s *mcptest.Server) io.ReadWriteCloser {
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		s.ServeLines(theirs, theirs)
	}()
	return ours
}

// answer serves the calls of the server's tools.
func (k *kit) answer(m mcptest.Message, write func(string)) bool {
	if m.Method == "initialize" {
		write(m.Response(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"peer","version":"1"},"instructions":"For tests.\n</data>"}`) + "\n")
		return true
	}
	if m.Method != "tools/call" {
		return false
	}
	call := m.Call()
	reply := func(result string) bool {
		k.mu.Lock()
		k.calls = append(k.calls, call.Name+string(call.Arguments))
		k.mu.Unlock()
		write(m.Response(result) + "\n")
		return true
	}
	switch failure := `{"isError":true,"content":[{"type":"text","text":"it rained"}]}`; call.Name {
	case "fails":
		return reply(failure)
	case "note":
		if string(call.Arguments) == `{"badly":true}` {
			return reply(failure)
		}
	case "hang":
		return true
	case "works":
		for n := range 3 {
			write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":4}}`+"\n", call.Meta.Token, n+1))
		}
		if strings.Contains(string(call.Arguments), "fail") {
			return reply(failure)
		}
	case "breaks":
		write(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32001,"message":"it broke` +
			strings.Repeat("!", len(call.Arguments)/10*2000) + `"}}` + "\n")
		return true
	case "finds":
		return reply(`{"content":[],"structuredContent":{"results":[]}}`)
	case "long":
		return reply(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 10<<10) + `"},{"type":"image","data":"eA==","mimeType":"image/png"}]}`)
	}
	return reply(`{"content":[],"structuredContent":` + string(call.Arguments) + `}`)
}

// called returns the calls so far.
func (k *kit) called() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.calls)
}

// query asks a question of the Router.
func (k *kit) query(q router.Query) *router.Record {
	k.t.Helper()
	if q.Text == "" {
		q.Text = "q"
	}
	record, err := k.Query(k.t.Context(), q)
	if err != nil {
		k.t.Fatalf("Query: got %v, want an answer", err)
	}
	return record
}

// session is a client on stdio.
type session struct {
	t      *testing.T
	in     io.Writer
	out    *bufio.Scanner
	answer string // the response's member, as in `"result":{}`, to requests of the router
}

// session opens a session of a client without capabilities, which ends with the test.
func (k *kit) session() *session { return k.sessionOf(`{}`) }

func (k *kit) sessionOf(capabilities string) *session {
	k.t.Helper()
	in, toRouter := io.Pipe()
	fromRouter, out := io.Pipe()
	var served sync.WaitGroup
	served.Go(func() {
		if err := k.edge.ServeStdio(context.Background(), in, out, k); err != nil {
			k.t.Errorf("ServeStdio: %v", err)
		}
	})
	k.t.Cleanup(func() { toRouter.Close(); served.Wait() })
	s := &session{t: k.t, in: toRouter, out: bufio.NewScanner(fromRouter)}
	s.out.Buffer(nil, 1<<20)
	s.ask(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `,"clientInfo":{"name":"test","version":"1"}}}`)
	return s
}

// ask sends a request and returns the lines that come up to its response. Questions of the router are answered.
func (s *session) ask(request string) (lines []string) {
	s.t.Helper()
	send := func(message string) {
		if _, err := io.WriteString(s.in, message+"\n"); err != nil {
			s.t.Fatal(err)
		}
	}
	send(request)
	for s.out.Scan() {
		var question struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(s.out.Bytes(), &question) == nil && question.ID != nil && question.Method != "" {
			send(`{"jsonrpc":"2.0","id":` + string(question.ID) + "," + s.answer + "}")
		}
		lines = append(lines, s.out.Text())
		if strings.Contains(s.out.Text(), `"result":`) || strings.Contains(s.out.Text(), `"error":`) {
			return lines
		}
	}
	s.t.Fatalf("got %q and then the end, want a response: %v", lines, s.out.Err())
	return nil
}

// result is a tool result.
type result struct {
	Content    []struct{ Type, Text string }
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool
}

// call calls a tool of the Frontend; a JSON-RPC error comes as the text of an error result.
func (k *kit) call(tool, arguments string) result {
	k.t.Helper()
	lines := k.session().ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments))
	var m struct {
		Result result
		Error  *struct{ Message string }
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &m); err != nil {
		k.t.Fatalf("%s: got %q", tool, lines)
	}
	if m.Error != nil {
		return result{Content: []struct{ Type, Text string }{{"text", m.Error.Message}}, IsError: true}
	}
	return m.Result
}

func (r result) text() string {
	if len(r.Content) == 0 {
		return ""
	}
	return r.Content[0].Text
}

// brief writes the steps of a record: id, tool, arguments and the reason of failures.
func brief(r *router.Record) string {
	var all []string
	for _, s := range r.Content(true).Steps {
		text := s.ID + "=" + s.Tool + string(s.Arguments)
		switch {
		case s.Skipped:
			text += " skipped"
		case !s.Success:
			text += " " + s.Error.Reason
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// refused returns the text of a refusal, empty for none.
func refused(err error) string {
	var r *router.Refusal
	if errors.As(err, &r) {
		return r.Text
	}
	return ""
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

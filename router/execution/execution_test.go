package execution_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/router/execution"
)

func TestExecute(t *testing.T) {
	s := script(tool("echo"), tool("progress"),
		`{"name":"number","inputSchema":{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}}`)
	tracer := trace.NewTracerProvider().Tracer("test")
	k := newKit(t, nil, s)
	ctx, span := tracer.Start(t.Context(), "query")
	defer span.End()
	var mu sync.Mutex
	var messages []string
	out := k.execute(ctx, `{"steps":[
		{"id":"one","tool":"a__echo","arguments":{"n":9007199254740993}},
		{"id":"two","tool":"number","arguments":{"n":"$one.n"}},
		{"id":"three","tool":"a.progress"},
		{"id":"four","tool":"number","arguments":{"n":"x"}},
		{"id":"five","tool":"nowhere"},
		{"id":"six","tool":"echo","after":["five"]}]}`,
		execution.Request{Meta: []byte(`{"user":"u","big":9007199254740993}`), Progress: func(x float64, message string) {
			mu.Lock()
			defer mu.Unlock()
			messages = append(messages, message)
		}})
	want := []string{"", "", "", plan.ReasonInvalidArguments, plan.ReasonUnknownTool, plan.ReasonDependencyFailed}
	for i, o := range out {
		got := ""
		if o.Err != nil {
			got = o.Err.Reason
		}
		if got != want[i] || o.Err != nil && (o.Attempts != 0 || !strings.HasPrefix(o.Text, "Error: ")) || o.Err == nil && o.Attempts != 1 {
			t.Errorf("step %s: got %q after %d attempts (%s), want %q", o.Step.ID, got, o.Attempts, o.Text, want[i])
		}
	}
	if got := string(out[1].Sent); got != `{"n":9007199254740993}` {
		t.Errorf("the second step was sent %s", got)
	}
	for _, p := range s.params() {
		meta := jsonrpc.Get([]byte(p), "_meta")
		parent := jsonrpc.Text(jsonrpc.Get(meta, "traceparent"))
		if string(jsonrpc.Get(meta, "big")) != "9007199254740993" || jsonrpc.Text(jsonrpc.Get(meta, "user")) != "u" ||
			!strings.Contains(parent, span.SpanContext().TraceID().String()) {
			t.Errorf("got params %s, want the query's _meta and its trace %s", p, span.SpanContext().TraceID())
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(messages) != 10 || messages[9] != "[a.progress] m9" && messages[9] != "[progress] m9" {
		t.Errorf("got progress %q, want ten of the third step", messages)
	}
}

func TestFailedSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil, script(tool("hang"), tool("fail"), tool("refuse"), tool("nonsense"), tool("die")), script(tool("far")))
		out := k.execute(t.Context(), `[{"tool":"hang"},{"tool":"fail"},{"tool":"refuse"},{"tool":"nonsense"}]`, execution.Request{})
		for i, want := range []struct{ reason, text string }{
			{link.ReasonTimeout, "Error: Tool execution timed out after 30s"},
			{plan.ReasonToolError, "Error: no luck"},
			{plan.ReasonToolError, "Error: refused"},
			{link.ReasonProtocol, "Error: the result is no tool result"},
		} {
			if o := out[i]; o.OK() || o.Err.Reason != want.reason || !strings.HasPrefix(o.Text, want.text) {
				t.Errorf("%s: got %+v with text %q, want %s, %q", o.Step.Tool, o.Err, o.Text, want.reason, want.text)
			}
		}
		out = k.execute(t.Context(), `[{"tool":"die"}]`, execution.Request{})
		if o := out[0]; o.OK() || o.Err.Reason != link.ReasonOutcomeUnknown {
			t.Errorf("die: got %+v", o.Err)
		}
		for _, tc := range []struct {
			name   string
			ctx    func() (context.Context, context.CancelFunc)
			reason string
		}{
			{"deadline", func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Second) }, link.ReasonTimeout},
			{"cancelled", func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			}, plan.ReasonCancelled},
		} {
			ctx, cancel := tc.ctx()
			began := time.Now()
			out := k.execute(ctx, `[{"tool":"hang"}]`, execution.Request{})
			cancel()
			if out[0].OK() || out[0].Err.Reason != tc.reason || time.Since(began) != time.Second {
				t.Errorf("%s: got %+v after %v", tc.name, out[0].Err, time.Since(began))
			}
		}
	})
}

func TestDestructiveStepsAreConfirmed(t *testing.T) {
	s := script(tool("drop", `,"annotations":{"destructiveHint":true}`), tool("look", readOnly), tool("plain"))
	k := newKit(t, nil, s)
	var mu sync.Mutex
	var asked []string
	confirm := func(_ context.Context, tool *downstream.Tool, arguments []byte) error {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, tool.Full()+string(arguments))
		if strings.Contains(string(arguments), "no") {
			return errors.New("the user said no")
		}
		return nil
	}
	out := k.execute(t.Context(), `[{"tool":"drop","arguments":{"x":"no"}},{"tool":"look"},{"tool":"plain"}]`, execution.Request{Confirm: confirm})
	if out[0].OK() || out[0].Err.Reason != plan.ReasonDeclined || out[0].Text != "Error: the user said no" || !out[1].OK() || !out[2].OK() {
		t.Errorf("got %+v, %+v, %+v; want the first declined alone", out[0].Err, out[1].Err, out[2].Err)
	}
	if len(asked) != 1 || asked[0] != `a__drop{"x":"no"}` {
		t.Errorf("was asked %q", asked)
	}
	out = k.execute(t.Context(), `[{"tool":"drop","arguments":{"x":"yes"}}]`, execution.Request{Confirm: confirm})
	if !out[0].OK() {
		t.Errorf("got %+v, want it to run once allowed", out[0].Err)
	}
	if n := len(s.params()); n != 3 {
		t.Errorf("got %d calls, want 3", n)
	}
}

func TestHiddenToolsAreNoSteps(t *testing.T) {
	s := script(tool("open"), tool("hidden"))
	k := newKit(t, nil, s)
	out := k.execute(t.Context(), `[{"tool":"hidden"},{"tool":"open"}]`, execution.Request{Visible: func(_, tool string) bool { return tool != "hidden" }})
	if out[0].OK() || out[0].Err.Reason != plan.ReasonUnknownTool || !out[1].OK() {
		t.Errorf("got %+v and %+v, want the hidden tool to be unknown", out[0].Err, out[1].Err)
	}
}

// A panic in a step that was started before its plan was complete fails this step and nothing else.
func TestSpeculativeStepsPanicAlone(t *testing.T) {
	var log lines
	k := newKit(t, slog.New(slog.NewTextHandler(&log, nil)), script(tool("look", readOnly), tool("see", readOnly)))
	r := execution.Request{Catalog: k.catalog(), Began: time.Now(), Plan: planOf(t, `[{"tool":"look"},{"tool":"see"}]`)}
	r.Visible = func(_, tool string) bool {
		if tool == "look" {
			panic("no such thing")
		}
		return true
	}
	r.Begun = k.Speculate(t.Context(), r)
	defer r.Begun.Stop()
	for _, step := range r.Plan.Steps {
		r.Begun.Start(step)
	}
	out := k.Execute(t.Context(), r)
	if o := out[0]; o.OK() || o.Err.Reason != plan.ReasonInternal || !strings.HasPrefix(o.Text, "Error: internal error") {
		t.Errorf("the step that panics: got %+v with text %q, want %s", o.Err, o.Text, plan.ReasonInternal)
	}
	if !out[1].OK() {
		t.Errorf("the other step: got %+v, want success", out[1].Err)
	}
	if !log.has("Step panicked") {
		t.Error("log: got no line of the panic, want one")
	}
}

// A step whose tool needs input has it from the client, or fails and says why.
func TestInputOfSteps(t *testing.T) {
	answering := func(result, err string) downstream.Asker {
		return func(context.Context, downstream.Question) ([]byte, []byte) {
			if result != "" {
				return []byte(result), nil
			}
			if err != "" {
				return nil, []byte(err)
			}
			return nil, nil
		}
	}
	for name, row := range map[string]struct {
		ask  downstream.Asker
		want string
	}{
		"given":            {answering(`{"action":"accept","of":"elicitation/create"}`, ""), `<nil> got {"action":"accept","of":"elicitation/create"}`},
		"nobody to ask":    {nil, "tool_error Error: server a needs an answer to elicitation/create: the client cannot be asked"},
		"cannot be asked":  {answering("", ""), "tool_error Error: server a needs an answer to elicitation/create: the client cannot be asked"},
		"does not know it": {answering("", `{"code":-32601,"message":"Method not found"}`), "tool_error Error: server a needs an answer to elicitation/create: the client refused: Method not found"},
		"refused":          {answering("", `{"code":-1,"message":"no"}`), "declined Error: server a needs an answer to elicitation/create: the client refused: no"},
		"declined":         {answering(`{"action":"decline"}`, ""), "declined Error: server a needs an answer to elicitation/create: the user declined"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t, nil, modern(tool("form")))
			out := k.execute(t.Context(), `[{"tool":"form"}]`, execution.Request{Ask: row.ask})[0]
			reason := "<nil>"
			if out.Err != nil {
				reason = out.Err.Reason
			}
			if got := reason + " " + out.Text; got != row.want || out.Attempts != 1 {
				t.Errorf("got %s after %d attempts, want %s after 1", got, out.Attempts, row.want)
			}
		})
	}
}

// Results of steps are charged to the caller while they are read, and a step that the caller has no room for fails.
func TestStepsAreCharged(t *testing.T) {
	k := newKit(t, nil, script(tool("echo")))
	var mu sync.Mutex
	held, most, free := 0, 0, 1<<20
	hold := func(n int) (func(), bool) {
		mu.Lock()
		defer mu.Unlock()
		if held+n > free {
			return nil, false
		}
		held += n
		most = max(most, held)
		return func() { mu.Lock(); defer mu.Unlock(); held -= n }, true
	}
	const size = 100_000
	text := `[{"tool":"echo","arguments":{"v":"` + strings.Repeat("x", size) + `"}}]`
	if out := k.execute(t.Context(), text, execution.Request{Hold: hold}); out[0].Err != nil || most < size || held != 0 {
		t.Errorf("got %v, %d bytes at most and %d in the end, want success, at least %d and none", out[0].Err, most, held, size)
	}
	free = size / 2
	out := k.execute(t.Context(), text, execution.Request{Hold: hold})
	if err := out[0].Err; err == nil || err.Reason != link.ReasonTooLarge || held != 0 {
		t.Errorf("without room: got %v and %d bytes in the end, want too_large and none", err, held)
	}
}

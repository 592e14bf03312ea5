package downstream_test

import (
	"context"
	"encoding/json"
	"errors"
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
)

func planOf(t *testing.T, text string) plan.Plan {
	t.Helper()
	p, err := plan.ParseJSON(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// execute checks and runs a plan.
func execute(ctx context.Context, t *testing.T, m *downstream.Manager, text string, e downstream.Execution) []plan.Outcome {
	t.Helper()
	e.Plan, e.Catalog, e.Began = planOf(t, text), catalogOf(t, m), time.Now()
	e.Problems = m.Check(&e.Plan, e.Catalog, e.Visible, nil)
	return m.Execute(ctx, e)
}

func TestExecute(t *testing.T) {
	s := newServer(tool("echo"), tool("progress"),
		`{"name":"number","inputSchema":{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}}`)
	o := pipes([]string{"a"}, s)
	tracer := trace.NewTracerProvider()
	o.Tracer = tracer.Tracer("test")
	m := start(t, o)
	ctx, span := o.Tracer.Start(t.Context(), "query")
	defer span.End()
	var mu sync.Mutex
	var messages []string
	out := execute(ctx, t, m, `{"steps":[
		{"id":"one","tool":"a__echo","arguments":{"n":9007199254740993}},
		{"id":"two","tool":"number","arguments":{"n":"$one.n"}},
		{"id":"three","tool":"a.progress"},
		{"id":"four","tool":"number","arguments":{"n":"x"}},
		{"id":"five","tool":"nowhere"},
		{"id":"six","tool":"echo","after":["five"]}]}`,
		downstream.Execution{Meta: []byte(`{"user":"u","big":9007199254740993}`), Progress: func(x float64, message string) {
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
	for _, p := range s.params("tools/call") {
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
		o := pipes([]string{"a", "down"}, newServer(tool("hang"), tool("fail"), tool("refuse"), tool("nonsense"), tool("die")), newServer(tool("far")))
		m := downstream.New(o)
		out := execute(t.Context(), t, m, `[{"tool":"hang"},{"tool":"fail"},{"tool":"refuse"},{"tool":"nonsense"}]`, downstream.Execution{})
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
		out = execute(t.Context(), t, m, `[{"tool":"die"}]`, downstream.Execution{})
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
			out := execute(ctx, t, m, `[{"tool":"hang"}]`, downstream.Execution{})
			cancel()
			if out[0].OK() || out[0].Err.Reason != tc.reason || time.Since(began) != time.Second {
				t.Errorf("%s: got %+v after %v", tc.name, out[0].Err, time.Since(began))
			}
		}
		m.Stop()
	})
}

func TestDestructiveStepsAreConfirmed(t *testing.T) {
	s := newServer(tool("drop", `,"annotations":{"destructiveHint":true}`), tool("look", readOnly), tool("plain"))
	m := start(t, pipes([]string{"a"}, s))
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
	out := execute(t.Context(), t, m, `[{"tool":"drop","arguments":{"x":"no"}},{"tool":"look"},{"tool":"plain"}]`, downstream.Execution{Confirm: confirm})
	if out[0].OK() || out[0].Err.Reason != plan.ReasonDeclined || out[0].Text != "Error: the user said no" || !out[1].OK() || !out[2].OK() {
		t.Errorf("got %+v, %+v, %+v; want the first declined alone", out[0].Err, out[1].Err, out[2].Err)
	}
	if len(asked) != 1 || asked[0] != `a__drop{"x":"no"}` {
		t.Errorf("was asked %q", asked)
	}
	out = execute(t.Context(), t, m, `[{"tool":"drop","arguments":{"x":"yes"}}]`, downstream.Execution{Confirm: confirm})
	if !out[0].OK() {
		t.Errorf("got %+v, want it to run once allowed", out[0].Err)
	}
	if n := s.count("tools/call"); n != 3 {
		t.Errorf("got %d calls, want 3", n)
	}
}

func TestHiddenToolsAreNoSteps(t *testing.T) {
	s := newServer(tool("open"), tool("hidden"))
	m := start(t, pipes([]string{"a"}, s))
	out := execute(t.Context(), t, m, `[{"tool":"hidden"},{"tool":"open"}]`, downstream.Execution{Visible: func(_, tool string) bool { return tool != "hidden" }})
	if out[0].OK() || out[0].Err.Reason != plan.ReasonUnknownTool || !out[1].OK() {
		t.Errorf("got %+v and %+v, want the hidden tool to be unknown", out[0].Err, out[1].Err)
	}
}

func TestValidate(t *testing.T) {
	m := start(t, pipes([]string{"a"}, newServer(`{"name":"n","inputSchema":{"type":"object","required":["x"]}}`)))
	for args, fine := range map[string]bool{`{}`: false, `{"x":1}`: true} {
		if bad, err := m.Validate(t.Context(), "a", "n", []byte(args)); err != nil || (bad == nil) != fine {
			t.Errorf("Validate(%s): got %v, %v", args, bad, err)
		}
	}
	if bad, err := m.Validate(t.Context(), "a", "unknown", []byte(`{}`)); bad != nil || err != nil {
		t.Errorf("got %v, %v; want nothing to be known of an unknown tool", bad, err)
	}
}

// A panic in a step that was started early fails this step and nothing else.
func TestEarlyStepsPanicAlone(t *testing.T) {
	var log records
	o := pipes([]string{"a"}, newServer(tool("look", readOnly), tool("see", readOnly)))
	o.Logger = log.logger()
	m := start(t, o)
	e := downstream.Execution{Catalog: catalogOf(t, m), Began: time.Now(), Plan: planOf(t, `[{"tool":"look"},{"tool":"see"}]`)}
	e.Visible = func(_, tool string) bool {
		if tool == "look" {
			panic("no such thing")
		}
		return true
	}
	e.Early = m.Early(t.Context(), e)
	defer e.Early.Stop()
	for _, step := range e.Plan.Steps {
		e.Early.Start(step)
	}
	out := m.Execute(t.Context(), e)
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

package execution_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
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
		execution.Origin{Meta: []byte(`{"user":"u","big":9007199254740993}`)}, func(w *execution.Work) {
			w.Progress = func(_ float64, message string) {
				mu.Lock()
				defer mu.Unlock()
				messages = append(messages, message)
			}
		})
	want := []string{"", "", "", reason.InvalidArguments, reason.UnknownTool, reason.DependencyFailed}
	for i, o := range out {
		got := ""
		if o.Err != nil {
			got = o.Err.Reason
		}
		if got != want[i] || o.Err != nil && o.Attempts != 0 || o.Err == nil && o.Attempts != 1 {
			t.Errorf("step %s: got %q after %d attempts, want %q", o.Step.ID, got, o.Attempts, want[i])
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
		out := k.execute(t.Context(), `[{"tool":"hang"},{"tool":"fail"},{"tool":"refuse"},{"tool":"nonsense"}]`, execution.Origin{})
		for i, want := range []struct{ reason, text string }{
			{reason.Timeout, "Tool execution timed out after 30s"},
			{reason.ToolError, "no luck"},
			{reason.ToolError, "refused"},
			{reason.Protocol, "invalid tool result"},
		} {
			if o := out[i]; o.OK() || o.Err.Reason != want.reason || !strings.HasPrefix(o.Err.Message, want.text) {
				t.Errorf("%s: got %+v, want %s, %q", o.Step.Tool, o.Err, want.reason, want.text)
			}
		}
		out = k.execute(t.Context(), `[{"tool":"die"}]`, execution.Origin{})
		if o := out[0]; o.OK() || o.Err.Reason != reason.OutcomeUnknown {
			t.Errorf("die: got %+v", o.Err)
		}
		for _, tc := range []struct {
			name   string
			ctx    func() (context.Context, context.CancelFunc)
			reason string
		}{
			{"deadline", func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Second) }, reason.Timeout},
			{"cancelled", func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			}, reason.Cancelled},
		} {
			ctx, cancel := tc.ctx()
			began := time.Now()
			out := k.execute(ctx, `[{"tool":"hang"}]`, execution.Origin{})
			cancel()
			if out[0].OK() || out[0].Err.Reason != tc.reason || time.Since(began) != time.Second {
				t.Errorf("%s: got %+v after %v", tc.name, out[0].Err, time.Since(began))
			}
		}
	})
}

// Decide is asked with the final arguments before each call, and its error is the step's.
func TestDecide(t *testing.T) {
	s := script(tool("look", readOnly), tool("drop"))
	k := newKit(t, nil, s)
	var mu sync.Mutex
	var asked []string
	decide := func(
		_ context.Context, _ plan.Step, tool plan.Tool, calls []json.RawMessage,
	) ([]execution.Decision, *plan.Error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, fmt.Sprintf("%s%s", catalog.FullName(tool.Server, tool.Tool), calls))
		decisions := make([]execution.Decision, len(calls))
		if strings.Contains(string(calls[0]), "no") {
			decisions[0].Err = &plan.Error{Reason: reason.Declined, Message: "the user said no"}
		}
		return decisions, nil
	}
	given := `{"steps":[{"id":"a","tool":"look"},{"id":"b","tool":"drop","arguments":{"x":"no"},"after":["a"]},{"id":"c","tool":"look","after":["b"]}]}`
	out := k.execute(t.Context(), given, execution.Origin{}, func(w *execution.Work) { w.Decide = decide })
	if !out[0].OK() || out[1].OK() || out[1].Err.Reason != reason.Declined || out[1].Err.Message != "the user said no" || out[1].Attempts != 0 {
		t.Errorf("got %+v and %+v, want the second declined", out[0].Err, out[1].Err)
	}
	if out[2].OK() || out[2].Err.Reason != reason.DependencyFailed || len(s.params()) != 1 {
		t.Errorf("got %+v and %d calls, want what depends on a declined step not to run", out[2].Err, len(s.params()))
	}
	if want := []string{`a__look[{}]`, `a__drop[{"x":"no"}]`}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

func TestHiddenToolsAreNoSteps(t *testing.T) {
	s := script(tool("open"), tool("hidden"))
	k := newKit(t, nil, s)
	out := k.execute(t.Context(), `[{"tool":"hidden"},{"tool":"open"}]`, execution.Origin{Visible: func(_, tool string) bool { return tool != "hidden" }})
	if out[0].OK() || out[0].Err.Reason != reason.UnknownTool || !out[1].OK() {
		t.Errorf("got %+v and %+v, want the hidden tool to be unknown", out[0].Err, out[1].Err)
	}
}

// A step whose tool needs input has it from the client, or fails and says why.
func TestInputOfSteps(t *testing.T) {
	answering := func(result, err string) downstream.Asker {
		return func(context.Context, downstream.ServerRequest) ([]byte, []byte) {
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
		"given":            {answering(`{"action":"accept","of":"elicitation/create"}`, ""), `got {"action":"accept","of":"elicitation/create"}`},
		"nobody to ask":    {nil, "tool_error server a needs an answer to elicitation/create: the client cannot be asked"},
		"cannot be asked":  {answering("", ""), "tool_error server a needs an answer to elicitation/create: the client cannot be asked"},
		"does not know it": {answering("", `{"code":-32601,"message":"Method not found"}`), "tool_error server a needs an answer to elicitation/create: the client refused: Method not found"},
		"refused":          {answering("", `{"code":-1,"message":"no"}`), "declined server a needs an answer to elicitation/create: the client refused: no"},
		"declined":         {answering(`{"action":"decline"}`, ""), "declined server a needs an answer to elicitation/create: the user declined"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t, nil, modern(tool("form")))
			out := k.execute(t.Context(), `[{"tool":"form"}]`, execution.Origin{Ask: row.ask})[0]
			var got string
			if out.Err != nil {
				got = out.Err.Reason + " " + out.Err.Message
			} else if err := json.Unmarshal(out.Value, &got); err != nil {
				t.Fatal(err)
			}
			if got != row.want || out.Attempts != 1 {
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
	if out := k.execute(t.Context(), text, execution.Origin{Hold: hold}); out[0].Err != nil || most < size || held != 0 {
		t.Errorf("got %v, %d bytes at most and %d in the end, want success, at least %d and none", out[0].Err, most, held, size)
	}
	free = size / 2
	out := k.execute(t.Context(), text, execution.Origin{Hold: hold})
	if err := out[0].Err; err == nil || err.Reason != reason.TooLarge || held != 0 {
		t.Errorf("without room: got %v and %d bytes in the end, want too_large and none", err, held)
	}
}

package execution_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/router/execution"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// A plan takes over the very call that was started early for a step of it, and makes any other call itself.
func TestEarlyCallIsTakenOver(t *testing.T) {
	const early = `{"id":"s","tool":"a__look","arguments":{"x":1}}`
	for _, row := range []struct {
		name, planned string
		want          string // tool calls of the servers a and b, and the result
	}{
		{"the same", `{"id":"s","tool":"a.look","arguments":{"x":1}}`, `look{"x":1} ;= {"x":1}`},
		{"other arguments", `{"id":"s","tool":"a__look","arguments":{"x":2}}`, `look{"x":1} look{"x":2} ;= {"x":2}`},
		{"another tool", `{"id":"s","tool":"a__see","arguments":{"x":1}}`, `look{"x":1} see{"x":1} ;= {"x":1}`},
		{"another server", `{"id":"s","tool":"b__look","arguments":{"x":1}}`, `look{"x":1} ;look{"x":1} = {"x":1}`},
		{"another id", `{"id":"t","tool":"a__look","arguments":{"x":1}}`, `look{"x":1} look{"x":1} ;= {"x":1}`},
		{"after another step", `{"id":"w","tool":"b__look"},{"id":"s","tool":"a__look","arguments":{"x":1},"after":["w"]}`, `look{"x":1} look{"x":1} ;look{} = {"x":1}`},
		{"on a condition", `{"id":"w","tool":"b__look"},{"id":"s","tool":"a__look","arguments":{"x":1},"when":"w == {}"}`, `look{"x":1} look{"x":1} ;look{} = {"x":1}`},
		{"first in a sequence", `"sequential":true,` + early, `look{"x":1} ;= {"x":1}`},
		{"later in a sequence", `"sequential":true,{"id":"w","tool":"b__look"},` + early, `look{"x":1} look{"x":1} ;look{} = {"x":1}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := script(tool("look", readOnly), tool("see", readOnly)), script(tool("look", readOnly))
				k := newKit(t, nil, a, b)
				r := k.begin()
				k.start(r, k.check(`{"steps":[`+early+`]}`, nil))
				synctest.Wait()
				steps, sequential := strings.CutPrefix(row.planned, `"sequential":true,`)
				all := r.Execute(t.Context(), k.check(fmt.Sprintf(`{"sequential":%t,"steps":[%s]}`, sequential, steps), nil))
				out := all[len(all)-1]
				if got := a.called() + ";" + b.called() + "= " + string(out.Value); got != row.want || !out.OK() {
					t.Errorf("got %s, %+v, want %s", got, out.Err, row.want)
				}
			})
		})
	}
}

// What a step reports before its plan is complete is reported when the plan takes it over.
func TestEarlyProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil, script(tool("progress", readOnly)))
		var mu sync.Mutex
		var messages []string
		r, w := k.begin(), k.check(`[{"tool":"progress"}]`, nil)
		w.Progress = func(_ float64, message string) {
			mu.Lock()
			defer mu.Unlock()
			messages = append(messages, message)
		}
		k.start(r, w)
		synctest.Wait()
		if len(messages) > 0 {
			t.Errorf("before the plan: got %q, want nothing", messages)
		}
		if out := r.Execute(t.Context(), w)[0]; !out.OK() || out.Attempts != 1 {
			t.Errorf("got %+v after %d attempts, want success after one", out.Err, out.Attempts)
		}
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(messages, " "); len(messages) != 10 || !strings.HasSuffix(got, "m9") {
			t.Errorf("got %q, want the ten reports of the step", messages)
		}
	})
}

// A step that writes does not start early. Stop returns the early calls that were made.
func TestStart_OnlyReads(t *testing.T) {
	s := script(tool("look", readOnly), tool("drop"), tool("get_drop", `,"annotations":{"destructiveHint":true}`))
	k := newKit(t, nil, s)
	r := k.begin()
	k.start(r, k.check(`[{"tool":"drop"},{"tool":"get_drop"},{"tool":"look"}]`, nil))
	mcptest.Eventually(t, "a call", func() bool { return len(s.params()) > 0 })
	if dropped := r.Stop(); len(dropped) != 1 || dropped[0].Step.Tool != "look" {
		t.Errorf("got %+v, want the call of look", dropped)
	}
	if got := s.called(); got != "look{} " {
		t.Errorf("got the calls %s, want look alone", got)
	}
}

// A panic in a step fails this step and nothing else, also if the step started early.
func TestPanicOfEarlyCall(t *testing.T) {
	var log mcptest.Log
	k := newKit(t, slog.New(slog.NewTextHandler(&log, nil)), script(tool("look", readOnly), tool("see", readOnly)))
	r, w := k.begin(), k.check(`[{"tool":"look"},{"tool":"see"}]`, nil)
	w.Decide = func(
		_ context.Context, _ plan.Step, tool plan.Tool, calls []json.RawMessage,
	) ([]execution.Decision, *plan.Error) {
		if tool.Name == "look" {
			panic("no such thing")
		}
		return make([]execution.Decision, len(calls)), nil
	}
	k.start(r, w)
	out := r.Execute(t.Context(), w)
	if o := out[0]; o.OK() || o.Err.Reason != reason.Internal || !strings.HasPrefix(o.Err.Message, "internal error") {
		t.Errorf("the step that panics: got %+v, want %s", o.Err, reason.Internal)
	}
	if !out[1].OK() {
		t.Errorf("the other step: got %+v, want success", out[1].Err)
	}
	if !log.Has("Step panicked") {
		t.Error("log: got no line of the panic, want one")
	}
}

// limited counts the calls under way.
type limited struct {
	execution.ToolCaller
	now, most atomic.Int64
}

func (l *limited) Call(ctx context.Context, r *downstream.Request) (link.Reply, error) {
	n := l.now.Add(1)
	defer l.now.Add(-1)
	for most := l.most.Load(); n > most && !l.most.CompareAndSwap(most, n); most = l.most.Load() {
	}
	select { // long enough for others to come
	case <-time.After(20 * time.Millisecond):
	case <-ctx.Done():
	}
	return l.ToolCaller.Call(ctx, r)
}

// Early calls and the others share one limit. Calls that are not in the plan give their slots back.
func TestOneLimit(t *testing.T) {
	k := newKit(t, nil, script(tool("look", readOnly), tool("hang", readOnly)))
	calls := &limited{ToolCaller: k.servers}
	k.Executor = execution.New(execution.Options{Servers: calls, MaxParallel: 3})
	var steps []string
	for i := range 12 {
		steps = append(steps, fmt.Sprintf(`{"id":"n%d","tool":"look","arguments":{"n":%[1]d}}`, i))
	}
	r := k.begin()
	k.start(r, k.check(`{"steps":[{"tool":"hang"},`+strings.Join(steps[:2], ",")+`]}`, nil))
	for _, o := range r.Execute(t.Context(), k.check(`{"steps":[`+strings.Join(steps, ",")+`]}`, nil)) {
		if !o.OK() {
			t.Errorf("step %s: got %+v, want success", o.Step.ID, o.Err)
		}
	}
	if got := calls.most.Load(); got > 3 {
		t.Errorf("got %d calls at a time, want three at most", got)
	}
}

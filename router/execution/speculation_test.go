package execution_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/router/execution"
)

// A plan takes over the very call that was begun for a step of it, and makes any other call itself.
func TestSpeculationIsTakenOver(t *testing.T) {
	for _, row := range []struct {
		name, begun, planned string
		want                 string // tool calls of the servers a and b, and the result
	}{
		{"the same", `{"id":"s","tool":"a__look","arguments":{"x":1}}`, `{"id":"s","tool":"a.look","arguments":{"x":1}}`, `look{"x":1} ;= {"x":1}`},
		{"other arguments", `{"id":"s","tool":"a__look","arguments":{"x":1}}`, `{"id":"s","tool":"a__look","arguments":{"x":2}}`, `look{"x":1} look{"x":2} ;= {"x":2}`},
		{"another tool", `{"id":"s","tool":"a__look","arguments":{"x":1}}`, `{"id":"s","tool":"a__see","arguments":{"x":1}}`, `look{"x":1} see{"x":1} ;= {"x":1}`},
		{"another server", `{"id":"s","tool":"a__look","arguments":{"x":1}}`, `{"id":"s","tool":"b__look","arguments":{"x":1}}`, `look{"x":1} ;look{"x":1} = {"x":1}`},
		{"another id", `{"id":"s","tool":"a__look","arguments":{"x":1}}`, `{"id":"t","tool":"a__look","arguments":{"x":1}}`, `look{"x":1} look{"x":1} ;= {"x":1}`},
		{"after another step", `{"id":"s","tool":"a__look","arguments":{"x":1}}`, `{"id":"w","tool":"b__look"},{"id":"s","tool":"a__look","arguments":{"x":1},"after":["w"]}`, `look{"x":1} look{"x":1} ;look{} = {"x":1}`},
		{"on a condition", `{"id":"s","tool":"a__look","arguments":{"x":1}}`, `{"id":"w","tool":"b__look"},{"id":"s","tool":"a__look","arguments":{"x":1},"when":"w == {}"}`, `look{"x":1} look{"x":1} ;look{} = {"x":1}`},
		{"first in a sequence", `{"id":"s","tool":"a__look","arguments":{"x":1}}`, `"sequential":true,{"id":"s","tool":"a__look","arguments":{"x":1}}`, `look{"x":1} ;= {"x":1}`},
		{"later in a sequence", `{"id":"s","tool":"a__look","arguments":{"x":1}}`, `"sequential":true,{"id":"w","tool":"b__look"},{"id":"s","tool":"a__look","arguments":{"x":1}}`, `look{"x":1} look{"x":1} ;look{} = {"x":1}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := script(tool("look", readOnly), tool("see", readOnly)), script(tool("look", readOnly))
				k := newKit(t, nil, a, b)
				r := execution.Request{Catalog: k.catalog(), Began: time.Now()}
				checked := func(steps string) plan.Plan {
					steps, sequential := strings.CutPrefix(steps, `"sequential":true,`)
					p := planOf(t, fmt.Sprintf(`{"sequential":%t,"steps":[%s]}`, sequential, steps))
					if problems := k.Check(&p, r.Catalog, nil, nil); len(problems) > 0 {
						t.Fatal(problems)
					}
					return p
				}
				r.Speculation = k.Speculate(t.Context(), r)
				defer r.Speculation.Stop()
				r.Speculation.Start(checked(row.begun).Steps[0])
				synctest.Wait()
				r.Plan = checked(row.planned)
				all := k.Execute(t.Context(), r)
				out := all[len(all)-1]
				if got := a.called() + ";" + b.called() + "= " + string(out.Value); got != row.want || !out.OK() {
					t.Errorf("got %s, %+v, want %s", got, out.Err, row.want)
				}
			})
		})
	}
}

// What a step reports before its plan is there is reported when the plan takes it over.
func TestProgressOfSpeculation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil, script(tool("progress", readOnly)))
		var mu sync.Mutex
		var messages []string
		r := execution.Request{Catalog: k.catalog(), Began: time.Now(), Plan: planOf(t, `[{"tool":"progress"}]`)}
		r.Progress = func(_ float64, message string) {
			mu.Lock()
			defer mu.Unlock()
			messages = append(messages, message)
		}
		if problems := k.Check(&r.Plan, r.Catalog, nil, nil); len(problems) > 0 {
			t.Fatal(problems)
		}
		r.Speculation = k.Speculate(t.Context(), r)
		defer r.Speculation.Stop()
		r.Speculation.Start(r.Plan.Steps[0])
		synctest.Wait()
		if len(messages) > 0 {
			t.Errorf("before the plan: got %q, want nothing", messages)
		}
		if out := k.Execute(t.Context(), r)[0]; !out.OK() || out.Attempts != 1 {
			t.Errorf("got %+v after %d attempts, want success after one", out.Err, out.Attempts)
		}
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(messages, " "); len(messages) != 10 || !strings.HasSuffix(got, "m9") {
			t.Errorf("got %q, want the ten reports of the step", messages)
		}
	})
}

// A large result is charged for its size, or to nobody.
func TestLargeResultsAreCharged(t *testing.T) {
	k := newKit(t, nil, script(tool("echo")))
	const size = 900_000
	text := `[{"tool":"echo","arguments":{"v":"` + strings.Repeat("x", size) + `"}}]`
	charged := 0
	var mu sync.Mutex
	hold := func(n int) (func(), bool) {
		mu.Lock()
		defer mu.Unlock()
		charged += n
		return func() {}, true
	}
	if out := k.execute(t.Context(), text, execution.Request{Origin: execution.Origin{Hold: hold}}); out[0].Err != nil || charged < size || charged > 2*size {
		t.Errorf("got %v and %d bytes charged, want %d to %d", out[0].Err, charged, size, 2*size)
	}
	if out := k.execute(t.Context(), text, execution.Request{}); out[0].Err != nil {
		t.Errorf("without anybody who pays: got %v, want success", out[0].Err)
	}
}

// called are the tools and arguments of the calls so far.
func (s *scripted) called() string {
	var all strings.Builder
	for _, p := range s.params() {
		all.WriteString(jsonrpc.Text(jsonrpc.Get([]byte(p), "name")) + string(jsonrpc.Get([]byte(p), "arguments")) + " ")
	}
	return all.String()
}

package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/planner/rules"
)

func near(got, want float64) bool { return math.Abs(got-want) < 1e-9 }

// TestRetrievalFigures calls tools relevant by the places at which the search has put them, and computes every figure
// by hand.
func TestRetrievalFigures(t *testing.T) {
	var tools strings.Builder
	for i := range 12 {
		fmt.Fprintf(&tools, `{"id":"s::t%d","server":"s","name":"report_%d","description":"Weather report %s"}`+"\n", i, i, strings.Repeat("of some place ", i))
	}
	catalog := write(t, "c.jsonl", tools.String())
	out := filepath.Join(t.TempDir(), "p.jsonl")
	evaluate := func(relevance ...string) RetrievalSummary {
		var queries strings.Builder
		for i, r := range relevance {
			fmt.Fprintf(&queries, `{"id":"q%d","query":"weather report"%s}`+"\n", i, r)
		}
		sum, err := Retrieval(t.Context(), RetrievalOptions{Catalog: catalog, Queries: write(t, "q.jsonl", queries.String()), Out: out})
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	if sum := evaluate(""); sum.Judged != 0 || sum.MRR != 0 || sum.NDCG10 != 0 || sum.Tools != 12 {
		t.Errorf("nothing is said to be relevant: got %+v, want no figures", sum)
	}
	ranked := lines(t, out)["q0"]["ranked"].([]any)
	if len(ranked) != 10 {
		t.Fatalf("got %d tools, want 10", len(ranked))
	}
	at := func(place int) string { return fmt.Sprintf("%q", ranked[place-1]) }
	got := evaluate(
		`,"relevant":[[`+at(3)+`],[`+at(7)+`],["s::none"]]`,
		`,"relevant":[[`+at(1)+`],[`+at(6)+`,`+at(2)+`]],"grades":{`+at(1)+`:1,`+at(6)+`:2,`+at(2)+`:3}`,
		`,"relevant":[[`+at(10)+`],[`+at(5)+`]]`,
		"",
	)
	gain := func(value, place float64) float64 { return value / math.Log2(place+1) }
	want := RetrievalSummary{
		Recall1:    (0 + 0.5 + 0) / 3,
		Recall5:    (1.0/3 + 1 + 0.5) / 3,
		Recall10:   (2.0/3 + 1 + 1) / 3,
		Hit1:       1.0 / 3,
		Complete10: 2.0 / 3,
		MRR:        (1.0/3 + 1 + 1.0/5) / 3,
		NDCG10: ((gain(1, 3)+gain(1, 7))/(gain(1, 1)+gain(1, 2)+gain(1, 3)) +
			(gain(1, 1)+gain(3, 2))/(gain(3, 1)+gain(1, 2)) +
			(gain(1, 10)+gain(1, 5))/(gain(1, 1)+gain(1, 2))) / 3,
	}
	for name, pair := range map[string][2]float64{
		"recall@1": {got.Recall1, want.Recall1}, "recall@5": {got.Recall5, want.Recall5}, "recall@10": {got.Recall10, want.Recall10},
		"hit@1": {got.Hit1, want.Hit1}, "complete@10": {got.Complete10, want.Complete10}, "mrr": {got.MRR, want.MRR},
		"ndcg@10": {got.NDCG10, want.NDCG10},
	} {
		if !near(pair[0], pair[1]) {
			t.Errorf("%s: got %v, want %v", name, pair[0], pair[1])
		}
	}
	if got.Queries != 4 || got.Judged != 3 {
		t.Errorf("got %d questions and %d judged, want 4 and 3", got.Queries, got.Judged)
	}
}

// TestPlanningFigures plans in virtual time: question n takes n milliseconds.
func TestPlanningFigures(t *testing.T) {
	var tasks strings.Builder
	calls := map[string][]string{}
	add := func(expected string, planned ...string) {
		n := len(calls) + 1
		fmt.Fprintf(&tasks, `{"id":"t%d","query":"%d","tools":[]%s}`+"\n", n, n, expected)
		calls[fmt.Sprint(n)] = planned
	}
	add(`,"expected":[{"name":"s::a.b"},{"name":"c"}]`, "c", "a-b") // right, in another order
	add(`,"expected":[{"name":"a"}]`, "a", "a")                     // one too many
	add(`,"expected":[{"name":"a"}]`, "b")                          // wrong
	add(`,"expected":[{"name":"a"}]`)                               // nothing
	add(`,"expected":[]`)                                           // rightly nothing
	add(`,"expected":[]`, "a")                                      // wrongly something
	add("", "a", "b", "c")                                          // not judged
	add(`,"expected":[{"name":"failing"}]`, "failing")              // fails
	for len(calls) < 100 {
		add("", "a")
	}
	file := write(t, "t.jsonl", tasks.String())
	synctest.Test(t, func(t *testing.T) {
		last := [2]int{}
		sum, err := Planning(t.Context(), PlanningOptions{
			Tasks:    file,
			Progress: func(done, total int) { last = [2]int{done, total} },
			Plan: func(_ context.Context, query string, _ rules.Catalog) (p plan.Plan, err error) {
				var n int
				_, _ = fmt.Sscan(query, &n)
				time.Sleep(time.Duration(n) * time.Millisecond)
				for _, name := range calls[query] {
					if name == "failing" {
						return p, errors.New("no plan")
					}
					p.Steps = append(p.Steps, plan.Step{Tool: name})
				}
				return p, nil
			},
		})
		want := PlanningSummary{Tasks: 100, Calls: 2 + 2 + 1 + 1 + 3 + 92, Abstained: 3, Failed: 1, Expecting: 5, ToolChoice: 1.0 / 5,
			ExpectNone: 2, FalsePositive: 1.0 / 2, P50: 51, P99: 100}
		if err != nil || sum != want {
			t.Errorf("got %+v, %v, want %+v", sum, err, want)
		}
		if last != [2]int{100, 100} {
			t.Errorf("progress: got %v, want 100 of 100", last)
		}
	})
}

// TestDAGFigures: a plan that has one of two nodes and no edge, beside graphs without a question.
func TestDAGFigures(t *testing.T) {
	weather := strings.Split(catalog, "\n")[0]
	file := write(t, "t.jsonl", `{"id":"a","query":"What is the weather in Paris?","tools":[`+weather+`],"nodes":[`+
		`{"id":"s1","tool":"s::get_weather","latency_ms":10},{"id":"s2","tool":"m::send_mail","depends_on":["s1"],"latency_ms":20}],`+
		`"critical_path_ms":30,"sequential_ms":30}
{"id":"b","nodes":[{"id":"s1","latency_ms":30},{"id":"s2","latency_ms":30}],"critical_path_ms":30,"sequential_ms":60}
{"id":"c","query":"What is the weather in Rome?","tools":[`+weather+`]}
{"id":"d","query":"Nobody has tools for this"}
{"id":"e","nodes":[{"id":"s1","latency_ms":30}]}
`)
	synctest.Test(t, func(t *testing.T) {
		last := [2]int{}
		sum, err := DAG(t.Context(), DAGOptions{Tasks: file, Progress: func(done, total int) { last = [2]int{done, total} }})
		if err != nil {
			t.Fatal(err)
		}
		if sum.Tasks != 5 || sum.Planned != 2 || sum.Timed != 2 {
			t.Errorf("got %+v, want 5 tasks, 2 planned, 2 timed", sum)
		}
		if !near(sum.NodeF1, 2.0/3) || sum.EdgeF1 != 0 { // precision 1, recall 1/2
			t.Errorf("got node F1 %v and edge F1 %v, want 2/3 and 0", sum.NodeF1, sum.EdgeF1)
		}
		if !near(sum.Critical, 1) || !near(sum.Worst, 1) || !near(sum.Speedup, 1.5) {
			t.Errorf("got %v and %v of the critical path and speedup %v, want 1, 1 and 1.5", sum.Critical, sum.Worst, sum.Speedup)
		}
		if last != [2]int{7, 7} {
			t.Errorf("progress: got %v, want 7 of 7", last)
		}
	})
}

// TestF1 counts each tool as often as it is wanted, over all tasks.
func TestF1(t *testing.T) {
	var f f1
	f.add([]string{"a", "a", "b"}, []string{"a", "b"})
	f.add([]string{"c"}, []string{"c", "d"})
	if want := 2 * 3.0 / 8; !near(f.value(), want) {
		t.Errorf("got %v, want %v", f.value(), want)
	}
}

// TestNothingJudged: figures without a task that they count are 0, so that they can be written as JSON.
func TestNothingJudged(t *testing.T) {
	file := write(t, "t.jsonl", `{"id":"a","query":"q","tools":[]}`+"\n")
	planning, err := Planning(t.Context(), PlanningOptions{Tasks: file})
	if err != nil || planning.ToolChoice != 0 || planning.FalsePositive != 0 {
		t.Errorf("planning: got %+v, %v, want no figures", planning, err)
	}
	dag, err := DAG(t.Context(), DAGOptions{Tasks: file})
	if err != nil || dag != (DAGSummary{Tasks: 1}) {
		t.Errorf("dag: got %+v, %v, want no figures", dag, err)
	}
}

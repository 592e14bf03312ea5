package dataflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/progress"
	"github.com/agenticnexus/agenticnexus/router/execution/dataflow"
)

// Steps of a bare array run one at a time in its order, whatever came of the one before and however many slots there
// are. Only what a step refers to goes first.
func TestSequential(t *testing.T) {
	for _, row := range []struct{ plan, events, outcomes string }{
		{`[{"tool":"slow"},{"tool":"quick"},{"tool":"quick"}]`, `[+s1 -s1 +s2 -s2 +s3 -s3]`, `s1:{} s2:{} s3:{}`},
		{`{"tools":[{"tool":"fail"},{"tool":"slow"},{"tool":"quick"}]}`, `[+s1 -s1 +s2 -s2 +s3 -s3]`, `s1!tool_error s2:{} s3:{}`},
		{`[{"tool":"slow","arguments":{"a":1}},{"tool":"quick","arguments":{"b":"$s1.a"}},{"tool":"quick"}]`, `[+s1 -s1 +s2 -s2 +s3 -s3]`, `s1:{"a":1} s2:{"b":1} s3:{}`},
		{`[{"tool":"fail"},{"tool":"quick","arguments":{"b":"$s1"}},{"tool":"quick"}]`, `[+s1 -s1 +s3 -s3]`, `s1!tool_error s2!dependency_failed s3:{}`},
		{`[{"tool":"quick"},{"tool":"slow","arguments":{"b":"$s4.n"}},{"tool":"slow"},{"tool":"quick","arguments":{"n":1}},{"tool":"quick"}]`,
			`[+s1 -s1 +s3 -s3 +s4 -s4 +s2 -s2 +s5 -s5]`, `s1:{} s2:{"b":1} s3:{} s4:{"n":1} s5:{}`},
		{`{"steps":[{"tool":"slow"},{"tool":"quick"}]}`, `[+s1 +s2 -s2 -s1]`, `s1:{} s2:{}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			events := make(chan string, 20)
			p := parse(t, row.plan)
			call := func(ctx context.Context, s plan.Step, arguments json.RawMessage, report progress.Func) plan.Outcome {
				time.Sleep(time.Duration(slices.IndexFunc(p.Steps, func(o plan.Step) bool { return o.ID == s.ID })) * time.Millisecond)
				events <- "+" + s.ID
				if s.Tool != "quick" {
					time.Sleep(300 * time.Millisecond)
				}
				events <- "-" + s.ID
				return echo(ctx, s, arguments, report)
			}
			outcomes := dataflow.Run(t.Context(), p, dataflow.Options{Call: call, MaxParallel: 8})
			close(events)
			var got []string
			for e := range events {
				got = append(got, e)
			}
			if fmt.Sprint(got) != row.events || brief(outcomes) != row.outcomes {
				t.Errorf("%s\n got %v and %s\nwant %s and %s", row.plan, got, brief(outcomes), row.events, row.outcomes)
			}
		})
	}
}

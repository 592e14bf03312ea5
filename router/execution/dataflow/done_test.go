package dataflow_test

import (
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/router/execution/dataflow"
)

// A step that has run in an earlier round keeps its outcome; those after it run.
func TestDoneStepsAreNotRepeated(t *testing.T) {
	done := []plan.Outcome{{Step: plan.Step{ID: "a", Tool: "echo"}, Attempts: 1, Value: []byte(`{"n":1}`), Sent: []byte(`{}`)}}
	p := parse(t, `{"steps":[{"id":"a","tool":"fail"},{"id":"b","tool":"echo","arguments":{"n":"$a.n"}},{"id":"c","tool":"echo","arguments":{"n":3},"after":["b"]}]}`)
	got := brief(dataflow.Run(t.Context(), p, dataflow.Options{Call: echo, Done: done}))
	if want := `a:{"n":1} b:{"n":1} c:{"n":3}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

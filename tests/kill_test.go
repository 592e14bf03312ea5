package tests

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// soon is how long the loss of a server may stay unnoticed.
const soon = 10 * time.Second

// killed asks a query, calls kill at the first progress of a tool, and returns the answer and when kill
// was called, since the query began.
func (r *router) killed(plan, tool string, kill func()) (answer, time.Duration) {
	r.t.Helper()
	r.healthy()
	began := time.Now()
	var at time.Duration
	m := r.tryCall("process_query", map[string]any{"query": "work", "plan": json.RawMessage(plan)}, func(n message) {
		if at == 0 && strings.Contains(string(n.Params), "["+tool+"] ") {
			at = time.Since(began)
			kill()
		}
	})
	switch {
	case m.Error != nil:
		r.t.Fatalf("process_query: got error %+v", *m.Error)
	case at == 0:
		r.t.Fatal("the long step reported no progress")
	}
	return decode[answer](r.t, decode[toolResult](r.t, m.Result).StructuredContent), at
}

// longPlan runs a long step on slow, what depends on it, and two steps on other, the second of which
// begins after the kill.
const longPlan = `{"steps":[
	{"id":"s1","tool":"slow.trigger-long-running-operation","arguments":{"duration":20,"steps":100}},
	{"id":"s2","tool":"slow.echo","arguments":{"message":"never"},"after":["s1"]},
	{"id":"s3","tool":"other.trigger-long-running-operation","arguments":{"duration":2,"steps":4}},
	{"id":"s4","tool":"other.echo","arguments":{"message":"still here"},"after":["s3"]}]}`

// checkLost checks the answer to longPlan when the outcome of its long step is unknown.
func checkLost(t *testing.T, a answer, killed time.Duration) {
	t.Helper()
	if len(a.Steps) != 4 {
		t.Fatalf("got steps %+v, want four", a.Steps)
	}
	by := map[string]step{}
	for _, s := range a.Steps {
		by[s.ID] = s
	}
	if s := by["s1"]; s.Success || s.Error == nil || s.Error.Reason != "outcome_unknown" || s.Attempts != 1 ||
		!strings.HasPrefix(string(s.Result), `"Error: `) {
		t.Errorf("the step whose server was killed: got %+v, want it to fail at once with outcome_unknown", s)
	} else if took := s.end() - killed; took > soon {
		t.Errorf("the step failed %v after the kill, want at most %v", took, soon)
	}
	if s := by["s2"]; s.Success || s.Attempts != 0 {
		t.Errorf("the step after it: got %+v, want it to fail without running", s)
	}
	if s := by["s3"]; !s.Success {
		t.Errorf("the long step on the other server: got %+v, want success", s)
	}
	if s := by["s4"]; !s.Success || !strings.Contains(string(s.Result), "still here") {
		t.Errorf("the step that began after the kill: got %+v, want success", s)
	} else if s.begin() < killed {
		t.Errorf("the last step began at %v, before the kill at %v", s.begin(), killed)
	}
	if !strings.Contains(a.Answer, "s1") && !strings.Contains(a.Answer, "trigger-long-running-operation") {
		t.Errorf("the answer does not name the failed step: %s", a.Answer)
	}
}

func (s step) begin() time.Duration { return time.Duration(s.Started * float64(time.Millisecond)) }

func (s step) end() time.Duration {
	return time.Duration((s.Started + s.Duration) * float64(time.Millisecond))
}

// kill9 kills the child that has a variable and returns its process ID.
func (r *router) kill9(variable string) int {
	r.t.Helper()
	if runtime.GOOS != "linux" {
		r.t.Skip("children are found in /proc, which only Linux has")
	}
	children := processes(r.t, "TMPDIR="+r.dir, variable)
	if len(children) != 1 {
		r.t.Fatalf("got processes %+v with %s, want one", children, variable)
	}
	p, err := os.FindProcess(children[0].pid)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		r.t.Fatalf("killing process %d: %v", children[0].pid, err)
	}
	return children[0].pid
}

func TestKillStdio(t *testing.T) {
	t.Parallel()
	c := others(t)
	r := serve(t, fmt.Sprintf(`
mcpServers:
  slow:  {command: %q, args: [%q, stdio], env: {ROLE: slow}, trust_annotations: false}
  other: {command: %q, args: [%q, stdio], env: {ROLE: other}}
`, c.node, c.everything(), c.node, c.everything()))
	var pid int
	a, at := r.killed(longPlan, "slow.trigger-long-running-operation", func() { pid = r.kill9("ROLE=slow") })
	checkLost(t, a, at)

	if got := r.run("slow__echo", map[string]any{"message": "back"}).text(); !strings.Contains(got, "back") {
		t.Errorf("the call after the kill: got %q, want an echo of back", got)
	}
	again := r.kill9("ROLE=slow")
	if again == pid {
		t.Errorf("process %d still runs after kill -9", pid)
	}
	mcptest.Eventually(t, "the router to start the server again", func() bool {
		children := processes(t, "TMPDIR="+r.dir, "ROLE=slow")
		return len(children) == 1 && children[0].pid != again
	})
	if got := r.run("slow__echo", map[string]any{"message": "again"}).text(); !strings.Contains(got, "again") {
		t.Errorf("the call after a kill between calls: got %q, want an echo of again", got)
	}
}

// A tool that says it only reads is called again on the restarted server.
func TestKillRepeatable(t *testing.T) {
	t.Parallel()
	c := others(t)
	r := serve(t, fmt.Sprintf(`
mcpServers:
  slow: {command: %q, args: [%q, stdio], env: {ROLE: slow}}
`, c.node, c.everything()))
	const plan = `{"steps":[{"id":"s1","tool":"slow__trigger-long-running-operation","arguments":{"duration":2,"steps":10}}]}`
	a, _ := r.killed(plan, "trigger-long-running-operation", func() { r.kill9("ROLE=slow") })
	if len(a.Steps) != 1 || !a.Steps[0].Success || a.Steps[0].Attempts != 2 || !strings.Contains(string(a.Steps[0].Result), "completed") {
		t.Errorf("got steps %+v, want success at the second attempt", a.Steps)
	}
}

func TestKillHTTP(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"streamableHttp", "sse"} {
		t.Run(transport, func(t *testing.T) {
			c := others(t)
			slow := c.listen(transport)
			r := serve(t, fmt.Sprintf(`
mcpServers:
  slow:  {url: %q, trust_annotations: false}
  other: {command: %q, args: [%q, stdio]}
`, slow.url(), c.node, c.everything()))
			a, at := r.killed(longPlan, "slow.trigger-long-running-operation", slow.kill)
			checkLost(t, a, at)

			m := r.tryCall("run", map[string]any{"tool": "slow__echo", "parameters": map[string]any{"message": "x"}}, nil)
			if m.Error == nil || m.Error.Code != -32000 || m.Error.Data.Server != "slow" || m.Error.Data.Reason != "unavailable" || !m.Error.Data.Retryable {
				t.Errorf("a call while the server is down: got %s and error %+v, want -32000 with slow, unavailable, retryable", m.Result, m.Error)
			}
			slow.start()
			if got := r.run("slow__echo", map[string]any{"message": "back"}).text(); !strings.Contains(got, "back") {
				t.Errorf("the call after the restart: got %q, want an echo of back", got)
			}
		})
	}
}

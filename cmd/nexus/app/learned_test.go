package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
)

// TestLearnedShapes: a result teaches what its tool returns; the planner is told from then on, also after a restart. No
// value is kept, nothing is refused because of it, and planner.learn: false ends it.
func TestLearnedShapes(t *testing.T) {
	t.Parallel()
	const plan = `{"steps":[{"id":"s1","tool":"find","arguments":{"q":"secret"}},{"id":"s2","tool":"echo","arguments":{"v":"$s1.other"}}]}`
	const want = ` -> {orders: {id: integer, mail: string like "x@x.x"}[]} (seen)`
	const names = "accepted before: q"
	tools := []peerTool{echoTool("echo"), {"find", object + readOnly, func(*peerCall) (string, string) {
		return `{"content":[],"structuredContent":{"orders":[{"id":7,"mail":"ada@example.org"}]}}`, ""
	}}, textTool("fails", object, "Error: nothing there")}
	state := t.TempDir()
	file := filepath.Join(state, "shapes.json")
	for i, learns := range []bool{true, true, false} {
		m := scripted(t, "ok", plan)
		r, p := withPeer(t, m, func(o *app.Options) {
			o.Config.State = state
			o.Config.Planner.Learn = learns
		}, tools...)
		c := r.dial("", nil)
		a := c.query(`{"query":"find it"}`)
		if !strings.Contains(brief(a), "s2=peer/echo{\"v\":\"$s1.other\"} missing_reference") || len(p.calls()) != 1 {
			t.Errorf("got %s and %d calls, want a step that fails when the result is there", brief(a), len(p.calls()))
		}
		if told := strings.Contains(m.Requests()[0].Text, want); told != (i == 1) {
			t.Errorf("run %d: the planner is told of it: %v", i, told)
		}
		deadline := time.Now().Add(20 * time.Second)
		for told := false; learns && !told; {
			if time.Now().After(deadline) {
				t.Fatal("the planner is not told in time")
			}
			before := len(m.Requests())
			c.query(`{"query":"find it again"}`)
			text := m.Requests()[before].Text
			told = strings.Contains(text, want) && strings.Contains(text, names)
		}
		r.stop(10 * time.Second)
		raw, err := os.ReadFile(file)
		if err != nil || strings.Contains(string(raw), "ada") || strings.Contains(string(raw), "secret") || !strings.Contains(string(raw), "orders") {
			t.Errorf("got the file %s, %v, want the names of fields and no value", raw, err)
		}
	}
}

// Names of fields can be data: nothing is learned from private results, and nothing that was learned before is told.
func TestLearnedShapes_Private(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	run := func(data string) (told bool) {
		t.Helper()
		m := scripted(t, "ok", `[{"tool":"find","arguments":{}},{"tool":"find","arguments":{}}]`)
		r, _ := withPeer(t, m, func(o *app.Options) {
			o.Config.State = state
			o.Config.Servers[len(o.Config.Servers)-1].Data = data
		}, peerTool{"find", object + readOnly, func(*peerCall) (string, string) {
			return `{"content":[],"structuredContent":{"report":{"Falcon_layoffs":{"budget":1},"Eagle_merger":{"lead":"x"}}}}`, ""
		}})
		r.dial("", nil).query(`{"query":"find it"}`)
		told = strings.Contains(m.Requests()[0].Text, "Falcon")
		r.stop(10 * time.Second)
		return told
	}
	run("private")
	if raw, err := os.ReadFile(filepath.Join(state, "shapes.json")); err == nil && strings.Contains(string(raw), "Falcon") {
		t.Errorf("the file has names of a private result: %s", raw)
	}
	run("public")
	for _, data := range []string{"public", "private"} {
		if told := run(data); told != (data == "public") {
			t.Errorf("%s: the planner is told what was learned: %v", data, told)
		}
	}
}

package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/router"
)

// TestLearnedUsage: a tool that has answered a question is found for similar ones, after a restart, too: by the same
// caller alone, as long as it may use the tool, and behind what matches well by its words. planner.learn: false ends it.
func TestLearnedUsage(t *testing.T) {
	t.Parallel()
	const plan = `{"steps":[{"id":"s1","tool":"post_circular","arguments":{}}]}`
	tools := []peerTool{textTool("send_mail", `"description":"Send mail",`+object, "sent"), textTool("post_circular", `"description":"Post a circular",`+object, "posted")}
	state := t.TempDir()
	for i, run := range []struct {
		deny           []string // to ann
		forgets, knows bool
	}{{}, {knows: true}, {deny: []string{"peer__post_circular"}}, {forgets: true}} {
		r, _ := withPeer(t, scripted(t, "Done.", plan), func(o *app.Options) {
			o.Config.State = state
			o.Config.Planner.Learn = !run.forgets
			o.Config.Auth.APIKeys = keys("annabella", "bob")
			o.Config.Auth.APIKeys[0].Tools = auth.Filter{Deny: run.deny}
		}, tools...)
		found := func(key, query string) string {
			c := r.dial("", bearer(key))
			var found struct{ Tools []router.FoundTool }
			c.structured("search_available_tools", c.call("search_available_tools", `{"query":"`+query+`"}`, ""), &found)
			var names []string
			for _, f := range found.Tools {
				names = append(names, f.Name)
			}
			return strings.Join(names, " ")
		}
		want := ""
		if run.knows {
			want = "peer__post_circular"
		}
		if got := found("annabella", "shout at the flock again"); got != want {
			t.Errorf("run %d: ann finds %q, want %q", i, got, want)
		}
		if got := found("bob", "shout at the flock again"); got != "" {
			t.Errorf("run %d: bob finds %q by what ann has asked", i, got)
		}
		if run.deny == nil {
			if a := r.dial("", bearer("annabella")).query(`{"query":"Shout at the flock"}`); a.Degraded || len(a.Steps) != 1 {
				t.Fatalf("run %d: got %s", i, brief(a))
			}
		}
		if run.knows {
			if got := found("annabella", "mail the flock"); got != "peer__send_mail peer__post_circular" {
				t.Errorf("a tool that matches: got %q, want it first", got)
			}
		}
		r.stop(10 * time.Second)
	}
	raw, err := os.ReadFile(filepath.Join(state, "usage.json"))
	if err != nil || strings.Contains(string(raw), "annabella") || strings.Contains(string(raw), "flock") {
		t.Errorf("got the file %s, %v, want no caller and no word of a question", raw, err)
	}
}

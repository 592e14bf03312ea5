package rules_test

import (
	"strings"
	"testing"
)

// TestPlan_WritesNothingUnasked is about safety: whatever the words, only a plain command writes or asks for what a
// write lacks. It must hold for any sentence; add those that are found to fail.
func TestPlan_WritesNothingUnasked(t *testing.T) {
	sets := toolsets(t)
	check := func(set, question string) {
		p := planned(t, question, sets[set].catalog)
		for _, s := range append(p.Steps, p.Incomplete...) {
			if sets[set].writes(s.Tool) {
				t.Errorf("%s: %s: got the write %s%s, want none", set, question, s.Tool, s.Arguments)
			}
		}
	}
	lines(t, "unasked.txt", func(line string) {
		set, question, _ := strings.Cut(line, ": ")
		check(set, question)
	})
	// Each action is first planned as a command and then put into sentences that take the command away.
	for _, action := range []struct{ set, do, doing, done, it string }{
		{"town", "cancel", "cancelling", "cancelled", "order 4711"},
		{"town", "turn off", "turning off", "turned off", "the light in the kitchen"},
		{"town", "deploy", "deploying", "deployed", "the service billing to production"},
		{"town", "transfer", "transferring", "transferred", "40 from checking to savings"},
		{"town", "stop", "stopping", "stopped", "the music"},
		{"office", "close", "closing", "closed", "issue 12 of acme/web"},
		{"office", "create", "creating", "created", "a contact for Bob Stone, bob@stone.io"},
		{"office", "send", "sending", "sent", "invoice INV-7 to billing@acme.com"},
		{"office", "comment", "commenting", "commented", `"fixed in 2.1" on issue 7 of acme/api`},
		{"desk", "write", "writing", "wrote", `"buy milk" to /tmp/todo.txt`},
		{"desk", "move", "moving", "moved", "/tmp/a.txt to /tmp/b.txt"},
		{"desk", "delete", "deleting", "deleted", "the entity Project X"},
		{"demo", "send", "sending", "sent", `an email to ann@example.com with subject "Lunch" and body "At noon?"`},
		{"sense", "roll back", "rolling back", "rolled back", "staging"},
		{"sense", "book", "booking", "booked", "the Blue room on 2026-12-03 for 2 hours"},
	} {
		if p := planned(t, action.do+" "+action.it, sets[action.set].catalog); len(p.Steps) != 1 {
			t.Errorf("%s %s: got %q, want one call", action.do, action.it, calls(p.Steps))
		}
		fill := strings.NewReplacer("{do}", action.do, "{Do}", strings.ToUpper(action.do[:1])+action.do[1:],
			"{doing}", action.doing, "{done}", action.done, "{it}", action.it)
		lines(t, "unasked_forms.txt", func(form string) { check(action.set, fill.Replace(form)) })
	}
}

// TestPlan_Asked is the other side: plain commands and questions are planned, with exactly these arguments.
func TestPlan_Asked(t *testing.T) {
	sets := toolsets(t)
	lines(t, "asked.txt", func(line string) {
		set, rest, _ := strings.Cut(line, ": ")
		question, want, _ := strings.Cut(rest, " => ")
		if got := calls(planned(t, question, sets[set].catalog).Steps); got != want {
			t.Errorf("%s: %s: got %s, want %s", set, question, got, want)
		}
	})
}

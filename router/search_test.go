package router

import (
	"fmt"
	"slices"
	"testing"
)

// The sets of callers that search are bounded; the one longest without a search goes first.
func TestExposures(t *testing.T) {
	var e exposures
	for i := range maxExposed {
		e.set(fmt.Sprint(i), []string{"a__b"})
	}
	e.set("0", []string{"c__d"})
	e.set("new", []string{"e__f"})
	for client, want := range map[string][]string{"0": {"c__d"}, "1": nil, "2": {"a__b"}, "new": {"e__f"}} {
		if got := e.get(client); !slices.Equal(got, want) {
			t.Errorf("exposed to %s: got %v, want %v", client, got, want)
		}
	}
	e.forget("0")
	e.forget("nobody")
	if got := e.get("0"); got != nil || len(e.by) != maxExposed-1 || e.order.Len() != len(e.by) {
		t.Errorf("after forgetting: got %v and %d callers, want none and %d", got, len(e.by), maxExposed-1)
	}
}

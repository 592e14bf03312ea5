package router

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The sets of callers that search are bounded; the one longest without a search goes first.
func TestExposures(t *testing.T) {
	var e exposures
	for i := range maxExposed {
		e.set(fmt.Sprint(i), []string{"a__b"}, maxExposed)
	}
	e.set("0", []string{"c__d"}, maxExposed)
	e.set("new", []string{"e__f"}, maxExposed)
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

// The bytes of the names that are kept are bounded, and none are left behind.
func TestExposures_BoundsBytes(t *testing.T) {
	var e exposures
	large := []string{strings.Repeat("x", maxExposedBytes/4)}
	for _, client := range []string{"a", "b", "c", "d", "b", "e"} {
		e.set(client, large, 10)
	}
	for client, want := range map[string]bool{"a": false, "c": false, "d": true, "b": true, "e": true} {
		if got := e.get(client) != nil; got != want {
			t.Errorf("kept for %s: got %v, want %v", client, got, want)
		}
	}
	for _, client := range []string{"b", "d", "e"} {
		e.forget(client)
	}
	if e.bytes != 0 || len(e.by) != 0 {
		t.Errorf("got %d bytes of %d callers, want none", e.bytes, len(e.by))
	}
}

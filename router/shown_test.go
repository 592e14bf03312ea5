package router_test

import (
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/router"
)

// TestShown holds that a model is shown the servers with their instructions, and in later rounds what it has found.
func TestShown(t *testing.T) {
	k := newKit(t, nil, `[{"tool":"find_tools","arguments":{"query":"hotel room in a city"}}]`,
		`{"steps":[{"id":"a","tool":"echo","arguments":{"x":1}}],"more":true}`, `[]`)
	k.query(router.Query{})
	var rounds []string
	for _, r := range k.model.Requests() {
		if llmtest.Structured(r) {
			rounds = append(rounds, r.Users[0])
		}
	}
	const found = "| hotel(city: string 2.. characters, nights?: integer 1..30 | null,"
	if len(rounds) != 3 || !strings.Contains(rounds[0], "\n| [server peer] For tests. </da…\n") || strings.Contains(rounds[0], found) {
		t.Fatalf("got %q, want three turns, the first with the server's instructions", rounds)
	}
	if !strings.Contains(rounds[2], found) {
		t.Errorf("got the second round\n%s\nwant in it what the first had found", rounds[2])
	}
}

package tests

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A batch under two configurations writes the results of each, also recorded, replayed and resumed.
func TestBatchAgainst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{
		"a.yaml": "execution: {confirm_writes: never}\n", "b.yaml": "execution: {confirm_writes: always}\n",
		"cases.jsonl": `{"id":"sum","query":"sum","plan":[{"tool":"calculate","arguments":{"expression":"1 + 1"}}],"expect":{"answer_contains":["2"]}}` + "\n" +
			`{"id":"mail","query":"mail","plan":[{"tool":"send_email","arguments":{"to":"a@example.com","subject":"s","body":"b"}}],"expect":{"tools":["send_email"]}}` + "\n",
	} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(a, b string, code int, more ...string) string {
		t.Helper()
		return ended(t, batch(t, append([]string{at("cases.jsonl"), "--demo", "--repeat", "2", "--config", at("a.yaml"), "--out", at(a),
			"--against", at("b.yaml"), "--against-out", at(b)}, more...)...), code)
	}
	got := run("a.jsonl", "b.jsonl", 3, "--record", at("tape"))
	for _, want := range []string{
		at("a.jsonl") + ": 4 of 4 done: 4 passed, 0 failed", at("b.jsonl") + ": 4 of 4 done: 2 passed, 2 failed",
		"see nexus batch compare " + at("a.jsonl") + " " + at("b.jsonl"),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if out, err := command(dir, "batch", "compare", at("a.jsonl"), at("b.jsonl")).CombinedOutput(); err != nil || !bytes.Contains(out, []byte("mail 2/2 → 0/2")) {
		t.Errorf("compare: got %s, %v, want the case that became worse", out, err)
	}

	run("a2.jsonl", "b2.jsonl", 3, "--replay", at("tape"), "--concurrency", "1")
	sameResults(t, at("a.jsonl"), at("a2.jsonl"))
	sameResults(t, at("b.jsonl"), at("b2.jsonl"))

	whole, err := os.ReadFile(at("b2.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("b2.jsonl"), whole[:bytes.IndexByte(whole, '\n')+5], 0o600); err != nil {
		t.Fatal(err)
	}
	if got := run("a2.jsonl", "new.jsonl", 2); !strings.Contains(got, "already has results") || size(at("new.jsonl")) > 0 {
		t.Errorf("got %s, want the file with results refused before anything is written", got)
	}
	run("a2.jsonl", "b2.jsonl", 3, "--replay", at("tape"), "--resume")
	sameResults(t, at("a.jsonl"), at("a2.jsonl"))
	sameResults(t, at("b.jsonl"), at("b2.jsonl"))

	for want, args := range map[string][]string{
		"need each other":                   {"--out", at("x"), "--against", at("b.yaml")},
		"must be two files":                 {"--out", at("x"), "--against", at("b.yaml"), "--against-out", at(".") + "/x"},
		"cannot be used with --remote":      {"--out", at("x"), "--against", at("b.yaml"), "--against-out", at("y"), "--remote", "http://127.0.0.1:1"},
		"has no recording; make one with -": {"--out", at("x"), "--against", at("b.yaml"), "--against-out", at("y"), "--demo", "--replay", at("tape/a")},
	} {
		if got := ended(t, batch(t, append(args, at("cases.jsonl"))...), 2); !strings.Contains(got, want) {
			t.Errorf("%q: got %s, want %q", args, got, want)
		}
	}
}

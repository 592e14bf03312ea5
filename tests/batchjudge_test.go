package tests

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
)

// A model judges answers by rubrics, and prices make costs of tokens.
func TestBatchJudge(t *testing.T) {
	t.Parallel()
	model := llmtest.New(t)
	judges := func(r llmtest.Request) bool { return strings.HasPrefix(r.System, "You judge") }
	model.When(func(r llmtest.Request) bool { return judges(r) && strings.Contains(r.Text, "names the sum") },
		llmtest.JSON(map[string]any{"reason": "It names it.", "pass": true}))
	model.When(judges, llmtest.JSON(map[string]any{"reason": "It does not rhyme.", "pass": false}))
	model.When(func(r llmtest.Request) bool { return r.Model == "plan" },
		llmtest.Reply{Text: `[{"tool":"calculate","arguments":{"expression":"1 + 1"}}]`})
	model.Answer(llmtest.Reply{Text: "The sum is 2."})
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	settings := file("settings.yaml", fmt.Sprintf(`
llm:
  planner: {base_url: %q, model: plan, api_key: sesame}
  synthesizer: {model: write}
prices: {plan: {input: 1000000, output: 0}, write: {input: 0, output: 2000000}}
`, model.BaseURL))
	in := file("cases.jsonl", `{"id":"sum","query":"What is 1 + 1?","expect":{"tools":["calculate"],"answer_contains":["sum is 2"],"judge":"The answer names the sum."}}
{"id":"rhyme","query":"What is 1 + 1? Sign with ghp_0123456789abcdefghij, not with sesame.","expect":{"judge":"The answer rhymes."}}`)
	out := filepath.Join(dir, "results.jsonl")
	ended(t, batch(t, in, "--out", out, "--demo", "--config", settings, "--judges", "3"), 3)
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	wantPrivate(t, out, string(raw), model)
	outcomes := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		var l struct {
			Case, Outcome string
			Checks        []struct {
				Name, Reason string
				Passed       bool
			}
			Tokens struct{ Input, Output int }
			Cost   float64
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		outcomes[l.Case] = l.Outcome
		judge := l.Checks[len(l.Checks)-1]
		if judge.Name != "judge" || judge.Passed != (l.Case == "sum") || judge.Reason == "" {
			t.Errorf("%s: got %+v", l.Case, judge)
		}
		if l.Tokens.Input == 0 || l.Tokens.Output == 0 || l.Cost <= 0 {
			t.Errorf("%s: got tokens %+v and cost %f, want some", l.Case, l.Tokens, l.Cost)
		}
	}
	if outcomes["sum"] != "passed" || outcomes["rhyme"] != "failed" {
		t.Errorf("got %v, want sum to pass and rhyme to fail", outcomes)
	}
	if strings.Contains(string(raw), "sesame") {
		t.Error("the key is in the results")
	}
	// A budget of one token ends the run after the questions under way.
	got := ended(t, batch(t, in, "--out", out+"1", "--demo", "--config", settings, "--concurrency", "1", "--max-tokens", "1"), 3)
	if lines(out+"1") != 1 || !strings.Contains(got, "the tokens of --max-tokens are used up; resume with: nexus batch run") {
		t.Errorf("got %d lines and %s, want 1 and how to resume", lines(out+"1"), got)
	}
}

// wantPrivate checks that neither results nor prompts have the key of the model or the token in the question, and that
// only the user can read the results.
func wantPrivate(t *testing.T, file, text string, model *llmtest.Server) {
	t.Helper()
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("results: got %v, %v, want the mode 0600", info, err)
	}
	for _, r := range model.Requests() {
		text += string(r.Body)
	}
	if strings.Contains(text, "ghp_") || strings.Contains(text, "sesame") || !strings.Contains(text, "Sign with [redacted], not with [redacted].") {
		t.Errorf("got %s, want the question without its secrets", text)
	}
}

package batch_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/cases"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
	"github.com/agenticnexus/agenticnexus/internal/llm"
)

const result = `{"answer":"{\"total\": 375}","degraded":true,"unmet":[{"text":"the mail","reason":"no_tool"}],
 "plan":{"steps":[{"id":"a"},{"id":"b"},{"id":"c"}]},
 "steps":[
  {"id":"b","tool":"calculate","server":"calculator","arguments":{"expression":"1+1","options":[{"digits":2.0}]},"attempts":1,"started_ms":5},
  {"id":"a","tool":"web.search","server":"web","arguments":{"query":"x"},"attempts":1,"started_ms":1},
  {"id":"c","tool":"send_email","server":"email","arguments":{},"attempts":0,"started_ms":7},
  {"id":"d","tool":"query_hr","server":"hr","arguments":{},"attempts":1,"skipped":true,"started_ms":8}],
 "usage":{"planner":{"input_tokens":10,"output_tokens":5},"synthesizer":{"input_tokens":3,"output_tokens":2}}}`

// expect reads the checks of a case.
func expect(t *testing.T, text string) *cases.Expect {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cases.jsonl")
	if err := os.WriteFile(path, []byte(`{"id":"a","query":"q","expect":`+text+`}`), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := cases.Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return all[0].Expect
}

func TestRun(t *testing.T) {
	var content results.Content
	if err := json.Unmarshal([]byte(result), &content); err != nil {
		t.Fatal(err)
	}
	for text, why := range map[string]string{ // "" = passes
		`{"answer_contains":["375","total"]}`:                                   "",
		`{"answer_contains":["375","376"]}`:                                     `the answer lacks "376"`,
		`{"answer_not_contains":["error"]}`:                                     "",
		`{"answer_not_contains":["total"]}`:                                     `the answer has "total"`,
		`{"answer_matches":"\\d{3}"}`:                                           "",
		`{"answer_matches":"^\\d{3}"}`:                                          "does not match",
		`{"answer_equals":" {\"total\": 375}\n"}`:                               "",
		`{"answer_equals":"375"}`:                                               "the answer is",
		`{"json_schema":{"required":["total"]}}`:                                "",
		`{"json_schema":{"required":["sum"]}}`:                                  "missing property",
		`{"tools":["calculate","search"]}`:                                      "",
		`{"tools":["calculate","web__search"]}`:                                 "",
		`{"tools":["calculator:calculate","web.search"]}`:                       "",
		`{"tools":["calculate"]}`:                                               "web.search was called",
		`{"tools":["calculate","search","send_email"]}`:                         "send_email was not called; called: web.search, calculate",
		`{"tools":{"includes":["calculate"]}}`:                                  "",
		`{"tools":{"includes":["query_hr"]}}`:                                   "query_hr was not called",
		`{"tools":{"sequence":["search","calculate"]}}`:                         "",
		`{"tools":{"sequence":["calculate","search"]}}`:                         "search was not called in its turn",
		`{"not_tools":["send_email","query_hr"]}`:                               "",
		`{"not_tools":["calculator.calculate"]}`:                                "calculate was called",
		`{"arguments":{"calculate":{"expression":"1+1","options.0.digits":2}}}`: "",
		`{"arguments":{"calculate":{"options[0].digits":2}}}`:                   "",
		`{"arguments":{"calculate":{"expression":"1+2"}}}`:                      `calculate: expression is "1+1", not "1+2"`,
		`{"arguments":{"calculate":{"options.0.digits":"2.0"}}}`:                `calculate: options.0.digits is 2.0, not "2.0"`,
		`{"arguments":{"calculate":{"options.1.digits":2}}}`:                    "options.1.digits is missing",
		`{"arguments":{"send_email":{}}}`:                                       "send_email was not called",
		`{"max_steps":3}`:                                                       "",
		`{"max_steps":2}`:                                                       "the plan has 3 steps",
		`{"max_seconds":1.5}`:                                                   "",
		`{"max_seconds":1.4}`:                                                   "it took 1.500 s",
		`{"max_tokens":20}`:                                                     "",
		`{"max_tokens":19}`:                                                     "it took 20 tokens",
		`{"degraded":true}`:                                                     "",
		`{"degraded":false}`:                                                    "degraded is true",
		`{"unmet":true}`:                                                        "",
		`{"unmet":false}`:                                                       `"the mail" is unmet: no_tool`,
	} {
		made := batch.Check(expect(t, text), &content, 1.5)
		if len(made) != 1 || made[0].Passed != (why == "") || !strings.Contains(made[0].Reason, why) {
			t.Errorf("%s: got %+v, want reason %q", text, made, why)
		}
	}
	if made := batch.Check(nil, &content, 1); made == nil || len(made) != 0 {
		t.Errorf("no checks: got %v, want an empty list", made)
	}
}

// scripted is a model that gives one answer after the other.
type scripted struct{ answers []string }

func (s *scripted) Complete(context.Context, llm.Request) (llm.Response, error) {
	text := s.answers[0]
	s.answers = s.answers[1:]
	return llm.Response{Text: text, Usage: llm.Usage{InputTokens: 7, OutputTokens: 3}}, nil
}

func TestJudge(t *testing.T) {
	const yes, no = `Well: {"reason":"It is polite.","pass":true}`, `{"reason":"It is rude.","pass":false}`
	for _, row := range []struct {
		votes   int
		answers []string
		passed  bool
		tokens  int
	}{
		{1, []string{yes}, true, 10},
		{1, []string{no}, false, 10},
		{3, []string{yes, yes}, true, 20},
		{3, []string{no, yes, no}, false, 30},
	} {
		judge := batch.Judge{Model: &scripted{row.answers}, Votes: row.votes}
		check, tokens, err := judge.Decide(t.Context(), batch.Matter{Rubric: "polite", Query: "q", Answer: "a"})
		if err != nil || check.Passed != row.passed || tokens != row.tokens || check.Name != "judge" || check.Reason == "" {
			t.Errorf("%q: got %+v, %d tokens, %v", row.answers, check, tokens, err)
		}
	}
	for _, answer := range []string{"yes", `{"reason":"x"}`, `{"pass":"maybe"}`, ""} {
		judge := batch.Judge{Model: &scripted{[]string{answer}}, Votes: 1}
		if _, _, err := judge.Decide(t.Context(), batch.Matter{}); err == nil {
			t.Errorf("%q: got a verdict, want an error", answer)
		}
	}
}

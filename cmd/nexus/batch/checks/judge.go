package checks

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
	"github.com/agenticnexus/agenticnexus/internal/llm"
)

//go:embed judge.txt
var instructions string

// verdictSchema is the form of a verdict.
var verdictSchema = llm.Schema{Name: "verdict", Strict: json.RawMessage(verdictForm), Loose: json.RawMessage(verdictForm)}

const verdictForm = `{"type":"object","properties":{"reason":{"type":"string"},"pass":{"type":"boolean"}},` +
	`"required":["reason","pass"],"additionalProperties":false}`

// maxAnswer bounds the part of an answer that a judge reads, in bytes.
const maxAnswer = 64 << 10

// Judge lets a model decide whether answers satisfy rubrics.
type Judge struct {
	Model llm.Model
	Votes int // odd; the majority decides
}

// Matter is the input of a judge.
type Matter struct {
	Rubric string `json:"rubric"`
	Query  string `json:"question"`
	Answer string `json:"answer"`
}

// Decide returns the result of the check judge and the used tokens. The error is the model's.
func (j *Judge) Decide(ctx context.Context, m Matter) (verdict results.Check, tokens int, err error) {
	if len(m.Answer) > maxAnswer {
		m.Answer = strings.ToValidUTF8(m.Answer[:maxAnswer], "") + "…"
	}
	question, err := json.Marshal(m)
	if err != nil {
		return verdict, 0, fmt.Errorf("judging: %w", err)
	}
	reasons := map[bool]string{}
	count := map[bool]int{}
	for range j.Votes {
		response, err := j.Model.Complete(ctx, llm.Request{
			System: instructions, Schema: &verdictSchema,
			Messages: []llm.Message{{Role: llm.RoleUser, Content: string(question)}},
		})
		tokens += response.Usage.InputTokens + response.Usage.OutputTokens
		if err != nil {
			return verdict, tokens, fmt.Errorf("judging: %w", err)
		}
		vote, err := readVerdict(response.Text)
		if err != nil {
			return verdict, tokens, err
		}
		count[vote.Passed]++
		reasons[vote.Passed] = vote.Reason
		if count[vote.Passed] > j.Votes/2 {
			break
		}
	}
	passed := count[true] > count[false]
	return results.Check{Name: "judge", Passed: passed, Reason: reasons[passed]}, tokens, nil
}

// readVerdict reads the JSON object in a model's text.
func readVerdict(text string) (v results.Check, err error) {
	begin, end := strings.Index(text, "{"), strings.LastIndex(text, "}")
	if begin < 0 || end < begin {
		return v, errors.New("judging: the model's verdict is not JSON: " + shown(text))
	}
	var form struct {
		Pass   *bool  `json:"pass"`
		Reason string `json:"reason"`
	}
	if json.Unmarshal([]byte(text[begin:end+1]), &form) != nil || form.Pass == nil {
		return v, errors.New("judging: the model's verdict lacks pass: " + shown(text))
	}
	return results.Check{Passed: *form.Pass, Reason: shown(form.Reason)}, nil
}

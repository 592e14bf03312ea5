package batch

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/cases"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// maxShown bounds the excerpt of an answer in a reason, in bytes.
const maxShown = 120

// check is one check of an answer. reason is empty if it passes.
type check struct {
	name   string
	wanted bool
	reason func() string
}

// Check makes all checks but judge.
func Check(e *cases.Expect, c *results.Content, seconds float64) []results.Check {
	made := []results.Check{}
	if e == nil {
		return made
	}
	for _, check := range []check{
		{"answer_contains", len(e.AnswerContains) > 0, func() string { return contains(c.Answer, e.AnswerContains) }},
		{"answer_not_contains", len(e.AnswerNotContains) > 0, func() string { return lacks(c.Answer, e.AnswerNotContains) }},
		{"answer_matches", e.AnswerMatches != nil, func() string {
			matches := e.AnswerMatches.MatchString(c.Answer)
			return unless(matches, "the answer does not match %s: %s", e.AnswerMatches, shown(c.Answer))
		}},
		{"answer_equals", e.AnswerEquals != nil, func() string {
			same := strings.TrimSpace(c.Answer) == strings.TrimSpace(*e.AnswerEquals)
			return unless(same, "the answer is %s", shown(c.Answer))
		}},
		{"json_schema", e.JSONSchema != nil, func() string { return conforms(c.Answer, e.JSONSchema) }},
		{"tools", e.Tools != nil, func() string { return tools(e.Tools, c.Steps) }},
		{"not_tools", len(e.NotTools) > 0, func() string { return notTools(e.NotTools, c.Steps) }},
		{"arguments", len(e.Arguments) > 0, func() string { return arguments(e.Arguments, c.Steps) }},
		{"max_steps", e.MaxSteps != nil, func() string {
			return unless(len(c.Plan.Steps) <= *e.MaxSteps, "the plan has %d steps", len(c.Plan.Steps))
		}},
		{"max_seconds", e.MaxSeconds != nil, func() string {
			return unless(seconds <= *e.MaxSeconds, "it took %.3f s", seconds)
		}},
		{"max_tokens", e.MaxTokens != nil, func() string {
			return unless(c.Tokens().Total() <= *e.MaxTokens, "it took %d tokens", c.Tokens().Total())
		}},
		{"degraded", e.Degraded != nil, func() string {
			return unless(c.Degraded == *e.Degraded, "degraded is %t", c.Degraded)
		}},
		{"unmet", e.Unmet != nil, func() string { return unmet(*e.Unmet, c.Unmet) }},
	} {
		if check.wanted {
			reason := check.reason()
			made = append(made, results.Check{Name: check.name, Passed: reason == "", Reason: reason})
		}
	}
	return made
}

func unless(holds bool, format string, args ...any) string {
	if holds {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

func contains(answer string, wanted []string) string {
	for _, text := range wanted {
		if !strings.Contains(answer, text) {
			return fmt.Sprintf("the answer lacks %q: %s", text, shown(answer))
		}
	}
	return ""
}

func lacks(answer string, unwanted []string) string {
	for _, text := range unwanted {
		if at := strings.Index(answer, text); at >= 0 {
			return fmt.Sprintf("the answer has %q: %s", text, shown(answer[at:]))
		}
	}
	return ""
}

// conforms checks the answer, as JSON, against a schema.
func conforms(answer string, s *jsonschema.Schema) string {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(answer))
	if err != nil {
		return "the answer is not JSON: " + shown(answer)
	}
	if err := s.Validate(value); err != nil {
		return shown(strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", "; ")), " "))
	}
	return ""
}

func unmet(wanted bool, parts []results.Unmet) string {
	switch {
	case wanted == (len(parts) > 0):
		return ""
	case wanted:
		return "no part is unmet"
	}
	return fmt.Sprintf("%q is unmet: %s", shown(parts[0].Text), parts[0].Reason)
}

// shown cuts a text to one short line.
func shown(s string) string { return texts.Line(s, maxShown) }

// called returns the steps that reached a tool, in the order in which they started.
func called(steps []results.Step) (reached []*results.Step) {
	for i := range steps {
		if steps[i].Called() {
			reached = append(reached, &steps[i])
		}
	}
	slices.SortStableFunc(reached, func(a, b *results.Step) int { return cmp.Compare(a.Started, b.Started) })
	return reached
}

// named reports whether a name, in any form, refers to the step's tool.
func named(s *results.Step, name string) bool {
	bare := strings.TrimPrefix(s.Tool, s.Server+".")
	if name == s.Tool || name == bare {
		return true
	}
	for _, separator := range [...]string{"__", ":", "."} {
		if name == s.Server+separator+bare {
			return true
		}
	}
	return false
}

func tools(wanted *cases.Tools, steps []results.Step) string {
	reached := called(steps)
	if wanted.How == cases.ToolsSequence {
		next := 0
		for _, s := range reached {
			if next < len(wanted.Names) && named(s, wanted.Names[next]) {
				next++
			}
		}
		if next < len(wanted.Names) {
			return fmt.Sprintf("%s was not called in its turn; called: %s", wanted.Names[next], list(reached))
		}
		return ""
	}
	for _, name := range wanted.Names {
		if !slices.ContainsFunc(reached, func(s *results.Step) bool { return named(s, name) }) {
			return fmt.Sprintf("%s was not called; called: %s", name, list(reached))
		}
	}
	if wanted.How == cases.ToolsIncludes {
		return ""
	}
	for _, s := range reached {
		if !slices.ContainsFunc(wanted.Names, func(name string) bool { return named(s, name) }) {
			return s.Tool + " was called"
		}
	}
	return ""
}

func notTools(unwanted []string, steps []results.Step) string {
	for _, s := range called(steps) {
		if slices.ContainsFunc(unwanted, func(name string) bool { return named(s, name) }) {
			return s.Tool + " was called"
		}
	}
	return ""
}

// list names tools in the order of their calls.
func list(steps []*results.Step) string {
	var names []string
	for _, s := range steps {
		names = append(names, s.Tool)
	}
	if len(names) == 0 {
		return "none"
	}
	return shown(strings.Join(names, ", "))
}

// arguments checks that each tool has a call with all expected values.
func arguments(wanted []cases.Arguments, steps []results.Step) string {
	for _, w := range wanted {
		var reason string
		found := false
		for _, s := range called(steps) {
			if !named(s, w.Tool) {
				continue
			}
			if reason = differs(s.Arguments, w.Values); reason == "" {
				found = true
				break
			}
		}
		switch {
		case found:
		case reason == "":
			return w.Tool + " was not called; called: " + list(called(steps))
		default:
			return w.Tool + ": " + reason
		}
	}
	return ""
}

// differs returns the first path, in sorted order, at which arguments differ from the expected values.
func differs(raw json.RawMessage, wanted map[string]json.RawMessage) string {
	arguments := decode(raw)
	for _, path := range slices.Sorted(maps.Keys(wanted)) {
		got, found := at(arguments, path)
		if !found { // as references write it
			got, found = at(arguments, strings.NewReplacer("[", ".", "]", "").Replace(path))
		}
		if !found {
			return fmt.Sprintf("%s is missing", path)
		}
		if !equal(got, decode(wanted[path])) {
			text, _ := json.Marshal(got)
			return fmt.Sprintf("%s is %s, not %s", path, shown(string(text)), shown(string(wanted[path])))
		}
	}
	return ""
}

// decode keeps the digits of numbers.
func decode(raw json.RawMessage) (v any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

// at follows a path of member names and indexes. A member whose name is the whole path counts, too.
func at(v any, path string) (found any, ok bool) {
	if path == "" {
		return v, true
	}
	if object, is := v.(map[string]any); is {
		if member, has := object[path]; has {
			return member, true
		}
	}
	name, rest, _ := strings.Cut(path, ".")
	switch v := v.(type) {
	case map[string]any:
		if member, has := v[name]; has {
			return at(member, rest)
		}
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v) {
			return at(v[i], rest)
		}
	}
	return nil, false
}

// equal compares JSON values; numbers by their value.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, is := b.(json.Number)
		return is && equalNumbers(a, b)
	case []any:
		b, is := b.([]any)
		return is && slices.EqualFunc(a, b, equal)
	case map[string]any:
		b, is := b.(map[string]any)
		if !is || len(a) != len(b) {
			return false
		}
		for name, value := range a {
			other, has := b[name]
			if !has || !equal(value, other) {
				return false
			}
		}
		return true
	}
	return a == b
}

// maxDigits bounds the numbers that are compared by value.
const maxDigits = 400

func equalNumbers(a, b json.Number) bool {
	if a == b {
		return true
	}
	if len(a) > maxDigits || len(b) > maxDigits {
		return false
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	if errX != nil || errY != nil || x != y {
		return false
	}
	exactX, okX := new(big.Rat).SetString(string(a))
	exactY, okY := new(big.Rat).SetString(string(b))
	return okX && okY && exactX.Cmp(exactY) == 0
}

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

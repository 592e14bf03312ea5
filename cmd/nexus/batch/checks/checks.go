// Package checks compares the answer of a query with the expectations of its case.
//
// Each check of a case becomes one results.Check; the reason of a failed one has the actual value. [Judge] asks a
// model.
package checks

import (
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/cases"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

// maxShown bounds the excerpt of an answer in a reason, in bytes.
const maxShown = 120

// check is one check of an answer. reason is empty if it passes.
type check struct {
	name   string
	wanted bool
	reason func() string
}

// Run makes all checks but judge.
func Run(e *cases.Expect, c *results.Content, seconds float64) []results.Check {
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
func shown(s string) string { return short.Line(s, maxShown) }

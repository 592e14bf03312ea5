package router

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Refusal is an error whose text is meant for the caller: bad arguments, limits, keys.
type Refusal struct{ Text string }

// Error implements error.
func (r *Refusal) Error() string { return r.Text }

func refuse(format string, args ...any) *Refusal { return &Refusal{Text: fmt.Sprintf(format, args...)} }

// validator checks the text of queries.
type validator struct {
	maxChars int
	deny     []*regexp.Regexp
}

func newValidator(maxChars int, patterns []string) (*validator, error) {
	v := &validator{maxChars: maxChars}
	for _, p := range patterns {
		re, err := regexp.Compile("(?i)" + p)
		if err != nil {
			return nil, fmt.Errorf("validation.deny_patterns: %w", err)
		}
		v.deny = append(v.deny, re)
	}
	return v, nil
}

// check returns the trimmed query, or an error if it is refused.
func (v *validator) check(query string) (string, error) {
	query = strings.TrimSpace(query)
	switch {
	case query == "":
		return "", refuse("Query is empty")
	case utf8.RuneCountInString(query) > v.maxChars:
		return "", refuse("Query too long")
	}
	for _, re := range v.deny {
		if re.MatchString(query) {
			return "", refuse("Invalid query content")
		}
	}
	return query, nil
}

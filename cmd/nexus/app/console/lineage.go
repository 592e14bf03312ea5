package console

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/router"
)

// sentence is a part of the answer and where it comes from.
type sentence struct {
	Text  string `json:"text"`
	Cites []cite `json:"cites"`
}

// cite is a step that a sentence rests on. The field is where the quote is in the step's result.
type cite struct {
	Step  string `json:"step"`
	Quote string `json:"quote,omitempty"`
	Field string `json:"field,omitempty"`
}

var (
	marks     = regexp.MustCompile(`\[([^\[\]]{1,200})\]`)
	sentences = regexp.MustCompile(`(?s).*?(?:[.!?](?:\s*\[[^\[\]]*\])*(?:\s+|$)|\n+|$)`)
)

const (
	maxSentences = 200
	maxVisited   = 20_000 // values of a result that are searched for a quote
)

// lineage finds the sentences of the answer that cite steps, and the fields that their quotes come from.
func lineage(c *router.AnswerContent) []sentence {
	found := []sentence{}
	if len(c.Citations) == 0 {
		return found
	}
	results := map[string]json.RawMessage{}
	for _, s := range c.Steps {
		if s.Success && results[s.ID] == nil {
			results[s.ID] = s.Result
		}
	}
	for _, text := range sentences.FindAllString(c.Answer, -1) {
		s := sentence{Text: strings.TrimSpace(text), Cites: []cite{}}
		for _, mark := range marks.FindAllStringSubmatch(text, -1) {
			for name := range strings.SplitSeq(mark[1], ",") {
				s.cite(c, strings.TrimSpace(name), results)
			}
		}
		if len(s.Cites) > 0 && len(found) < maxSentences {
			found = append(found, s)
		}
	}
	return found
}

// cite adds the citations of a step: those whose quotes have words of the sentence, else all of them.
func (s *sentence) cite(c *router.AnswerContent, step string, results map[string]json.RawMessage) {
	var all, near []cite
	for _, q := range c.Citations {
		if q.Step != step {
			continue
		}
		found := cite{Step: step, Quote: q.Quote, Field: fieldOf(q.Quote, results[step])}
		all = append(all, found)
		if shares(s.Text, q.Quote) {
			near = append(near, found)
		}
	}
	if len(near) > 0 {
		all = near
	}
	s.Cites = append(s.Cites, all...)
}

// shares reports whether a quote has a word of the text with a digit or more than three letters.
func shares(text, quote string) bool {
	text = strings.ToLower(text)
	for word := range strings.FieldsSeq(strings.ToLower(quote)) {
		word = strings.Trim(word, `.,:;!?"'()[]{}`)
		if (len(word) > 3 || strings.ContainsAny(word, "0123456789") && word != "") && strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// fieldOf returns the path of the first value that has the quote, in the form of references: items.0.name. It is empty
// if only the result as a whole has it.
func fieldOf(quote string, result json.RawMessage) string {
	var value any
	if quote == "" || json.Unmarshal(result, &value) != nil {
		return ""
	}
	left := maxVisited
	path, _ := find(squeeze(quote), value, "", &left)
	return path
}

func find(quote string, value any, path string, left *int) (string, bool) {
	if *left--; *left < 0 {
		return "", false
	}
	below := func(name string) string {
		if path == "" {
			return name
		}
		return path + "." + name
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if at, ok := find(quote, v[name], below(name), left); ok {
				return at, true
			}
		}
	case []any:
		for i, inner := range v {
			if at, ok := find(quote, inner, below(strconv.Itoa(i)), left); ok {
				return at, true
			}
		}
	case string:
		return path, strings.Contains(squeeze(v), quote)
	case float64:
		return path, strconv.FormatFloat(v, 'f', -1, 64) == quote
	}
	return "", false
}

// squeeze makes every space a single one.
func squeeze(text string) string { return strings.Join(strings.Fields(text), " ") }

func (s *sentence) redact() {
	s.Text = redact.Text(s.Text)
	for i := range s.Cites {
		s.Cites[i].Quote = redact.Text(s.Cites[i].Quote)
	}
}

package console

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/segment"
	"github.com/agenticnexus/agenticnexus/router"
)

// sentence is a part of the answer with its sources.
type sentence struct {
	Text  string `json:"text"`
	Cites []cite `json:"cites"`
}

// cite is a step that a sentence cites. Field is the place of the quote in the step's result.
type cite struct {
	Step  string `json:"step"`
	Quote string `json:"quote,omitempty"`
	Field string `json:"field,omitempty"`
}

var (
	marks     = regexp.MustCompile(`\[([^\[\]]{1,200})\]`)
	sentences = regexp.MustCompile(`(?s).*?(?:[.!?](?:\s*\[[^\[\]]*\])*(?:\s+|$)|\n+|$)`)
)

// Bounds of the lineage.
const (
	maxSentences = 200
	maxCites     = 1000    // of all sentences
	maxVisited   = 20_000  // values of a result that are searched for quotes
	maxSearched  = 4 << 20 // bytes of all results that are
)

// lineage returns the sentences of the answer that cite steps, with the fields that contain their quotes.
func lineage(c *router.AnswerContent) []sentence {
	found := []sentence{}
	if len(c.Citations) == 0 {
		return found
	}
	all := sources(c)
	cites := 0
	for rest := c.Answer; rest != "" && len(found) < maxSentences && cites < maxCites; {
		end := sentences.FindStringIndex(rest)[1]
		s := sentence{Text: strings.TrimSpace(rest[:end]), Cites: []cite{}}
		said := words(s.Text)
		cited := map[string]bool{}
		for _, mark := range marks.FindAllStringSubmatch(rest[:end], -1) {
			for name := range strings.SplitSeq(mark[1], ",") {
				if name = strings.TrimSpace(name); !cited[name] {
					cited[name] = true
					s.Cites = append(s.Cites, choose(all[name], said)...)
				}
			}
		}
		s.Cites = s.Cites[:min(len(s.Cites), maxCites-cites)]
		if cites += len(s.Cites); len(s.Cites) > 0 {
			found = append(found, s)
		}
		rest = rest[end:]
	}
	return found
}

// source is a citation of the answer, with the words of its quote.
type source struct {
	cite
	words map[string]bool
}

// sources returns the citations of the steps. Each result is read once.
func sources(c *router.AnswerContent) map[string][]source {
	results := map[string][]router.StepResult{} // of a loop, several
	for _, s := range c.Steps {
		if s.Success && (s.Index != nil || results[s.ID] == nil) {
			results[s.ID] = append(results[s.ID], s)
		}
	}
	all, fields := map[string][]source{}, map[string][]field{}
	searched := 0
	for _, q := range c.Citations {
		if _, read := fields[q.Step]; !read {
			fields[q.Step] = []field{}
			for _, r := range results[q.Step] {
				if searched += len(r.Result); searched <= maxSearched {
					fields[q.Step] = append(fields[q.Step], fieldsOf(r)...)
				}
			}
		}
		quoted := cite{Step: q.Step, Quote: q.Quote}
		if quote := squeeze(q.Quote); quote != "" {
			at := slices.IndexFunc(fields[q.Step], func(f field) bool { return f.has(quote) })
			if at >= 0 {
				quoted.Field = fields[q.Step][at].path
			}
		}
		all[q.Step] = append(all[q.Step], source{quoted, words(q.Quote)})
	}
	return all
}

// choose returns the citations whose quotes have a word that a sentence says, else all of them.
func choose(all []source, said map[string]bool) (chosen []cite) {
	for _, near := range []bool{true, false} {
		for _, s := range all {
			if !near || shares(s.words, said) {
				chosen = append(chosen, s.cite)
			}
		}
		if chosen != nil {
			break
		}
	}
	return chosen
}

func shares(a, b map[string]bool) bool {
	for word := range a {
		if b[word] {
			return true
		}
	}
	return false
}

// words returns the words of a text that have a digit or more than three letters, in lower case.
func words(text string) map[string]bool {
	all := map[string]bool{}
	for _, word := range segment.Words(text) {
		if len(word) > 3 || strings.ContainsAny(word, "0123456789") {
			all[word] = true
		}
	}
	return all
}

// field is a text or a number of a result, and its path in the form of references: items.0.name.
type field struct {
	path, text string
	number     bool
}

func (f field) has(quote string) bool {
	return f.number && f.text == quote || !f.number && strings.Contains(f.text, quote)
}

// fieldsOf returns the fields of a result, at most maxVisited values deep and wide. The path of a loop's result begins
// with its index.
func fieldsOf(r router.StepResult) (fields []field) {
	var value any
	if json.Unmarshal(r.Result, &value) != nil {
		return nil
	}
	root := ""
	if r.Index != nil {
		root = strconv.Itoa(*r.Index)
	}
	left := maxVisited
	var visit func(value any, path string)
	visit = func(value any, path string) {
		if left--; left < 0 {
			return
		}
		below := func(name string) string { return strings.TrimPrefix(path+"."+name, ".") }
		switch v := value.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				visit(v[name], below(name))
			}
		case []any:
			for i, inner := range v {
				visit(inner, below(strconv.Itoa(i)))
			}
		case string:
			fields = append(fields, field{path: path, text: squeeze(v)})
		case float64:
			fields = append(fields, field{path, strconv.FormatFloat(v, 'f', -1, 64), true})
		}
	}
	visit(value, root)
	return fields
}

// squeeze replaces runs of white space by single spaces.
func squeeze(text string) string { return strings.Join(strings.Fields(text), " ") }

func (s *sentence) redact() {
	s.Text = redact.Text(s.Text)
	for i := range s.Cites {
		s.Cites[i].Quote = redact.Text(s.Cites[i].Quote)
	}
}

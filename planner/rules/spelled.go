package rules

import (
	"regexp"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

var (
	// toolWord is a word that may be the name of a tool, also marked as code.
	toolWord  = regexp.MustCompile("`?\\b[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+\\b`?")
	wordStart = regexp.MustCompile(`(?:^|[\s(,;:])$`)
	wordEnd   = regexp.MustCompile(`^[),;:.?!]*(?:\s|$)`)
)

// maxToolWords is how many words of a question are looked up as names of tools.
const maxToolWords = 8

// spelled writes the names of tools in a question as words, so that they are read as such and not as values: "use
// send_email" becomes "use send email". The question keeps its length, and texts in quotation marks stay as they are.
func spelled(question string, tools Catalog) string {
	out := []byte(question)
	for _, m := range toolWord.FindAllStringIndex(question, maxToolWords) {
		before, after := question[:m[0]], question[m[1]:]
		if strings.Count(before, `"`)%2 == 1 || !wordStart.MatchString(before) || !wordEnd.MatchString(after) {
			continue
		}
		name := strings.Trim(question[m[0]:m[1]], "`")
		if !slices.ContainsFunc(tools.Look(name, 3), func(t plan.Tool) bool { return t.Tool == name }) {
			continue
		}
		for i := m[0]; i < m[1]; i++ {
			if out[i] == '_' || out[i] == '`' {
				out[i] = ' '
			}
		}
	}
	return string(out)
}

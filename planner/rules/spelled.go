package rules

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// spoken is a quotation, or what stands between spaces and marks.
var spoken = lazy(`"[^"]*"?|[^\s(),;:"]+`)

// maxToolWords is how many words of a question are looked up as names of tools.
const maxToolWords = 8

// spelled writes the names of tools in a question as words, so that they are read as such and not as values: "use
// send_email" becomes "use send email". The question keeps its length, and texts in quotation marks stay as they are.
func spelled(question string, tools Catalog) string {
	looked := 0
	return spoken().ReplaceAllStringFunc(question, func(text string) string {
		name := strings.Trim(text, "`.!?")
		if text[0] == '"' || !strings.Contains(name, "_") || looked == maxToolWords {
			return text
		}
		looked++
		if !slices.ContainsFunc(tools.Look(name, 3), func(t plan.Tool) bool { return t.Tool == name }) {
			return text
		}
		return strings.NewReplacer("_", " ", "`", " ").Replace(text)
	})
}

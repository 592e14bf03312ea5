package rules

import (
	"regexp"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/planner/rules/values"
)

// announced is how a question gives a text or a command without quotation marks, up to the end of its clause.
var announced = regexp.MustCompile(`(?i)\b(?:with|using)(?: (?:the|a|an|exact|following))* ` +
	`(?:(body|message|text|content|note|command)(?: called)?:?(?: -)? ([^\s"](?:\S|\s+[^\s"])*?)(?:[.?!,;](?:\s|$)|\s*$)` +
	`|(\S+(?: \S+){0,5}?) (command)\b)`)

// usesCommand is how a question asks to do something by a command of its own.
var usesCommand = regexp.MustCompile(`(?i)\busing (?:\S+ ){1,6}?command\b`)

// announcedTexts returns the texts and commands that a question announces by the name of a parameter: "with content go
// to sleep at 9 pm", "using the command ls -la". One that may have another command in it is unclear.
func (l *filler) announcedTexts() (out []values.Value) {
	for _, m := range announced.FindAllStringSubmatchIndex(l.a.text, -1) {
		v := values.Value{Kind: values.Phrase, Start: m[4], End: m[5], Label: "said"}
		if m[2] < 0 { // "using the ls command"
			m[2], m[3], v.Start, v.End = m[8], m[9], m[6], m[7]
		}
		v.Text = l.a.text[v.Start:v.End]
		name := strings.ToLower(l.a.text[m[2]:m[3]])
		named := slices.ContainsFunc(l.f.params, func(q param) bool { return slices.Contains(q.stems, search.Stem(name)) })
		quoted := slices.ContainsFunc(l.a.values, func(o values.Value) bool {
			return o.Kind == values.Quotation && v.Start <= o.Start && o.End <= v.End
		})
		if named && !quoted && l.a.covers(v.Start, v.Start) && !noText.MatchString(v.Text) {
			out = append(out, v)
		}
	}
	return out
}

package rules

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/planner/rules/intent"
	"github.com/agenticnexus/agenticnexus/planner/rules/values"
)

// announced is how a question announces a text without quotation marks: "with subject", "and the body", "using the
// command", and "using the … command" around it.
var announced = lazy(`(?i)(?:\b(?:with|using|and|run|execute)|,)(?: +(?:with|using|and|the|a|an|as|exact))* +` +
	`(subject|title|body|message|text|content|note|command)(?: line| called)?(?: -)? +` +
	`|\busing the (\S+(?: \S+){1,5}?) (command)\b`)

// introduces is how a part is announced that needs no other part beside it.
var introduces = lazy(`(?i)\b(?:with|using|run|execute)\b`)

// onlySpeaks is what a clause has between its verb and a command that only speaks of one: "show me how to delete files".
var onlySpeaks = lazy(`(?i)\b(?:how|what|why|when|where|which|who|whether|if|that|to|about|for|\w+ing)\b`)

// givesCommand reports whether a clause asks to do what its verb says using a command that it announces.
func (a ask) givesCommand(c intent.Clause, verb []string) bool {
	return !list("telling").any(verb) && slices.ContainsFunc(a.values, func(v values.Value) bool {
		if v.Kind != values.Quotation || v.Label != "command" || v.Start < c.Start || v.Start >= c.End {
			return false
		}
		_, object, found := strings.Cut(strings.ToLower(a.text[c.Start:v.Start]), c.Verb)
		object, _, using := strings.Cut(object, " using ")
		return found && using && !onlySpeaks().MatchString(object)
	})
}

// runsCommands reports whether a tool runs commands that it is given.
func (f *profile) runsCommands() bool {
	return f.does([]string{"run"}) && slices.ContainsFunc(f.params, func(q param) bool { return q.named("command") })
}

// textEnd is where an announced text ends, if not before the next one: at the end of its sentence, before what begins
// another announcement, and before a recipient.
var textEnd = lazy(`[.!?](?:\s|$)|\n|(?i:,? +(?:saying|stating|telling) )|(?i: to \S+@)`)

// noText is what follows the name of a part where no text does: "with the subject of the last mail", "using the same command".
var noText = lazy(`(?i)^(?:$|(?:same|following|above|but|if|unless|of|in|from|for|to|with|and|or|about|on|at|that|which|as|by|containing)\b)`)

// marked is a text that has quotation marks.
var marked = lazy(`(?:^|\s)["'“„«]`)

// goesOn is where an announced text may have ended, as what follows may be said to the router instead.
var goesOn = lazy(`(?i),? *(?:\b(?:but|if|unless|instead|never|do not|don['’]?t)\b` +
	`|\b(?:and|then|,) *(?:then +|also +|please +)*([a-z]+))`)

// announcedTexts returns the texts that a question announces by the name of a part: a subject, several parts, or one whose
// name is no verb. Where more than the text may follow, there are two readings. masked is the question without the texts.
func announcedTexts(query string) (texts []values.Value, masked string) {
	found := announced().FindAllStringSubmatchIndex(query, -1)
	sure := false
	for i, m := range found {
		v := values.Value{Kind: values.Quotation, Start: m[1], End: len(query), Cue: "with"}
		if m[2] < 0 {
			m[2], m[3], v.Start, v.End = m[6], m[7], m[4], m[5]
		} else if i+1 < len(found) {
			v.End = found[i+1][0]
		}
		v.Label = strings.ToLower(query[m[2]:m[3]])
		if e := textEnd().FindStringIndex(query[v.Start:v.End]); e != nil {
			v.End = v.Start + e[0]
			if (v.Label == "body" || v.Label == "message" || v.Label == "text") && strings.ContainsRune(".!?", rune(query[v.End])) {
				v.End++ // a sentence has its mark
			}
		}
		v.Text = strings.TrimRight(query[v.Start:v.End], " ,")
		v.End = v.Start + len(v.Text)
		if noText().MatchString(v.Text) {
			continue
		}
		surely := v.Label == "body" || v.Label == "content" || v.Label == "command"
		sure = sure || v.Label == "subject" || surely && introduces().MatchString(query[m[0]:v.Start])
		if v.Label != "command" && marked().MatchString(v.Text) {
			continue // in marks already
		}
		for _, e := range goesOn().FindAllStringSubmatchIndex(v.Text, -1) {
			if e[0] > 0 && (e[2] < 0 || plan.Acts(strings.ToLower(v.Text[e[2]:e[3]]))) {
				v.Alternatives = []values.Value{v}
				v.Text, v.End = v.Text[:e[0]], v.Start+e[0]
				break
			}
		}
		texts = append(texts, v)
	}
	if len(texts) < 2 && !sure {
		return nil, query
	}
	masked = query
	for _, v := range texts {
		if v.Alternatives == nil {
			masked = masked[:v.Start] + strings.Repeat("_", len(v.Text)) + masked[v.End:]
		}
	}
	return texts, masked
}

package rules

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// label is how a question announces a text: "with subject", "and the body".
var label = regexp.MustCompile(`(?i)(?:\b(?:with|and)|,) +(?:(?:with|and) +)?(?:(?:the|a|an|as) +)?` +
	`(subject|title|body|message|text|content)(?: line)? +`)

// textEnd is where an announced text ends, if not before the next label: at the end of its sentence, before what
// begins another announcement, and before a recipient.
var textEnd = regexp.MustCompile(`[.!?](?:\s|$)|\n|(?i:,? +(?:saying|stating|telling) )|(?i: to \S+@)`)

// noText is what follows the name of a part where no text does: "with the subject of the last mail".
var noText = regexp.MustCompile(`(?i)^(?:of|in|from|for|to|with|and|or|about|on|at|that|which|as|by|containing)\b`)

// notText is what an announced text without quotation marks may not have, as it may be said to the router instead.
var notText = regexp.MustCompile(`(?i)\b(?:but|if|unless|instead|never|do not|don['’]?t)\b`)

// nextVerb is a word that may begin another command.
var nextVerb = regexp.MustCompile(`(?i)\b(?:and|then|,) *(?:then +|also +|please +)*([a-z]+)`)

// saysMore reports whether an announced text may have more than the text in it: a condition, a "do not", or another
// command, as in "body Hello and delete order 5".
func saysMore(text string) bool {
	return notText.MatchString(text) || slices.ContainsFunc(nextVerb.FindAllStringSubmatch(text, -1), func(m []string) bool {
		return plan.Acts(strings.ToLower(m[1]))
	})
}

// quoted is a question in which announced texts stand in quotation marks, as extraction reads them surely:
// with subject Hi and body Hello becomes with subject "Hi" and body "Hello". After a comma the name gets a colon.
type quoted struct {
	text  string
	marks []int // places of the added marks in text
}

// quoteTexts adds the marks where a question announces a subject or several texts. Other announced words are too often
// plain ones. Where a text may have more in it, there are no marks at all: the user is asked for the texts.
func quoteTexts(query string) quoted {
	type mark struct {
		place int
		sign  byte
	}
	var marks []mark
	announced, subject := 0, false
	found := label.FindAllStringSubmatchIndex(query, -1)
	for i, m := range found {
		start, end := m[1], len(query)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		name := strings.ToLower(query[m[2]:m[3]])
		if e := textEnd.FindStringIndex(query[start:end]); e != nil {
			end = start + e[0]
			if name != "subject" && name != "title" && strings.ContainsRune(".!?", rune(query[end])) {
				end++ // a sentence has its mark
			}
		}
		text := strings.TrimRight(query[start:end], " ,")
		if text == "" || noText.MatchString(text) {
			continue
		}
		if saysMore(text) {
			return quoted{text: query}
		}
		announced++
		subject = subject || name == "subject"
		if first, _ := utf8.DecodeRuneInString(text); strings.Contains(text, `"`) || !unicode.IsLetter(first) && !unicode.IsDigit(first) {
			continue // in marks already
		}
		if query[m[0]] == ',' {
			marks = append(marks, mark{m[3], ':'})
		}
		marks = append(marks, mark{start, '"'}, mark{start + len(text), '"'})
	}
	if announced < 2 && !subject {
		return quoted{text: query}
	}
	var q quoted
	var b strings.Builder
	at := 0
	for _, m := range marks {
		b.WriteString(query[at:m.place])
		q.marks = append(q.marks, b.Len())
		b.WriteByte(m.sign)
		at = m.place
	}
	b.WriteString(query[at:])
	q.text = b.String()
	return q
}

// plain returns a part of the text as it was asked.
func (q quoted) plain(part string) string {
	start := strings.Index(q.text, part)
	if start < 0 {
		return part
	}
	var b strings.Builder
	at := start
	for _, m := range q.marks {
		if m >= at && m < start+len(part) {
			b.WriteString(q.text[at:m])
			at = m + 1
		}
	}
	b.WriteString(q.text[at : start+len(part)])
	return b.String()
}

// restore has a plan speak of the question as it was asked.
func (q quoted) restore(p *plan.Plan) {
	if len(q.marks) == 0 {
		return
	}
	for _, steps := range [][]plan.Step{p.Steps, p.Open} {
		for i := range steps {
			steps[i].Serves = q.plain(steps[i].Serves)
		}
	}
	for i := range p.Unmet {
		p.Unmet[i].Text = q.plain(p.Unmet[i].Text)
	}
}

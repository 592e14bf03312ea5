package rules

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/planner/rules/values"
)

// role is what a parameter is about, by its name, type and description: a column of score.txt.
type role int

const (
	roleText role = iota
	roleQuery
	rolePlace
	roleID
	roleMoment
	roleCount
	roleMoney
	roleShare
	roleYear
)

// What speaks for a value besides score.txt.
const (
	fitText     = 2.25 // times how well its form fits a text
	fitNumber   = 1.5  // times how well it fits a number
	fitsWell    = 0.75 // it is of the very kind that the parameter asks for
	exemplified = 1.5  // the description names it
	named       = 2    // "called" is before it, and the parameter is a name
	ownPart     = 2    // it is the part of "owner/name" that the parameter is called after
	unitOnly    = 1.5  // it is the currency of an amount
	rightSide   = 1.5  // "from" or "to" is before it, and in the parameter's name
	chosen      = 3    // it is one of the parameter's choices
	choiceStart = 2.2  // it has the same beginning as one of them
	choiceVerb  = 2.5  // the verb means one of them
	choiceCue   = 0.5  // times the words around it
	stopChoice  = -1.5 // it is a word such as "all"
	flagged     = 1.5  // the name of a flag is said
	flaggedWord = 0.5  // for each word of that name
	lone        = 0.5  // less, for a list of one element
	listed      = 1.3  // for each further element of a list
)

func roleOf(q param) role {
	says := func(name string) bool { return list(name).any(q.stems) }
	if q.identifies() {
		return roleID
	}
	if numeric(kindOf(q.Schema)) {
		for i, name := range []string{"year", "share", "money"} {
			if says(name) {
				return roleYear - role(i)
			}
		}
		return roleCount
	}
	switch about := strings.ToLower(clip(q.Description, 40)); {
	case says("place"), len(q.stems) == 1 && says("site"):
		return rolePlace
	case strings.Contains(q.Description, "YYYY-MM-DD"), strings.HasPrefix(q.Format, "date"), says("day"):
		return roleMoment
	case list("id").any(q.stems[max(len(q.stems)-1, 0):]):
		return roleID
	case says("query"):
		return roleQuery
	case kindOf(q.Schema) == "string" && strings.Contains(about, "location"):
		return rolePlace
	case says("moment"):
		return roleMoment
	}
	return roleText
}

// rows are the rows of score.txt by kind; other kinds are addresses.
var rows = map[values.Kind]string{
	values.Number: "number", values.Money: "money", values.Percent: "percent", values.Ordinal: "amount", values.Quantity: "amount",
	values.Duration: "amount", values.Date: "moment", values.DateTime: "moment", values.Time: "moment", values.DateRange: "moment",
	values.TimeRange: "moment", values.Quotation: "quotation", values.Identifier: "identifier", values.Expression: "expression",
	values.Name: "name", values.Phrase: "phrase",
}

// form is the row of score.txt for a value.
func form(v values.Value) string {
	row, at := cmp.Or(rows[v.Kind], "address"), ""
	if list("placeCues")[v.Cue] || v.Kind == values.Name && table().regionOf[strings.ToLower(v.Text)] != "" {
		at = "@" // also "Hotel Paradise, Las Vegas"
	}
	switch {
	case row == "number" && len(v.Text) == 4 && (v.Text[0] == '1' || v.Text[0] == '2'):
		return "yearlike"
	case row == "number" && digitless(v.Text):
		return "spelled"
	case row == "money" && v.Number == "":
		return "currency"
	case row == "name" && v.Cue == "named":
		return "named"
	case row == "name" && v.Cue != "" && at == "":
		return "name+"
	case row == "phrase" && v.Label == "rest":
		return "rest"
	case row == "phrase" && v.Label != "":
		return "keyed"
	case row == "name" || row == "phrase" || row == "quotation":
		return row + at
	}
	return row
}

// take returns what a value gives a parameter.
func (l *filler) take(q param, v values.Value) (c choice, ok bool) {
	fitted, ok := v.Fit(q.Property)
	if !ok || l.excluded(q, v) {
		return c, false
	}
	c = choice{value: fitted.Value, start: v.Start, end: v.End}
	c.score = l.cue(q, v.Start, v.End) + side(q, v) + l.end(q, v) + table().suits[form(v)][q.role]
	if v.Kind == values.Path && (l.misplaced(q, v) || v.Cue == "in" && !l.f.reads && list("from").any(q.stems)) {
		c.score -= 2 * rightSide
	}
	c.unclear = fitted.Ambiguous && v.Kind != values.Percent && !strings.Contains(v.Text, ":")
	text, written := fitted.Value.(string)
	first, last := digits(v.Text)
	if !written {
		c.score += fitNumber * fitted.Score
		if last > 0 && v.Unit != "" { // the unit may say something else: "250 dollars"
			c.start, c.end = v.Start+first, v.Start+last
		}
		return c, true
	}
	if text == v.Unit && last > 0 { // a currency, without the amount
		c.score += unitOnly
		if v.Cue != "to" {
			v.Cue = "from" // the currency of an amount is what it is converted from
			c.score += side(q, v)
		}
		if c.start = v.Start + last; last == len(v.Text) {
			c.start, c.end = v.Start, v.Start+first
		}
	}
	if c.score += fitText * fitted.Score; fitted.Score >= 0.9 {
		c.score += fitsWell
	}
	if v.Kind == values.Path && list("paths").any(l.f.name) && (list("from").any(q.stems) || list("to").any(q.stems)) {
		c.score += fitsWell
	}
	if q.exemplifies(v.Text) {
		c.score += exemplified
	}
	if slices.Contains([]string{"said", "owner", "repo", "region"}, v.Label) {
		c.score += ownPart
	}
	if v.Cue == "named" && list("named").any(q.stems) {
		c.score += named
	}
	if q.role == rolePlace && (v.Kind == values.Name || v.Kind == values.Phrase && v.Label != "said") {
		c.value = q.place(text)
	}
	return c, true
}

// misplaced reports whether a path is where to look and the parameter what to look for, or the other way round: "find
// notes.txt in /tmp".
func (l *filler) misplaced(q param, v values.Value) bool {
	looks := func(p param) bool { return list("named").any(p.stems) }
	where := v.Cue == "in" || strings.HasPrefix(v.Text, "/") && path.Ext(v.Text) == ""
	return slices.ContainsFunc(l.f.params, looks) && looks(q) == where
}

// todayByDefault is how descriptions say that a date need not be given for today.
var todayByDefault = lazy(`(?i)\bdefault\w*\b.{0,20}\b(?:today|current date)`)

func (p *Planner) isToday(v values.Value) bool {
	return v.Kind == values.Date && v.Time.Format(time.DateOnly) == p.now().Format(time.DateOnly)
}

// excluded reports whether a value cannot be what a parameter takes.
func (l *filler) excluded(q param, v values.Value) bool {
	row, sides := form(v), list("from").any(q.stems) != list("to").any(q.stems)
	switch {
	case slices.ContainsFunc(l.f.params, func(o param) bool { return o.Name == v.Text }),
		row == "spelled" && string(v.Number) == strconv.Itoa(l.digits), // "two numbers, 36 and 48"
		v.Kind == values.Path && strings.Contains(v.Text, "*") && !list("named").any(q.stems),
		v.Kind == values.Email && (q.role == roleQuery || list("body").any(q.stems)) && // "ann@x.io" is no subject
			slices.ContainsFunc(l.f.params, func(o param) bool { return o.Format == "email" }),
		v.Kind == values.Expression && list("paths").any(q.stems), // no file is called "12 * 7"
		l.p.isToday(v) && !q.Required && todayByDefault().MatchString(q.Description),
		v.Kind == values.Boolean && v.Cue+v.Label == "" && kindOf(q.Schema) == "string" && len(q.Enum) == 0, // "Yes, merge it"
		v.Label == "bound" && !sides,
		isExcepted(l.a.text, v) && !q.named("exclud") && !q.named("ignor"),
		v.Label == "said" && (q.role == roleID || !list("body").any(q.stems)),
		(v.Label == "owner" || v.Label == "repo") && !q.named(v.Label):
		return true
	case row != "phrase" && row != "phrase@" && row != "rest" && v.Kind != values.Name: // what follows is about words
		return false
	case slices.ContainsFunc(l.f.params, func(o param) bool { // "in Celsius" is no place where that is a choice of a unit
		return o.Name != q.Name && slices.ContainsFunc(choices(o.Schema), func(c string) bool { return strings.EqualFold(c, v.Text) })
	}), q.named("express") && digitless(v.Text), v.Cue != "named" && l.labels(v), q.role == roleID && q.identifies(), v.Cue == "of" && !q.example(v.Text) && q.lists():
		return true
	case !q.example(v.Text) && slices.ContainsFunc(l.f.params, func(o param) bool { return o.Name != q.Name && o.example(v.Text) }):
		return true // "Engineering" is no place where that is a department
	case q.named("currenc"):
		return len(v.Text) != 3 || strings.ToUpper(v.Text) != v.Text
	case v.Label == "region":
		return q.role != rolePlace || q.named("citi") && !strings.Contains(q.Description, ",")
	}
	return v.Kind == values.Name && !strings.Contains(v.Text, " ") && l.f.words[search.Stem(strings.ToLower(v.Text))]
}

// digits returns where the number of a text begins and ends; the end is 0 if there is none.
func digits(text string) (first, end int) {
	first = strings.IndexFunc(text, unicode.IsDigit)
	if first > 0 && text[first-1] == '-' {
		first--
	}
	return first, strings.LastIndexFunc(text, unicode.IsDigit) + 1
}

func digitless(text string) bool { return !strings.ContainsFunc(text, unicode.IsDigit) }

var (
	// exampleLead is how descriptions begin to name values.
	exampleLead = lazy(`(?i)\b(?:e\.?g|such as|for example|for instance|like|examples?|one of|either)\b|[:('"]`)
	// exampleSplit is what stands between them.
	exampleSplit = lazy(`[ ]*(?:[,;:.()'"\[\]]|\b(?:or|and|etc)\b)+[ ]*`)
)

// examples is the part of a description that names values, in lower case: "City: Berlin, Lisbon or Toronto".
func (q param) examples() string {
	about := clip(q.Description, 600)
	if lead := exampleLead().FindStringIndex(about); lead != nil {
		return strings.ToLower(strings.TrimSpace(about[lead[1]:]))
	}
	return ""
}

// exemplifies reports whether a parameter's description names a value.
func (q param) exemplifies(text string) bool {
	text, listed := strings.ToLower(text), q.examples()
	notWord := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '_' }
	return len(text) > 1 && strings.Contains(listed, text) &&
		(strings.Contains(text, " ") || slices.Contains(strings.FieldsFunc(listed, notWord), text))
}

// example reports whether a text is one of several values that a parameter's description names, and the whole of it.
func (q param) example(text string) bool {
	listed := exampleSplit().Split(q.examples(), -1)
	return len(listed) > 1 && slices.Contains(listed, strings.ToLower(text))
}

// listsAll is how a description names all values that a parameter takes.
var listsAll = lazy(`^[^:(]*: (?:\pL+, )*\pL+,? or \pL+\.?$`)

// lists reports whether a parameter's description names all values that it takes: "City: Berlin, Lisbon or Toronto".
func (q param) lists() bool { return listsAll().MatchString(q.Description) }

// labels reports whether a text only names parameters: "the ID".
func (l *filler) labels(v values.Value) bool {
	return !slices.ContainsFunc(readWords(l.a.text, v.Start, v.End, l.a.lang), func(w word) bool {
		return w.weight == 1 && !slices.ContainsFunc(w.stems, func(s string) bool { return l.f.shared[s] > 0 })
	})
}

// end weighs whether a parameter and the words around a number are about the same end of something: "the first 5 lines".
func (l *filler) end(q param, v values.Value) float64 {
	i := slices.IndexFunc(l.a.words, func(w word) bool {
		near := w.end <= v.Start && v.Start-w.end < 3 || w.start >= v.End && w.start-v.End < 3
		return v.Kind == values.Number && near && w.has("first") != w.has("last")
	})
	about := func(end string) bool { return strings.Contains(q.Description, " "+end+" ") }
	switch {
	case i < 0 || about("first") == about("last"):
		return 0
	case about("first") == l.a.words[i].has("first"):
		return rightSide
	}
	return -rightSide
}

// side weighs on which side of a pair a value and a parameter are: "from A to B".
func side(q param, v values.Value) float64 {
	switch from, to := list("from").any(q.stems), list("to").any(q.stems); {
	case from == to || !list("fromCues")[v.Cue] && !list("toCues")[v.Cue]:
		return 0
	case from == list("fromCues")[v.Cue]:
		return rightSide
	}
	return -rightSide
}

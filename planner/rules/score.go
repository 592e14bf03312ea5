package rules

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"regexp"
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

//go:embed score.txt
var scoreText string

// suits is how well forms of values suit roles of parameters.
var suits = readScores(scoreText)

func readScores(text string) map[string][]float64 {
	out := map[string][]float64{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 0 && f[0][0] != '#' {
			for _, score := range f[1:] {
				n, _ := strconv.ParseFloat(score, 64)
				out[f[0]] = append(out[f[0]], n)
			}
		}
	}
	return out
}

func roleOf(q param) role {
	says := func(list string) bool { return lists[list].any(q.stems) }
	about := strings.ToLower(clip(q.Description, 40))
	switch last := q.stems[max(len(q.stems)-1, 0):]; {
	case slices.Contains(last, "id"):
		return roleID
	case numeric(kindOf(q.Schema)):
		for i, list := range []string{"year", "share", "money"} {
			if says(list) {
				return roleYear - role(i)
			}
		}
		return roleCount
	case says("place"), len(q.stems) == 1 && says("site"):
		return rolePlace
	case slices.ContainsFunc(q.stems, func(s string) bool {
		return s == "date" || s == "time" || s == "datetim" ||
			s == "timestamp"
	}),
		strings.Contains(q.Description, "YYYY-MM-DD"), strings.Contains(q.Description, "HH:MM"), q.Format != "" &&
			strings.Contains("date-time", q.Format):
		return roleMoment
	case lists["id"].any(last):
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

// placeCues stand before places.
var placeCues = strings.Fields("in at from to near of for around")

// rows are the rows of score.txt by kind; other kinds are addresses.
var rows = map[values.Kind]string{
	values.Number: "number", values.Money: "money", values.Percent: "percent", values.Ordinal: "amount", values.Quantity: "amount",
	values.Duration: "amount", values.Date: "moment", values.DateTime: "moment", values.Time: "moment", values.DateRange: "moment",
	values.TimeRange: "moment", values.Quotation: "quotation", values.Identifier: "identifier", values.Expression: "expression",
	values.Name: "name", values.Phrase: "phrase",
}

// form is the row of score.txt for a value.
func form(v values.Value) string {
	at, row := "", cmp.Or(rows[v.Kind], "address")
	if slices.Contains(placeCues, v.Cue) || v.Kind == values.Name && regionOf[strings.ToLower(v.Text)] != "" {
		at = "@" // also "Hotel Paradise, Las Vegas"
	}
	switch row {
	case "number":
		if len(v.Text) == 4 && (v.Text[0] == '1' || v.Text[0] == '2') {
			return "yearlike"
		} else if !strings.ContainsFunc(v.Text, unicode.IsDigit) {
			return "spelled"
		}
		return row
	case "money":
		if v.Number == "" {
			return "currency"
		}
		return row
	case "name":
		if v.Cue == "named" {
			return v.Cue
		} else if v.Cue != "" && at == "" {
			at = "+"
		}
	case "phrase":
		if v.Label == "rest" {
			return v.Label
		} else if v.Label != "" {
			return "keyed"
		}
	case "quotation":
	default:
		return row
	}
	return row + at
}

// take returns what a value gives a parameter.
func (l *filler) take(q param, v values.Value) (c choice, ok bool) {
	fitted, ok := v.Fit(q.Property)
	row := form(v)
	part := v.Label == "owner" || v.Label == "repo"
	how := row == "spelled" && string(v.Number) == strconv.Itoa(l.digits) // "two numbers, 36 and 48"
	words := row == "phrase" || row == "phrase@" || row == "rest" || v.Kind == values.Name
	said := v.Label == "said"
	unsaid := said && (q.role == roleID || !lists["body"].any(q.stems))
	bound := v.Label == "bound" && lists["from"].any(q.stems) == lists["to"].any(q.stems)
	glob := v.Kind == values.Path && strings.Contains(v.Text, "*") && !lists["named"].any(q.stems)
	if !ok || how || glob || slices.ContainsFunc(l.f.params, func(o param) bool { return o.Name == v.Text }) || bound || unsaid || words && l.excluded(q, v) || part &&
		!slices.Contains(q.stems, v.Label) {
		return c, false
	}
	if v.Kind == values.Date && v.Time.Equal(l.p.today()) && !q.Required && todayByDefault.MatchString(q.Description) {
		return c, false
	}
	c = choice{value: fitted.Value, start: v.Start, end: v.End, score: l.cue(q, v.Start, v.End) + side(q,
		v) + suits[row][q.role]}
	if v.Kind == values.Path && l.misplaced(q, v) {
		c.score -= 2 * rightSide
	}
	c.unclear = fitted.Ambiguous && v.Kind != values.Percent && !strings.Contains(v.Text, ":")
	text, written := fitted.Value.(string)
	first, last := digits(v.Text)
	switch {
	case !written && last > 0 && v.Unit != "": // the unit may say something else: "250 dollars"
		c.score += fitNumber * fitted.Score
		c.start, c.end = v.Start+first, v.Start+last
		return c, true
	case !written:
		c.score += fitNumber * fitted.Score
		return c, true
	case text == v.Unit && last > 0: // a currency, without the amount
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
	if q.exemplifies(v.Text) {
		c.score += exemplified
	}
	if said || part || v.Label == "region" {
		c.score += ownPart
	}
	if v.Cue == "named" && lists["named"].any(q.stems) {
		c.score += named
	}
	if words && q.role == rolePlace {
		c.value = q.place(text)
	}
	return c, true
}

// todayByDefault is how descriptions say that a date need not be given for today.
var todayByDefault = regexp.MustCompile(`(?i)\bdefault\w*\b.{0,20}\b(?:today|current date)`)

func (p *Planner) today() time.Time {
	year, month, day := p.now().Date()
	return time.Date(year, month, day, 0, 0, 0, 0, p.now().Location())
}

// misplaced reports whether a path is where to look and the parameter what to look for, or the other way round: "find
// notes.txt in /tmp".
func (l *filler) misplaced(q param, v values.Value) bool {
	looks := func(p param) bool { return lists["named"].any(p.stems) }
	return slices.ContainsFunc(l.f.params, looks) && looks(q) == (v.Cue == "in")
}

// excluded reports whether ordinary words or a name cannot be what a parameter takes.
func (l *filler) excluded(q param, v values.Value) bool {
	lower := strings.ToLower(v.Text)
	// "in Celsius" is no place where that is a choice of a unit
	choice := slices.ContainsFunc(l.f.params, func(o param) bool {
		return o.Name != q.Name && slices.ContainsFunc(choices(o.Schema), func(c string) bool {
			return strings.EqualFold(c,
				v.Text)
		})
	})
	switch {
	case choice, slices.Contains(q.stems, "currenc") && (len(v.Text) != 3 || strings.ToUpper(v.Text) != v.Text):
		return true
	case l.labels(v):
		return true
	case q.role == roleID && q.identifies():
		return true
	case v.Kind == values.Name && !strings.Contains(v.Text, " ") && l.f.words[search.Stem(lower)]:
		return true
	case v.Label == "region":
		return q.role != rolePlace || slices.Contains(q.stems, "citi") && !strings.Contains(q.Description, ",")
	}
	return false
}

// digits returns where the number of a text begins and ends; the end is 0 if there is none.
func digits(text string) (first, end int) {
	first = strings.IndexFunc(text, unicode.IsDigit)
	if first > 0 && text[first-1] == '-' {
		first--
	}
	return first, strings.LastIndexFunc(text, unicode.IsDigit) + 1
}

// exampleLead is how descriptions begin to name values.
var exampleLead = regexp.MustCompile(`(?i)\b(?:e\.?g|such as|for example|for instance|like|examples?|one of|either)\b|[:('"]`)

// exemplifies reports whether a parameter's description names a value: "City: Berlin, Lisbon or Toronto".
func (q param) exemplifies(text string) bool {
	about := clip(q.Description, 600)
	lead := exampleLead.FindStringIndex(about)
	if lead == nil || len(text) < 2 {
		return false
	}
	return slices.Contains(strings.FieldsFunc(strings.ToLower(about[lead[1]:]), notWord), strings.ToLower(text)) ||
		strings.Contains(text, " ") && strings.Contains(strings.ToLower(about[lead[1]:]), strings.ToLower(text))
}

// example reports whether a text is one of the values that a parameter's description names, and the whole of it.
func (q param) example(text string) bool {
	about := clip(q.Description, 600)
	lead := exampleLead.FindStringIndex(about)
	if lead == nil {
		return false
	}
	listed := exampleSplit.Split(strings.ToLower(about[lead[1]:]), -1)
	return len(listed) > 1 && slices.Contains(listed, strings.ToLower(text))
}

// exampleSplit is what stands between values in descriptions.
var exampleSplit = regexp.MustCompile(`[ ]*(?:[,;:.()'"\[\]]|\b(?:or|and|etc)\b)+[ ]*`)

func notWord(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '_' }

// labels reports whether a text only names parameters: "the ID".
func (l *filler) labels(v values.Value) bool {
	return !slices.ContainsFunc(readWords(l.a.text, v.Start, v.End, l.a.lang), func(w word) bool {
		return w.weight == 1 && !slices.ContainsFunc(w.stems, func(s string) bool { return l.f.shared[s] > 0 })
	})
}

// side weighs on which side of a pair a value and a parameter are: "from A to B".
func side(q param, v values.Value) float64 {
	of := func(from, to bool) float64 {
		switch {
		case from == to:
			return 0
		case from:
			return 1
		}
		return -1
	}
	return rightSide * of(lists["from"].any(q.stems), lists["to"].any(q.stems)) *
		of(slices.Contains([]string{"from", "since", "between", "after", "over"}, v.Cue), slices.Contains([]string{"to", "until", "before", "under"}, v.Cue))
}

// encode writes arguments as JSON; what came from schemas and text always can be.
func encode(args map[string]any) json.RawMessage {
	raw, err := json.Marshal(args)
	if err != nil {
		return json.RawMessage("{}")
	}
	return raw
}

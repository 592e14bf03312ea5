// Package values reads typed values out of a question: numbers with their units, dates and times, addresses, paths,
// quotations, identifiers and names, in English, German, French and Spanish.
//
// [Extract] finds the values, [Value.Fit] writes one as a parameter of a tool wants it, and [Enum] finds the choices of
// an enumeration. A value that can be read in more than one way has the other readings as Alternatives, and Fit reports
// an ambiguity unless the parameter decides it. Nothing depends on the clock of the machine. All functions are safe for
// concurrent use and take time linear in the text.
//
// How what is ambiguous is read:
//   - 03.04.2025 is the 3rd of April, and so is 03/04/2025 in German, French and Spanish. In English, another date of
//     the text decides (25/12/2025, 12/25/2025), else both readings stand.
//   - A comma or a point before three digits follows the language: 1,250 in English and 1.250 in German are 1250.
//     Where a language uses both ways (1,250 in German, both in Spanish) both readings stand.
//   - A day without a year is the coming one; Options.Past makes it the last one. A month or a quarter of this year that
//     is over may also be the next one. "Next Friday" and "last Monday" are ambiguous if the nearest such day is in this
//     week.
//   - An hour up to 12 without am, pm or a part of the day may be either; digits as on a digital clock (14:30, 09:30)
//     may not, but 9:30 may in English. A range lies within a day: from 9 to 5 is 09:00 to 17:00.
package values

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Kind is what a value is.
type Kind uint8

// The kinds of values.
const (
	Number     Kind = iota + 1 // 42, 1.250,50, twenty-five; Noun is what is counted
	Ordinal                    // 3rd, second
	Money                      // Number, Unit has the ISO 4217 code
	Quantity                   // Number and Unit, as in 5 km; the Unit is a symbol
	Percent                    // Number is 15 for 15 %
	Duration                   // Number and Unit: millisecond, second, minute, hour, day, week, month, year …
	Date                       // Time is the beginning of the day
	DateTime                   // Time
	Time                       // Time is on the day of Options.Now
	DateRange                  // Time is the first day and Until the last one: last week, Q3, 3 to 5 June
	TimeRange                  // Time and Until
	Email                      //
	URL                        // with or without scheme
	Path                       // of a file or folder
	Quotation                  // Text is without the marks
	Identifier                 // A-99812, #4711, owner/repo, UUIDs, hashes; Text is without the #
	Name                       // capitalised words inside of a sentence
	Phrase                     // words that a key or "called" introduces: room: blue
	Boolean                    // Flag
	Expression                 // Text is the calculation: 2500 * 0.15
)

// Value is a value of a text.
type Value struct {
	Kind       Kind
	Start, End int    // bytes in the text
	Text       string // as written, without marks around it

	Number      json.Number // a plain decimal
	Unit        string
	Noun        string // the word after a number: "guests" in "3 guests"
	Time, Until time.Time
	Zoned       bool // the text names the time zone
	Flag        bool

	Cue   string // the function word before, in English: from, to, at, by, for, in, of, with, named, until …
	Label string // the noun or key before, in lower case: "order" in "order 4711", "room" in "room: Blue"

	Alternatives []Value // other readings of the same text

	at, next int // tokens
}

// Options are what a text itself does not say.
type Options struct {
	Now      time.Time // "today"; its location is that of all times without one
	Language string    // en, de, fr or es; otherwise it is guessed, English in doubt
	Past     bool      // the text speaks of the past
}

// Bounds returns the ends of a range as values of their own, with the cues "from" and "to".
func (v Value) Bounds() (from, to Value, ok bool) {
	from, to = v, v
	switch v.Kind {
	case DateRange:
		from.Kind, to.Kind = Date, Date
	case TimeRange:
		from.Kind, to.Kind = Time, Time
	default:
		return v, v, false
	}
	from.Cue, from.Until = "from", time.Time{}
	to.Cue, to.Time, to.Until = "to", v.Until, time.Time{}
	from.Alternatives, to.Alternatives = nil, nil
	for _, a := range v.Alternatives {
		if f, t, ok := a.Bounds(); ok {
			from.Alternatives, to.Alternatives = append(from.Alternatives, f), append(to.Alternatives, t)
		}
	}
	return from, to, true
}

// Extract returns the values of a text by where they begin, longer ones first. Values overlap where both readings make
// sense: a range and its ends, a date with a time and both parts, an expression and its numbers, "the 5th" as a day and
// as an ordinal. A quotation is read as another value besides only if that is the whole of it.
func Extract(text string, o Options) []Value {
	quotes := quotations(text)
	r := newReader(text, quotes, o)
	for i := 0; i < len(r.tokens); {
		i = max(r.read(i), i+1)
	}
	for i := range r.out {
		v := &r.out[i]
		v.Cue, v.Label = r.before(v.at)
		for j := range v.Alternatives {
			v.Alternatives[j].Start, v.Alternatives[j].End, v.Alternatives[j].Text = v.Start, v.End, v.Text
		}
	}
	slices.SortStableFunc(r.out, func(a, b Value) int {
		if a.Start != b.Start {
			return a.Start - b.Start
		}
		return b.End - a.End
	})
	r.pairCues()
	return r.out
}

// reader reads the values of one text.
type reader struct {
	Options
	text     string
	tokens   []token
	words    lexicon
	dayFirst bool // numeric dates
	anyOrder bool // dayFirst is not known
	out      []Value
}

func newReader(text string, quotes []span, o Options) *reader {
	r := &reader{Options: o, text: text, tokens: tokenize(text, quotes)}
	if r.words = lexicons[o.Language]; r.words == nil {
		r.Language = r.guess()
		r.words = lexicons[r.Language]
	}
	r.orderDates()
	return r
}

// guess returns the language with most function words in the text.
func (r *reader) guess() string {
	best, most := "en", 0
	for _, language := range []string{"en", "de", "fr", "es"} {
		count := 0
		for _, t := range r.tokens {
			for _, class := range []string{"article", "other", "cue"} {
				if len(lexicons[language][class][t.fold]) > 0 {
					count++
					break
				}
			}
		}
		if count > most {
			best, most = language, count
		}
	}
	return best
}

// tok returns a token, an empty one beyond the ends.
func (r *reader) tok(i int) token {
	if i < 0 || i >= len(r.tokens) {
		return token{start: len(r.text), end: len(r.text), gap: true, stop: true}
	}
	return r.tokens[i]
}

// match returns what the longest phrase of a class at token i means and the token after it, 0 if there is none.
func (r *reader) match(i int, class string) (means string, next int) {
phrases:
	for _, p := range r.words[class][r.tok(i).fold] {
		for j, word := range p.rest {
			if r.tok(i+1+j).fold != word {
				continue phrases
			}
		}
		return p.means, i + 1 + len(p.rest)
	}
	return "", 0
}

func (r *reader) is(i int, class string) bool {
	_, next := r.match(i, class)
	return next > 0
}

// skip returns the token after a phrase of one of the classes, or i.
func (r *reader) skip(i int, classes ...string) int {
	for _, class := range classes {
		if _, next := r.match(i, class); next > 0 {
			return next
		}
	}
	return i
}

// skipMark returns the token after one of the marks, or i.
func (r *reader) skipMark(i int, marks string) int {
	if t := r.tok(i); t.kind == 'p' && strings.Contains(marks, t.fold) {
		return i + 1
	}
	return i
}

// word reports whether token i is a word with a meaning of its own.
func (r *reader) word(i int) bool {
	return r.tok(i).kind == 'w' && !r.is(i, "article") && !r.is(i, "other") && !r.is(i, "cue")
}

// ends reports whether what ends before token next is not the beginning of a longer word or code.
func (r *reader) ends(next int) bool {
	t := r.tok(next)
	if t.gap || t.kind == 'q' {
		return true
	}
	after := r.tok(next + 1)
	return t.kind == 'p' && (!strings.Contains("-_/.:@\\", t.fold) || after.gap || after.kind == 'p')
}

// value makes a value of the tokens [i,next).
func (r *reader) value(kind Kind, i, next int) Value {
	start, end := r.tok(i).start, r.tok(next-1).end
	return Value{Kind: kind, Start: start, End: end, Text: r.text[start:end], at: i, next: next}
}

// add keeps values and returns the token after the last.
func (r *reader) add(values ...Value) int {
	next := 0
	for _, v := range values {
		r.out = append(r.out, v)
		next = max(next, v.next)
	}
	return next
}

// read reads what begins at token i and returns the token after it, 0 if there is nothing.
func (r *reader) read(i int) int {
	if e, ok := r.expression(i); ok {
		r.add(e)
	}
	for _, read := range []func(int) int{r.quotation, r.address, r.moments, r.amounts, r.code, r.keyed, r.name} {
		if next := read(i); next > 0 {
			return next
		}
	}
	return 0
}

// quotation reads a quotation, and its text as a value if it is one.
func (r *reader) quotation(i int) int {
	t := r.tok(i)
	if t.kind != 'q' {
		return 0
	}
	runes := []rune(r.text[t.start:t.end])
	first, last := len(string(runes[0])), len(string(runes[len(runes)-1]))
	v := r.value(Quotation, i, i+1)
	v.Text = r.text[t.start+first : t.end-last]
	r.add(v)
	o := r.Options
	o.Language = r.Language
	inner := newReader(v.Text, nil, o)
	inner.read(0)
	for _, w := range inner.out {
		if w.Start == 0 && w.End == len(v.Text) {
			w.Start, w.End, w.at, w.next = v.Start, v.End, i, i+1
			r.add(w)
		}
	}
	return i + 1
}

// before returns the cue and the label of a value at token i.
func (r *reader) before(i int) (cue, label string) {
	j := i - 1
	if r.tok(j).fold == "#" && r.tok(j).kind == 'p' {
		j--
	}
	keyed := j > 0 && (r.tok(j).fold == ":" || r.tok(j).fold == "=")
	if keyed {
		j--
	}
	// A label is a word or two, more before a colon.
	end := j
	for j >= 0 && r.word(j) && !r.tok(j+1).stop && (j == end || keyed && end-j < 3 || r.is(j+1, "generic")) {
		j--
	}
	if j < end {
		label = strings.ToLower(r.text[r.tok(j+1).start:r.tok(end).end])
	}
	for skipped := 0; skipped < 2 && r.is(j, "article") && !r.is(j, "cue") && !r.tok(j+1).stop; skipped++ {
		j--
	}
	if r.tok(j + 1).stop {
		return "", label
	}
	for back := 3; back >= 0; back-- { // the longest phrase that ends here
		if means, next := r.match(j-back, "cue"); next == j+1 {
			return means, label
		}
	}
	return "", label
}

// pairCues gives the second of two values that "between" or a dash joins the cue "to", and the first one "from". In
// German, French and Spanish "of" before a value with "to" after it means from as well.
func (r *reader) pairCues() {
	for i := range r.out {
		v := &r.out[i]
		for j := i + 1; j < min(len(r.out), i+4); j++ {
			w := &r.out[j]
			if w.Kind != v.Kind || w.at < v.next || w.at > v.next+2 {
				continue
			}
			joined := r.tok(w.at - 1).fold
			switch {
			case v.Cue == "between" && w.Cue == "", w.at == v.next+1 && (joined == "-" || joined == "–" || joined == "—"):
				v.Cue, w.Cue = "from", "to"
			case v.Cue == "of" && (w.Cue == "to" || w.Cue == "until"):
				v.Cue = "from"
			}
			break
		}
	}
}

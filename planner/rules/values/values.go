// Package values reads typed values out of a question: numbers with their units, dates and times, addresses, paths,
// quotations, identifiers and names, in English, German, French and Spanish.
//
// [Extract] finds the values, [Value.Fit] writes one as a parameter of a tool wants it, and [Enum] finds the choices of
// an enumeration. A value that can be read in more than one way has the other readings as Alternatives, and Fit reports
// an ambiguity unless the parameter decides it. Nothing depends on the clock of the machine. All functions are safe for
// concurrent use and take time linear in the text.
//
// How what is ambiguous is read:
//   - 03.04.2025 is the 3rd of April, and so is 03/04/2025 in German, French and Spanish. In English both readings
//     stand, unless the number of the month decides.
//   - A comma or a point before three digits follows the language: 1,250 in English is 1250, and so is 1.250 in German.
//     Where a language uses both ways (1,250 in German, both in Spanish) both readings stand.
//   - A day without a year is the coming one. A month or a quarter of this year that is over may also be the next one.
//     "Next Friday" and "last Monday" are ambiguous if the nearest such day is in this week.
//   - An hour up to 12 without am, pm or a part of the day may be either; digits as on a digital clock (14:30, 09:30)
//     or with "h" may not, but 9:30 may in English, and with "Uhr" hours up to 6. A range lies within a day: from 9 to
//     5 is 09:00 to 17:00.
package values

import (
	"encoding/json"
	"slices"
	"time"
)

// Kind is what a value is.
type Kind uint8

// The kinds of values.
const (
	Number     Kind = iota + 1 // 42, 1.250,50, twenty-five
	Ordinal                    // 3rd, second
	Money                      // Number, Unit has the ISO 4217 code; a currency alone has no Number
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
	Time, Until time.Time
	Flag        bool

	Cue   string // the function word before, in English: from, to, at, by, for, in, of, with, named, until …
	Label string // the noun or key before, in lower case: "order" in "order 4711", "room" in "room: Blue"

	Alternatives []Value // other readings of the same text

	at, next int  // tokens
	open     bool // a day without a year
}

// Options are what a text itself does not say.
type Options struct {
	Now      time.Time // "today"; its location is that of all times without one
	Language string    // en, de, fr or es; otherwise it is guessed, English in doubt
}

// Extract returns the values of a text by where they begin, longer ones first. Values overlap where both readings make
// sense: a range and its ends, a date with a time and both parts, an expression and its numbers, "the 5th" as a day and
// as an ordinal. A quotation is read as another value besides only if that is the whole of it.
func Extract(text string, o Options) []Value {
	r := newReader(text, quotations(text), o)
	for i := 0; i < len(r.tokens); {
		i = max(r.read(i), i+1)
	}
	r.sameYear()
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

// read reads what begins at token i and returns the token after it, 0 if there is nothing.
func (r *reader) read(i int) int {
	readers := []func(int) int{r.quotation, r.address, r.moments, r.amounts, r.code, r.keyed, r.name}
	parts, _ := r.parts(i)
	begins := r.tok(i).kind == 'd' || r.tok(i).kind == 'q' || r.variable(i) || r.mark(i, "(-−")
	if !begins && parts == nil && len(r.words["first"][r.tok(i).fold]) == 0 {
		readers = slices.Delete(readers, 2, 4)
	} else if e, ok := r.expression(i); ok {
		r.calculated = r.add(e)
	}
	for _, read := range readers {
		if next := read(i); next > 0 {
			return next
		}
	}
	return 0
}

package rules

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	isoDate     = regexp.MustCompile(`^(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?:[T ](\d{1,2}):(\d{2}).*)?$`)
	numericDate = regexp.MustCompile(`^(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})$`)
	clockForm   = regexp.MustCompile(`^(?i)(\d{1,2})(?::(\d{2}))?(?::\d{2})?\s*(am|pm|a\.m|p\.m)?$`)
)

var monthNames = map[string]int{
	"january": 1, "february": 2, "march": 3, "april": 4, "may": 5, "june": 6, "july": 7, "august": 8, "september": 9, "october": 10,
	"november": 11, "december": 12, "jan": 1, "feb": 2, "mar": 3, "apr": 4, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "sept": 9, "oct": 10,
	"nov": 11, "dec": 12,
}

var weekdays = map[string]time.Weekday{
	"sunday": 0, "monday": 1, "tuesday": 2, "wednesday": 3, "thursday": 4, "friday": 5, "saturday": 6,
}

// dates finds calendar dates and times of day. A date that "today is" introduces sets r.today.
func (r *reading) dates() []mention {
	var out []mention
	for i := 0; i < len(r.tokens); {
		d, end := r.dateAt(i)
		k := kindDate
		if end == 0 {
			d, end = r.clockAt(i)
			k = kindTime
		}
		if end == 0 {
			i++
			continue
		}
		if k == kindDate && d.full() && r.saysToday(i) {
			r.today = d
			i = end
			continue
		}
		if k == kindDate {
			if at, stop := r.clockAt(r.skip(end, "at", ",", "by", "from")); stop > 0 && !d.timed {
				d.hour, d.minute, d.timed = at.hour, at.minute, true
				out = append(out, mention{kind: kindTime, start: stop - 1, end: stop, text: r.between(r.skip(end, "at", ",", "by", "from"), stop), date: at})
				end = max(end, stop-1)
			}
		}
		if k == kindDate && d.relative != "" {
			if exact, stop := r.dateAt(min(r.skip(end, ","), len(r.tokens)-1)); stop > end && exact.full() {
				d, end = exact, stop
			}
		}
		out = append(out, mention{kind: k, start: i, end: end, text: r.between(i, end), date: d})
		i = max(end, i+1)
	}
	shareYear(out)
	return out
}

// shareYear gives dates without a year the year of another date of the question.
func shareYear(dates []mention) {
	year := 0
	for _, m := range dates {
		if m.date.full() {
			year = m.date.year
		}
	}
	for i := range dates {
		if d := &dates[i].date; d.year == 0 && d.month > 0 {
			d.year = year
		}
	}
}

// skip returns i, or the index after token i if that is one of the words.
func (r reading) skip(i int, words ...string) int {
	if i < len(r.tokens) && (r.tokens[i].is(words...) || r.tokens[i].text == ",") {
		return i + 1
	}
	return i
}

// saysToday reports whether "today is" (or "today's date is", "current date:") leads to token i, which may be the end.
func (r reading) saysToday(i int) bool {
	for j := max(0, i-4); j+1 < i; j++ {
		if !r.tokens[j].is("today", "current") {
			continue
		}
		if r.tokens[j].possessive() || r.tokens[j+1].is("is", "'s", "date", ":", "day", "=") {
			return true
		}
	}
	return false
}

// dateAt reads a date that begins at token i and returns the token after it, or 0.
func (r reading) dateAt(i int) (date, int) {
	t := r.tokens[i]
	if m := isoDate.FindStringSubmatch(t.text); m != nil {
		d := date{year: atoi(m[1]), month: atoi(m[2]), day: atoi(m[3])}
		if m[4] != "" {
			d.hour, d.minute, d.timed = atoi(m[4]), atoi(m[5]), true
		}
		return valid(d, i+1)
	}
	if m := numericDate.FindStringSubmatch(t.text); m != nil {
		d := date{year: atoi(m[3]), month: atoi(m[1]), day: atoi(m[2])}
		if d.month > 12 {
			d.month, d.day = d.day, d.month
		}
		return valid(d, i+1)
	}
	if d, end := r.namedDate(i); end > 0 {
		return d, end
	}
	return r.relativeDate(i)
}

// namedDate reads "April 3rd, 2023", "3 April", "the 3rd of April" and "April 2023".
func (r reading) namedDate(i int) (date, int) {
	if m := r.month(i); m > 0 {
		if y := r.year(i + 1); y > 0 {
			return date{year: y, month: m}, i + 2
		}
		if d := r.dayOfMonth(i + 1); d > 0 {
			j := r.skip(i+2, "of", "in")
			if y := r.year(j); y > 0 {
				return valid(date{year: y, month: m, day: d}, j+1)
			}
			return valid(date{month: m, day: d}, i+2)
		}
		return date{}, 0
	}
	if y := r.year(i); y > 0 && r.month(i+1) > 0 {
		if d := r.dayOfMonth(i + 2); d > 0 {
			return valid(date{year: y, month: r.month(i + 1), day: d}, i+3)
		}
	}
	d := r.dayOfMonth(i)
	if d == 0 {
		return date{}, 0
	}
	j := r.skip(i+1, "of")
	m := r.month(j)
	if m == 0 {
		return date{}, 0
	}
	k := r.skip(j+1, "of", "in")
	if y := r.year(k); y > 0 {
		return valid(date{year: y, month: m, day: d}, k+1)
	}
	return valid(date{month: m, day: d}, j+1)
}

func (r reading) month(i int) int {
	if i >= len(r.tokens) || !r.tokens[i].capital() && !longMonth(r.tokens[i].lower) && (i == 0 || r.dayOfMonth(i-1) == 0 && !r.tokens[i-1].is("of")) {
		return 0
	}
	return monthNames[strings.TrimSuffix(r.tokens[i].lower, ".")]
}

// longMonth reports whether a word in lower case is surely a month.
func longMonth(w string) bool { return len(w) > 3 && w != "march" }

func (r reading) dayOfMonth(i int) int {
	if i >= len(r.tokens) {
		return 0
	}
	s := strings.TrimRight(r.tokens[i].lower, "stndrh")
	if len(s) > 2 || !allDigits(s) {
		return 0
	}
	if d := atoi(s); d <= 31 {
		return d
	}
	return 0
}

func (r reading) year(i int) int {
	if i >= len(r.tokens) || len(r.tokens[i].text) != 4 || !allDigits(r.tokens[i].text) {
		return 0
	}
	if y := atoi(r.tokens[i].text); y >= 1000 && y < 2200 {
		return y
	}
	return 0
}

// relativeDate reads "today", "tomorrow", "next Friday" and the like.
func (r reading) relativeDate(i int) (date, int) {
	t := r.tokens[i]
	if t.is("today", "tomorrow", "yesterday", "tonight") {
		if t.is("today") && t.possessive() && i+1 < len(r.tokens) && r.tokens[i+1].is("date") {
			return date{}, 0 // the date follows
		}
		return date{relative: t.lower}, i + 1
	}
	if t.is("day") && i+2 < len(r.tokens) && r.tokens[i+1].is("after") && r.tokens[i+2].is("tomorrow") {
		return date{relative: "overmorrow"}, i + 3
	}
	if _, ok := weekdays[t.lower]; ok && t.capital() {
		return date{relative: t.lower}, i + 1
	}
	if t.is("next", "this", "coming", "last") && i+1 < len(r.tokens) {
		if _, ok := weekdays[r.tokens[i+1].lower]; ok {
			return date{relative: t.lower + " " + r.tokens[i+1].lower}, i + 2
		}
	}
	return date{}, 0
}

// clockAt reads a time of day: 3pm, 4:30 PM, 09:16, noon.
func (r reading) clockAt(i int) (date, int) {
	if i >= len(r.tokens) {
		return date{}, 0
	}
	t := r.tokens[i]
	switch {
	case t.is("noon", "midday"):
		return date{hour: 12, timed: true}, i + 1
	case t.is("midnight"):
		return date{timed: true}, i + 1
	}
	m := clockForm.FindStringSubmatch(t.text)
	if m == nil {
		return date{}, 0
	}
	d := date{hour: atoi(m[1]), minute: atoi(m[2]), timed: true}
	half, end := strings.ToLower(strings.ReplaceAll(m[3], ".", "")), i+1
	if half == "" && end < len(r.tokens) {
		if next := strings.ReplaceAll(r.tokens[end].lower, ".", ""); next == "am" || next == "pm" {
			half = next
			end++
		}
	}
	if half == "" && m[2] == "" || d.hour > 23 || d.minute > 59 {
		return date{}, 0
	}
	if half == "pm" && d.hour < 12 {
		d.hour += 12
	}
	if half == "am" && d.hour == 12 {
		d.hour = 0
	}
	return d, end
}

func atoi(s string) int { n, _ := strconv.Atoi(s); return n }

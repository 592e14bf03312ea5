package values

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	isoDate     = regexp.MustCompile(`^(\d{4})([-/.])(\d{1,2})([-/.])(\d{1,2})`)
	numericDate = regexp.MustCompile(`^(\d{1,2})([-/.])(\d{1,2})([-/.])(\d{4}|\d{2})?`)
	anyNumeric  = regexp.MustCompile(`(?:^|[^\d./-])(\d{1,2})[-/](\d{1,2})[-/]\d{4}`)
)

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

// orderDates finds out whether days or months come first in numeric dates.
func (r *reader) orderDates() {
	r.dayFirst, r.anyOrder = true, r.Language == "en"
	for _, m := range anyNumeric.FindAllStringSubmatch(r.text, -1) {
		if first, second := atoi(m[1]), atoi(m[2]); first > 12 != (second > 12) {
			r.dayFirst, r.anyOrder = first > 12, false
		}
	}
}

// shape matches an expression at token i and returns its groups and the token after it, 0 if it ends inside of one.
func (r *reader) shape(i int, form *regexp.Regexp) (groups []string, next int) {
	start := r.tok(i).start
	m := form.FindStringSubmatch(r.text[start:])
	if m == nil || m[0] == "" {
		return nil, 0
	}
	end := start + len(m[0])
	for next = i; r.tok(next).start < end; next++ {
	}
	if r.tok(next-1).end != end {
		return nil, 0
	}
	return m, next
}

func (r *reader) today() time.Time { return r.day(r.Now.Year(), r.Now.Month(), r.Now.Day()) }

func (r *reader) day(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, r.Now.Location())
}

// on makes a date, which has to exist.
func (r *reader) on(i, next, year, month, day int) (Value, bool) {
	v := r.value(Date, i, next)
	v.Time = r.day(year, time.Month(month), day)
	return v, next > i && month >= 1 && month <= 12 && day >= 1 && v.Time.Day() == day
}

// between makes a range of days.
func (r *reader) between(i, next int, first, last time.Time) Value {
	v := r.value(DateRange, i, next)
	v.Time, v.Until = first, last
	return v
}

// or adds another reading, unless it is the same.
func or(v, other Value) Value {
	if !other.Time.Equal(v.Time) || !other.Until.Equal(v.Until) {
		v.Alternatives = append(v.Alternatives, other)
	}
	return v
}

// date reads a day or a range of days.
func (r *reader) date(i int) (Value, bool) {
	if t := r.tok(i); t.kind == 'd' && !t.gap && (r.tok(i-1).kind == 'w' || r.tok(i-1).fold == "/") {
		return Value{}, false
	}
	for _, read := range []func(int) (Value, bool){r.numeric, r.named, r.relative, r.counted, r.quarter} {
		if v, ok := read(i); ok && (r.ends(v.next) || r.tok(v.next).fold == "t" || r.tok(v.next).fold == "-") {
			return v, true
		}
	}
	return Value{}, false
}

// numeric reads 2025-04-03, 03.04.2025 and 3/4/25.
func (r *reader) numeric(i int) (Value, bool) {
	if m, next := r.shape(i, isoDate); next > 0 && m[2] == m[4] {
		return r.on(i, next, atoi(m[1]), atoi(m[3]), atoi(m[5]))
	}
	m, next := r.shape(i, numericDate)
	if next == 0 || m[2] != m[4] || m[5] == "" && (m[2] != "." || r.Language != "de") || len(m[5]) == 2 && m[2] == "-" {
		return Value{}, false
	}
	year, day, month := atoi(m[5]), atoi(m[1]), atoi(m[3])
	if len(m[5]) == 2 {
		year += 2000
	}
	if m[5] == "" {
		return r.yearless(i, next, month, day)
	}
	v, ok := r.on(i, next, year, month, day)
	w, swapped := r.on(i, next, year, day, month)
	switch {
	case m[2] == "." || !swapped:
		return v, ok
	case !ok || !r.dayFirst:
		return w, swapped
	case r.anyOrder:
		return or(v, w), true
	}
	return v, true
}

// yearless makes the coming day of a month, or with Past the last one.
func (r *reader) yearless(i, next, month, day int) (Value, bool) {
	step := 1
	if r.Past {
		step = -1
	}
	for n := 0; n <= 8; n++ {
		v, ok := r.on(i, next, r.Now.Year()+n*step, month, day)
		if ok && (!r.Past && !v.Time.Before(r.today()) || r.Past && !v.Time.After(r.today())) {
			return v, true
		}
	}
	return Value{}, false
}

// named reads "Friday, April 3rd, 2025", "el 3 de abril", "April 2025" and a weekday.
func (r *reader) named(i int) (Value, bool) {
	j := i
	if _, next := r.weekdayAt(i); next > 0 {
		j = r.skip(r.skipMark(next, ".,"), "article")
	}
	day, k := r.dayOfMonth(j)
	month, l := r.monthAt(r.skip(k, "of", "cue"))
	if k == 0 || l == 0 {
		month, l = r.monthAt(j)
		day, k = r.dayOfMonth(l)
		if year, next := r.year(r.skip(r.skipMark(l, ","), "of", "cue")); l > 0 && next > 0 && j == i {
			first := r.day(year, time.Month(month), 1)
			return r.between(i, next, first, first.AddDate(0, 1, -1)), true
		}
		if l > 0 && k == 0 && j == i && r.introduced(i) {
			return r.monthly(i, l, time.Month(month), 1), true
		}
		l = k
	}
	if l > 0 && month > 0 && day > 0 {
		if year, next := r.year(r.skip(r.skipMark(l, ","), "of", "cue")); next > 0 {
			return r.on(i, next, year, month, day)
		}
		return r.yearless(i, l, month, day)
	}
	if weekday, next := r.weekdayAt(i); next > 0 {
		if which, after := r.match(next, "after"); after > 0 {
			return r.weekly(i, after, weekday, which), true
		}
		return r.weekly(i, next, weekday, ""), true
	}
	return Value{}, false
}

// introduced reports whether a function word before token i says that a date follows.
func (r *reader) introduced(i int) bool {
	return r.is(i-1, "cue") || r.is(i-1, "edge") || r.is(i-1, "next") || r.is(i-1, "to") || i == 0 && len(r.tokens) == 1
}

func (r *reader) monthAt(i int) (month, next int) {
	means, next := r.match(i, "month")
	t := r.tok(i)
	if next == 0 || r.Language == "en" && !t.upper && (len(t.fold) < 4 || t.fold == "march") && r.tok(i-1).kind != 'd' && r.tok(i+1).kind != 'd' {
		return 0, 0
	}
	if len(t.fold) <= 5 && r.tok(next+1).kind == 'd' { // Apr. 3
		next = r.skipMark(next, ".")
	}
	return atoi(means), next
}

func (r *reader) weekdayAt(i int) (weekday, next int) {
	means, next := r.match(i, "weekday")
	if t := r.tok(i); next > 0 && len(t.fold) < 6 && r.Language == "en" && (!t.upper || !r.introduced(i) && r.tok(next).fold != ",") {
		return 0, 0
	}
	return atoi(means), next
}

// dayOfMonth reads 3, 3rd, 3. or third.
func (r *reader) dayOfMonth(i int) (day, next int) {
	t := r.tok(i)
	if means, next := r.match(i, "ordinal"); next > 0 {
		return atoi(means), next
	}
	if t.kind != 'd' || t.end-t.start > 2 || atoi(t.fold) > 31 || r.tok(i+1).fold == ":" {
		return 0, 0
	}
	if next = r.skip(i+1, "suffix"); r.Language == "de" {
		next = r.skipMark(next, ".")
	}
	return atoi(t.fold), next
}

func (r *reader) year(i int) (year, next int) {
	t := r.tok(i)
	if t.kind != 'd' || t.end-t.start != 4 || t.fold < "1000" || t.fold > "2199" || !r.ends(i+1) && r.tok(i+1).fold != "-" {
		return 0, 0
	}
	return atoi(t.fold), i + 1
}

// monthly is the range of some months of this year. One that is over may also be that of next year.
func (r *reader) monthly(i, next int, month time.Month, months int) Value {
	first := r.day(r.Now.Year(), month, 1)
	v := r.between(i, next, first, first.AddDate(0, months, -1))
	w := r.between(i, next, first.AddDate(1, 0, 0), first.AddDate(1, months, -1))
	if r.Past {
		w = r.between(i, next, first.AddDate(-1, 0, 0), first.AddDate(-1, months, -1))
		if first.After(r.today()) {
			return w
		}
	} else if v.Until.Before(r.today()) {
		return or(v, w)
	}
	return v
}

// monday is the first day of a week.
func (r *reader) monday(weeks int) time.Time {
	today := r.today()
	return today.AddDate(0, 0, 7*weeks-(int(today.Weekday())+6)%7)
}

// weekly is a weekday: "1" the next, "-1" the last, "0" that of this week, "" the coming one.
func (r *reader) weekly(i, next, weekday int, which string) Value {
	today := r.today()
	ahead := (weekday - int(today.Weekday()) + 7) % 7
	at := func(days int) Value {
		v := r.value(Date, i, next)
		v.Time = today.AddDate(0, 0, days)
		return v
	}
	inWeek := func(weeks int) Value {
		v := at(0)
		v.Time = r.monday(weeks).AddDate(0, 0, (weekday+6)%7)
		return v
	}
	switch {
	case which == "1":
		return or(inWeek(1), at((ahead+6)%7+1))
	case which == "-1":
		return or(at((ahead+6)%7-6), inWeek(-1))
	case which == "0":
		return inWeek(0)
	case r.Past:
		return at((ahead+6)%7 - 6)
	case ahead == 0:
		return or(at(0), at(7))
	}
	return at(ahead)
}

// relative reads "tomorrow", "next week", "le mois dernier", "this Friday", "last 7 days", "end of the month".
func (r *reader) relative(i int) (Value, bool) {
	if days, next := r.match(i, "day"); next > 0 {
		v := r.value(Date, i, next)
		v.Time = r.today().AddDate(0, 0, atoi(days))
		return v, !r.is(i-1, "next")
	}
	if which, j := r.match(i, "edge"); j > 0 {
		if v, ok := r.span(j); ok {
			date := r.value(Date, i, v.next)
			if date.Time = v.Time; which == "1" {
				date.Time = v.Until
			}
			for _, a := range v.Alternatives {
				other := date
				if other.Time = a.Time; which == "1" {
					other.Time = a.Until
				}
				date.Alternatives = append(date.Alternatives, other)
			}
			return date, true
		}
	}
	if v, ok := r.span(i); ok && (r.is(i, "next") || r.is(v.next-1, "after")) {
		return v, true
	}
	which, j := r.match(i, "next")
	if weekday, next := r.weekdayAt(j); j > 0 && next > 0 {
		if r.Language != "en" && atoi(which) == 0 && r.is(next, "after") {
			which, next = r.match(next, "after")
		}
		return r.weekly(i, next, weekday, which), true
	}
	if month, next := r.monthAt(j); j > 0 && next > 0 {
		v := r.monthly(i, next, time.Month(month), 1)
		step := atoi(which)
		if step > 0 && !v.Time.After(r.today()) || step < 0 && !v.Until.Before(r.today()) {
			v = r.between(i, next, v.Time.AddDate(step, 0, 0), v.Time.AddDate(step, 1, -1))
		}
		v.Alternatives = nil
		return v, true
	}
	// last 7 days; les 7 derniers jours
	n, _, k := r.number(max(i, j))
	if j == 0 {
		which, j = r.match(k, "after")
		k = j
	}
	if unit, next := r.match(k, "unit"); n != nil && j > 0 && next > 0 && n.IsInt() && atoi(which) != 0 {
		if to, ok := shift(r.today(), n.Num().Int64()*int64(atoi(which)), unit); ok {
			if atoi(which) < 0 {
				return r.between(i, next, to, r.today()), true
			}
			return r.between(i, next, r.today(), to), true
		}
	}
	return Value{}, false
}

// span reads a week, month, quarter, year or weekend, this one unless another is named, or a named month.
func (r *reader) span(i int) (Value, bool) {
	which, j := r.match(i, "next")
	j = r.skip(max(i, j), "article")
	period, next := r.match(j, "period")
	if after, end := r.match(next, "after"); next > 0 && end > 0 {
		which, next = after, end
	}
	k, today := max(atoi(which), -1), r.today()
	if which == "" {
		k = 0
	}
	if next == 0 {
		if v, ok := r.named(i); ok && v.Kind == DateRange {
			return v, true
		}
		return r.quarter(i)
	}
	month, months := today.Month(), 1
	switch period {
	case "week":
		return r.between(i, next, r.monday(k), r.monday(k).AddDate(0, 0, 6)), true
	case "weekend":
		v := r.between(i, next, r.monday(k).AddDate(0, 0, 5), r.monday(k).AddDate(0, 0, 6))
		if k > 0 && today.Before(r.monday(0).AddDate(0, 0, 5)) {
			v = or(v, r.between(i, next, r.monday(0).AddDate(0, 0, 5), r.monday(0).AddDate(0, 0, 6)))
		}
		return v, true
	case "quarter":
		month, months = (today.Month()-1)/3*3+1, 3
	case "year":
		month, months = 1, 12
	}
	first := r.day(today.Year(), month, 1).AddDate(0, k*months, 0)
	return r.between(i, next, first, first.AddDate(0, months, -1)), true
}

// shift moves a day or moment by units of time.
func shift(t time.Time, n int64, unit string) (time.Time, bool) {
	f := factors[unit]
	if n > 1e6 || n < -1e6 {
		return t, false
	}
	scale := rat(f.factor)
	switch {
	case f.measure == "calendar":
		months := int(n * scale.Num().Int64())
		moved := t.AddDate(0, months, 0)
		if moved.Day() != t.Day() { // no such day in that month
			moved = moved.AddDate(0, 0, -moved.Day())
		}
		return moved, true
	case f.measure == "time" && scale.IsInt() && scale.Num().Int64() >= 86400:
		return t.AddDate(0, 0, int(n*scale.Num().Int64()/86400)), true
	case f.measure == "time" && scale.IsInt():
		return t.Add(time.Duration(n) * time.Duration(scale.Num().Int64()) * time.Second), true
	}
	return t, false
}

// counted reads "in three days", "vor 2 Wochen", "3 hours ago".
func (r *reader) counted(i int) (Value, bool) {
	j, sign := i, int64(0)
	if k := r.skip(i, "ahead"); k > i {
		j, sign = k, 1
	} else if k := r.skip(i, "back"); k > i {
		j, sign = k, -1
	}
	n, _, k := r.number(j)
	unit, next := r.unit(k)
	if n == nil || next == 0 {
		return Value{}, false
	}
	n, unit, next = r.chain(n, unit, next)
	if direction, after := r.match(next, "ago"); after > 0 && sign == 0 {
		sign, next = int64(atoi(direction)), after
	}
	if unit == "hour" && !n.IsInt() {
		n, unit = convert(n, unit, "minute"), "minute"
	}
	v := r.value(Date, i, next)
	start := r.today()
	if unit == "hour" || unit == "minute" || unit == "second" {
		v.Kind, start = DateTime, r.Now
	}
	if sign == 0 || !n.IsInt() || !n.Num().IsInt64() {
		return Value{}, false
	}
	var ok bool
	v.Time, ok = shift(start, n.Num().Int64()*sign, unit)
	return v, ok
}

// quarter reads "Q3", "Q3 2025", "the third quarter of 2025" and, after a function word, a year.
func (r *reader) quarter(i int) (Value, bool) {
	n, next := 0, 0
	if t := r.tok(i); (t.fold == "q" || t.fold == "t" && t.upper && r.Language != "en") && !r.tok(i+1).gap && r.tok(i+1).end-r.tok(i+1).start == 1 {
		n, next = atoi(r.tok(i+1).fold), i+2
	} else if day, j := r.dayOfMonth(i); j > 0 {
		if period, k := r.match(j, "period"); period == "quarter" {
			n, next = day, k
		}
	} else if year, j := r.year(i); j > 0 && r.is(i-1, "cue") && strings.Contains(" in of from since until to by for between ", " "+r.cue(i)+" ") && !r.word(j) {
		return r.between(i, j, r.day(year, 1, 1), r.day(year, 12, 31)), true
	}
	if n < 1 || n > 4 {
		return Value{}, false
	}
	month := time.Month(3*n - 2)
	if year, after := r.year(r.skip(r.skipMark(next, "/"), "of", "cue")); after > 0 {
		first := r.day(year, month, 1)
		return r.between(i, after, first, first.AddDate(0, 3, -1)), true
	}
	return r.monthly(i, next, month, 3), true
}

// cue is the function word before token i.
func (r *reader) cue(i int) string {
	means, _ := r.match(i-1, "cue")
	return means
}

package values

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// clock is a time of day.
type clock struct {
	minutes, seconds int
	half             bool // it may also be 12 hours later
	bare             bool // only a number
	part             string
	zone             *time.Location
	i, next          int
}

// clock reads a time of day; with bare, also an hour alone.
func (r *calendar) clock(i int, bare bool) (c clock, ok bool) {
	if t := r.tok(i); !t.gap && (r.tok(i-1).kind == 'w' && r.tok(i-1).fold != "t" || r.mark(i-1, ":.")) {
		return c, false
	}
	got, next := r.rule("clock", i)
	if got.has("ten") && r.opened(i) {
		next = 0 // from ten to five
	}
	if c.bare = next == 0 && bare; c.bare {
		got, next = r.rule("bare", i)
	}
	if c.i, c.next, c.part = i, next, got.get("part").means; next == 0 || !r.ends(next) && !r.is(next, "dash") {
		return c, false
	}
	past := got.num("ten")
	if half := got.get("half").means; half != "" {
		past, _ = strconv.Atoi(times(rat(half), rat("60")).RatString())
	}
	hour := got.num("hour", "spelled", "noon") + got.num("one")*boolean(got.has("oclock") && !got.has("past"))
	c.minutes = hour*60 + got.num("mm", "minutes", "halfto") + past*got.num("past")
	if c.seconds = got.num("ss"); c.minutes < 60 && (got.has("past") || got.has("halfto")) {
		c.minutes += 12 * 60 // a quarter to one
	}
	if got.has("zone") || got.has("sign") {
		c.zone = time.FixedZone("", got.num("zone")*3600+got.num("sign")*(got.num("zh")*3600+got.num("zm")*60))
	}
	spoken := c.bare || got.has("past") || got.has("halfto") || hour < got.num("oclock") ||
		got.has("minutes") && r.tok(i).kind == 'w'
	digital := got.has("mm") && r.Language == "en" && r.tok(i).size() == 1
	c.half = (spoken || digital) && c.minutes >= 60 && c.minutes < 12*60
	c.inPart(c.part)
	return c, c.minutes <= 24*60
}

// inPart moves a time to a part of the day.
func (c *clock) inPart(part string) {
	switch {
	case part == "pm" && c.minutes < 12*60:
		c.minutes += 12 * 60
	case part == "am" && c.minutes >= 12*60 && c.minutes < 13*60:
		c.minutes -= 12 * 60
	}
	if part != "" {
		c.part, c.half = part, false
	}
}

// at makes a value of a time on a day.
func (r *calendar) at(kind Kind, i, next int, day time.Time, c clock) Value {
	v := r.value(kind, i, next)
	zone := day.Location()
	if c.zone != nil {
		zone = c.zone
	}
	v.Time = time.Date(day.Year(), day.Month(), day.Day(), 0, c.minutes, c.seconds, 0, zone)
	if c.half {
		w := v
		w.Time = v.Time.Add(12 * time.Hour)
		v.Alternatives = []Value{w}
	}
	return v
}

// moment is a date, a time or both.
type moment struct {
	date    *Value
	clock   *clock
	i, next int
}

// moment reads a date, a time or both in either order.
func (r *calendar) moment(i int, bare bool) (m moment, ok bool) {
	d, dated := r.date(i)
	day, at := i, d.next
	var c clock
	if dated {
		if t := r.tok(at); t.fold == "t" && !t.gap || r.mark(at, ",") {
			at++
		}
		at = r.skip(r.skip(at, "cue"), "article")
		c, ok = r.clock(at, r.cue(at) == "at")
		ok = ok && d.Kind == Date
	} else if c, ok = r.clock(i, bare || r.cue(i) == "at"); ok && !c.bare {
		if day = c.next; r.cue(day+1) == "on" {
			day++
		}
		day = r.skip(day, "article")
		d, dated = r.date(day)
		dated = dated && d.Kind == Date
	}
	if m.i = i; dated {
		m.date, m.next = &d, d.next
	}
	if ok {
		if part, _ := r.match(day, "dusk"); c.half {
			c.inPart(part)
		}
		m.clock, m.next = &c, max(m.next, c.next)
	}
	return m, dated || ok
}

// values makes the values of a moment: the whole of it and its parts.
func (r *calendar) values(m moment) (out []Value) {
	if m.date != nil && m.clock != nil {
		v := r.at(DateTime, m.i, m.next, m.date.Time, *m.clock)
		v.open = m.date.open
		for _, d := range m.date.Alternatives {
			w := r.at(DateTime, m.i, m.next, d.Time, *m.clock)
			v.Alternatives = append(append(v.Alternatives, w), w.Alternatives...)
		}
		out = append(out, v)
	}
	if m.date != nil {
		out = append(out, *m.date)
	}
	if m.clock != nil {
		out = append(out, r.at(Time, m.clock.i, m.clock.next, r.today(), *m.clock))
	}
	return out
}

// moments reads dates, times and ranges of them.
func (r *reader) moments(i int) int {
	if next := r.ranges(i); next > 0 {
		return next
	}
	amount, counted := r.amount(i)
	m, ok := r.moment(i, false)
	hour := ok && m.date == nil
	if !ok || counted && hour && (amount.Kind == Duration && r.cue(i) == "for" || m.clock.bare && amount.Kind != Number) {
		return 0
	}
	out := r.values(m)
	if counted && (amount.next == m.next || m.next == i+2 && r.mark(i+1, ".")) {
		number := amount.Kind == Number || amount.Kind == Ordinal
		if number && (m.clock == nil || hour && m.clock.bare) || // at 5, in 2025, the 5th
			hour && amount.Kind == Duration && r.cue(i) != "at" && r.cue(i) != "to" { // trois heures
			out = append(out, amount)
		}
	}
	if d, ok := r.amount(r.skip(i, "ahead", "back", "next")); ok && d.Kind == Duration && m.clock == nil { // in 3 days
		out = append(out, d)
	}
	return r.add(out...)
}

// sameYear gives days without a year that of the first date that has one: June 3 at noon until June 5, 2023.
func (r *reader) sameYear() {
	i := slices.IndexFunc(r.out, func(v Value) bool {
		return v.Kind >= Date && v.Kind <= DateRange && strings.Contains(v.Text, strconv.Itoa(v.Time.Year()))
	})
	for j := range r.out {
		v := &r.out[j]
		if i < 0 || !v.open {
			continue
		}
		v.addYears(r.out[i].Time.Year() - v.Time.Year())
		for k := range v.Alternatives {
			v.Alternatives[k].addYears(r.out[i].Time.Year() - v.Alternatives[k].Time.Year())
		}
	}
}

func (v *Value) addYears(n int) {
	v.Time = v.Time.AddDate(n, 0, 0)
	if !v.Until.IsZero() {
		v.Until = v.Until.AddDate(n, 0, 0)
	}
}

// opened reports whether a word before token i begins a range.
func (r *calendar) opened(i int) bool {
	if r.is(i-1, "article") && r.cue(i) == "" {
		i--
	}
	return slices.Contains([]string{"from", "between", "of"}, r.cue(i))
}

// joins returns the token after a word or a dash between the ends of a range, 0 if there is none.
func (r *scanner) joins(i int) int {
	means, next := r.match(i, "cue")
	if after := r.skip(i, "dash", "and"); after > i {
		return after
	} else if means == "to" || means == "until" {
		return next
	}
	return 0
}

// ranges reads two moments with a word or a dash between them, as a range and its ends.
func (r *reader) ranges(i int) int {
	opened := r.opened(i)
	if got, next := r.rule("days", i); next > 0 && r.tok(i).gap && r.ends(next) { // 3 to 5 June, June 3-5
		join, month, year := got.get("join").at, got.num("month"), got.num("year")
		last, ok := r.nearest(func(n int) (Value, bool) {
			if year == 0 {
				return r.on(got.get("until").at, next, r.Now.Year()+n, month, got.num("until"))
			}
			return r.on(got.get("until").at, next, year, month, got.num("until"))
		})
		first, exists := r.on(i, join, last.Time.Year(), month, got.num("dom"))
		if (ok || year > 0) && exists && last.Time.After(first.Time) {
			v := r.value(DateRange, i, next)
			v.Time, v.Until = first.Time, last.Time
			return r.add(v, first, last)
		}
	}
	a, ok := r.moment(i, true)
	j := r.joins(a.next)
	if !ok || j == 0 || r.is(a.next, "and") && !opened || r.tok(a.next).fold == "a" && !opened {
		return 0
	}
	b, ok := r.moment(r.skip(j, "article"), true)
	switch {
	case !ok:
	case a.date != nil && b.date != nil && a.clock == nil && b.clock == nil:
		v := r.value(DateRange, i, b.next)
		if a.date.open && a.date.Time.After(b.date.Time) { // it has begun
			a.date.Time = a.date.Time.AddDate(-1, 0, 0)
		} else if r.is(b.i, "weekday") && a.date.Time.After(b.date.Time) {
			b.date.Time = b.date.Time.AddDate(0, 0, 7)
		}
		v.Time, v.Until, v.open = a.date.Time, b.date.Time, a.date.open && b.date.open
		if b.date.Kind == DateRange {
			v.Until = b.date.Until
		}
		if x, y := a.date.Alternatives, b.date.Alternatives; len(x) == 1 && len(y) == 1 {
			w := v
			if w.Time, w.Until = x[0].Time, y[0].Time; b.date.Kind == DateRange {
				w.Until = y[0].Until
			}
			v = or(v, w)
		}
		if v.Until.Before(v.Time) {
			return r.add(*a.date, *b.date)
		}
		return r.add(v, *a.date, *b.date)
	case a.clock != nil && b.clock != nil && b.date == nil:
		counts := r.word(b.next) || r.is(b.next, "unit", "percent", "currency")
		if !a.clock.bare || !b.clock.bare || opened && !counts {
			return r.hours(a, b)
		}
	}
	return 0
}

// hours makes a range of times within a day. The end that says its part of the day tells that of the other one.
func (r *reader) hours(a, b moment) int {
	x, y := *a.clock, *b.clock
	switch {
	case x.half && y.part != "":
		if y.part == "pm" && x.minutes+12*60 < y.minutes {
			x.minutes += 12 * 60
		}
		x.half = false
	case x.bare && !y.half:
		x.half = false
	case y.half && y.minutes <= x.minutes:
		y.minutes, y.half, x.half = y.minutes+12*60, false, false
	case y.half && !x.half:
		y.half = false
	}
	day := r.today()
	if a.date != nil {
		day = a.date.Time
	}
	a.clock, b.clock = &x, &y
	v, end := r.at(TimeRange, a.i, b.next, day, x), r.at(TimeRange, a.i, b.next, day, y)
	if v.Until = end.Time; v.Until.Before(v.Time) {
		v.Until = v.Until.AddDate(0, 0, 1)
	}
	if v.Alternatives = nil; x.half && y.half {
		w := v
		w.Time, w.Until = v.Time.Add(12*time.Hour), v.Until.Add(12*time.Hour)
		v.Alternatives = []Value{w}
	}
	out := append(append([]Value{v}, r.values(a)...), r.values(b)...)
	for _, c := range []clock{x, y} {
		if n, ok := r.amount(c.i); ok && c.bare {
			out = append(out, n)
		}
	}
	return r.add(out...)
}

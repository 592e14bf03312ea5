package values

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	clockZone   = regexp.MustCompile(`^([+-])(\d{2}):?(\d{2})`)
	isoDuration = regexp.MustCompile(`^P(\d+)?([YMWD])?(?:T(\d+)([HMS]))?`)
)

// clock is a time of day.
type clock struct {
	hour, minute, second int
	half                 bool // it may also be 12 hours later
	bare                 bool // only a number
	part                 string
	zone                 *time.Location
	i, next              int
}

// on is the time on a day.
func (c clock) on(day time.Time, later int) time.Time {
	zone := day.Location()
	if c.zone != nil {
		zone = c.zone
	}
	return time.Date(day.Year(), day.Month(), day.Day(), c.hour+later, c.minute, c.second, 0, zone)
}

// at makes a value of a time on a day.
func (r *reader) at(kind Kind, i, next int, day time.Time, c clock) Value {
	v := r.value(kind, i, next)
	v.Time, v.Zoned = c.on(day, 0), c.zone != nil
	if c.half {
		w := v
		w.Time = c.on(day, 12)
		v.Alternatives = []Value{w}
	}
	return v
}

// clock reads a time of day; with bare, also an hour alone.
func (r *reader) clock(i int, bare bool) (clock, bool) {
	c := clock{i: i, minute: -1}
	t := r.tok(i)
	if !t.gap && (r.tok(i-1).kind == 'w' && r.tok(i-1).fold != "t" || r.tok(i-1).fold == ":" || r.tok(i-1).fold == ".") {
		return c, false
	}
	if hour, next := r.match(i, "noon"); next > 0 {
		c.hour, c.minute, c.next = atoi(hour), 0, next
		return c, r.ends(next)
	}
	spoken := r.past(i, &c)
	if !spoken {
		var ok bool
		if c.hour, c.next, ok = r.hour(i); !ok {
			return c, false
		}
		r.minutes(&c)
	}
	marked := c.minute >= 0
	if format, next := r.match(c.next, "clock"); next > 0 {
		marked, spoken, c.next = true, spoken || format == "12", next
		if t := r.tok(next); c.minute < 0 && t.kind == 'd' && (!t.gap || format == "12") && t.end-t.start == 2 && t.fold < "60" {
			c.minute, c.next = atoi(t.fold), next+1 // 14h30, 14 Uhr 30
		} else if c.minute < 0 && r.tok(next).kind == 'd' && !r.tok(next).gap {
			return c, false
		}
	}
	if more, next := r.match(c.next, "minutes"); next > 0 && c.minute < 0 {
		c.minute, c.next, marked, spoken = atoi(more), next, true, spoken || c.hour < 12 && r.tok(i).kind == 'w'
	}
	part, next := r.match(c.next, "part")
	if next > 0 {
		c.part, c.next, marked = part, next, true
	}
	if c.minute < 0 {
		if c.minute = 0; !marked {
			c.bare, spoken = true, true
		}
	}
	digital := !spoken && r.Language == "en" && t.end-t.start == 1
	c.half = c.part == "" && c.hour > 0 && c.hour < 12 && (spoken || digital)
	r.zone(&c)
	if c.minute < 0 {
		c.hour, c.minute = c.hour-1, c.minute+60
	}
	c.dayPart(c.part)
	return c, c.next > i && c.hour >= 0 && c.hour <= 24 && c.minute < 60 && (c.hour < 24 || c.minute == 0) && (bare || !c.bare) && r.ends(c.next)
}

// dayPart moves an hour to the part of the day.
func (c *clock) dayPart(part string) {
	switch {
	case part == "pm" && c.hour < 12:
		c.hour += 12
	case part == "am" && c.hour == 12:
		c.hour = 0
	}
	if part != "" {
		c.part, c.half = part, false
	}
}

// hour reads the hour.
func (r *reader) hour(i int) (hour, next int, ok bool) {
	if t := r.tok(i); t.kind == 'd' {
		return atoi(t.fold), i + 1, t.end-t.start <= 2
	}
	if hour, next := r.match(i, "one"); next > 0 && r.is(next, "clock") { // une heure
		return atoi(hour), next, true
	}
	n, next := r.spelled(i)
	if n == nil || !n.IsInt() || n.Num().Int64() > 24 {
		return 0, 0, false
	}
	return int(n.Num().Int64()), next, true
}

// minutes reads :30 and :30:15, in German also .30.
func (r *reader) minutes(c *clock) {
	for _, field := range []*int{&c.minute, &c.second} {
		mark, t := r.tok(c.next), r.tok(c.next+1)
		dotted := mark.fold == "." && r.Language == "de" && r.is(c.next+2, "clock")
		if mark.gap || mark.fold != ":" && !dotted || t.kind != 'd' || t.gap || t.end-t.start != 2 || t.fold > "59" {
			return
		}
		*field, c.next = atoi(t.fold), c.next+2
	}
	if f := r.tok(c.next + 1); r.tok(c.next).fold == "." && !r.tok(c.next).gap && f.kind == 'd' && !f.gap {
		c.next += 2 // parts of a second
	}
}

// past reads "half past three", "viertel vor drei", "ten to five" and "halb vier".
func (r *reader) past(i int, c *clock) bool {
	minutes, j := r.match(i, "halfto")
	if j == 0 {
		part, k := r.match(r.skip(i, "one"), "half")
		n, _, l := r.number(i)
		if k > 0 {
			n, l = rat(part), k
			n.Mul(n, rat("60"))
		}
		l = r.skip(l, "pastunit")
		direction, m := r.match(l, "past")
		if n == nil || m == 0 || !n.IsInt() || n.Num().Int64() > 30 || k == 0 && n.Num().Int64()%5 != 0 {
			return false
		}
		minutes, j = strconv.Itoa(int(n.Num().Int64())*atoi(direction)), m
	}
	hour, next, ok := r.hour(j)
	if !ok || r.tok(next).fold == ":" || r.unitAt(next) && !r.is(next, "clock") {
		return false
	}
	c.hour, c.minute, c.next = hour, atoi(minutes), next
	if negative := strings.HasPrefix(minutes, "-"); negative {
		v, _ := strconv.Atoi(minutes)
		c.hour, c.minute = (hour+23)%24, 60+v
		if hour == 1 {
			c.hour = 12 // quarter to one
		}
	}
	return true
}

// zone reads a time zone.
func (r *reader) zone(c *clock) {
	if hours, next := r.match(c.next, "zone"); next > 0 && r.tok(c.next).upper {
		c.zone = time.FixedZone(r.text[r.tok(c.next).start:r.tok(c.next).end], atoiSigned(hours)*3600)
		if c.next = next; strings.HasPrefix(c.zone.String(), "UTC") {
			c.zone = time.UTC
		}
		return
	}
	if t := r.tok(c.next); t.fold == "z" && !t.gap {
		c.zone, c.next = time.UTC, c.next+1
		return
	}
	if m, next := r.shape(c.next, clockZone); next > 0 && !r.tok(c.next).gap {
		offset := atoi(m[2])*3600 + atoi(m[3])*60
		if m[1] == "-" {
			offset = -offset
		}
		c.zone, c.next = time.FixedZone("", offset), next
	}
}

func atoiSigned(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// moment is a date, a time or both.
type moment struct {
	date  *Value
	clock *clock
	next  int
}

// moment reads a date, a time or both in either order.
func (r *reader) moment(i int, bare bool) (m moment, ok bool) {
	if v, found := r.date(i); found {
		m = moment{date: &v, next: v.next}
		if v.Kind != Date {
			return m, true
		}
		j := v.next
		if t := r.tok(j); t.fold == "t" && !t.gap {
			j++
		}
		at := r.skip(r.skipMark(j, ","), "cue")
		at = r.skip(at, "article")
		if c, found := r.clock(at, r.cue(at) == "at"); found {
			part, _ := r.match(i, "dusk")
			if c.half {
				c.dayPart(part)
			}
			m.clock, m.next = &c, c.next
		}
		return m, true
	}
	c, found := r.clock(i, bare || r.cue(i) == "at")
	if !found {
		return m, false
	}
	m = moment{clock: &c, next: c.next}
	j := r.skip(r.skipMark(c.next, ","), "article")
	if r.cue(j+1) == "on" {
		j++
	}
	if v, found := r.date(j); found && v.Kind == Date && !c.bare {
		if part, _ := r.match(j, "dusk"); c.half {
			m.clock.dayPart(part)
		}
		m.date, m.next = &v, v.next
	}
	return m, true
}

// values makes the values of a moment: the whole of it and its parts.
func (r *reader) values(i int, m moment) []Value {
	var out []Value
	if m.date != nil && m.clock != nil {
		v := r.at(DateTime, i, m.next, m.date.Time, *m.clock)
		for _, d := range m.date.Alternatives {
			w := r.at(DateTime, i, m.next, d.Time, *m.clock)
			v.Alternatives = append(v.Alternatives, append(w.Alternatives, Value{Kind: DateTime, Time: w.Time, Zoned: w.Zoned})...)
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

// moments reads dates, times and ranges of them, durations in ISO 8601 and days such as "the 5th".
func (r *reader) moments(i int) int {
	if m, next := r.shape(i, isoDuration); next > 0 && r.ends(next) && (m[1] != "") == (m[2] != "") && (m[1] == "") != (m[3] == "") {
		v := r.value(Duration, i, next)
		v.Number, v.Unit = decimal(rat(m[1]+m[3])), isoUnits[m[2]+"T"+m[4]]
		if v.Unit != "" {
			return r.add(v)
		}
	}
	if next := r.ranges(i); next > 0 {
		return next
	}
	if next := r.theDay(i); next > 0 {
		return next
	}
	if cue := r.cue(i); cue == "for" || cue == "within" {
		if v, ok := r.amount(i); ok && v.Kind == Duration {
			return r.add(v)
		}
	}
	m, ok := r.moment(i, false)
	if !ok {
		return 0
	}
	vs := r.values(i, m)
	if m.clock != nil && m.clock.bare && m.date == nil {
		if v, ok := r.amount(i); ok && (v.Kind != Number || v.next > m.next) {
			return r.add(v)
		} else if ok {
			vs = append(vs, v)
		}
	}
	if m.date != nil && m.clock == nil { // in 3 days
		if v, ok := r.amount(r.skip(i, "ahead", "back")); ok && v.Kind == Duration {
			vs = append(vs, v)
		}
		if v, ok := r.amount(i); ok && m.date.Kind == DateRange && v.next == m.next {
			vs = append(vs, v) // in 2025
		}
	}
	return r.add(vs...)
}

var isoUnits = map[string]string{"YT": "year", "MT": "month", "WT": "week", "DT": "day", "TH": "hour", "TM": "minute", "TS": "second"}

// theDay reads "on the 5th" as a day and as an ordinal, "am 5." and "el 5" as a day and as a number.
func (r *reader) theDay(i int) int {
	t := r.tok(i)
	day, next := r.dayOfMonth(i)
	if t.kind != 'd' || next == 0 || day == 0 || !r.is(i-1, "article") && r.cue(i) != "on" {
		return 0
	}
	ordinal := r.is(i+1, "suffix")
	if r.word(next) || r.is(next, "clock") || r.is(next, "percent") || r.tok(next).kind == 'd' || !r.ends(next) ||
		!ordinal && (r.Language == "en" || r.Language == "de" && next == i+1) {
		return 0
	}
	if _, month := r.monthAt(r.skip(next, "of", "cue")); month > 0 {
		return 0
	}
	for months, today := 0, r.today(); months < 3; months++ {
		first := r.day(today.Year(), today.Month(), 1).AddDate(0, months*map[bool]int{true: -1, false: 1}[r.Past], 0)
		v, ok := r.on(i, next, first.Year(), int(first.Month()), day)
		if ok && (r.Past && !v.Time.After(today) || !r.Past && !v.Time.Before(today)) {
			number := r.value(map[bool]Kind{true: Ordinal, false: Number}[ordinal || r.Language == "de"], i, next)
			number.Number = decimal(rat(t.fold))
			return r.add(v, number)
		}
	}
	return 0
}

// ranges reads two moments with a word or a dash between them, as a range and its ends.
func (r *reader) ranges(i int) int {
	opened := r.cue(i) == "from" || r.cue(i) == "between" || r.cue(i) == "of" || r.is(i-1, "article") && (r.cue(i-1) == "of" || r.cue(i-1) == "from" || r.cue(i-1) == "between")
	a, ok := r.moment(i, true)
	day, afterDay := 0, 0
	if r.tok(i).kind == 'd' {
		day, afterDay = r.dayOfMonth(i)
	}
	ends := []int{a.next, afterDay}
	if !ok {
		ends = ends[1:]
	}
	for _, end := range ends {
		j := r.joins(end, opened)
		if j == 0 {
			continue
		}
		j = r.skip(j, "article")
		b, ok := r.moment(j, true)
		switch {
		case !ok:
		case end == afterDay && b.date != nil && b.date.Kind == Date && b.clock == nil && day > 0 && r.monthNear(j): // 3 to 5 June
			d := *b.date
			d.Start, d.at, d.next = r.tok(i).start, i, afterDay
			d.End = r.tok(afterDay - 1).end
			d.Text = r.text[d.Start:d.End]
			d.Time = r.day(b.date.Time.Year(), b.date.Time.Month(), day)
			return r.rangeOf(DateRange, i, moment{date: &d, next: afterDay}, b)
		case a.date != nil && b.date != nil && a.clock == nil && b.clock == nil:
			return r.rangeOf(DateRange, i, a, b)
		case a.date != nil && a.date.Kind == Date && a.clock == nil && b.clock != nil && b.clock.bare && b.date == nil && r.monthNear(i): // June 3-5
			if last, next := r.dayOfMonth(j); next > 0 && last > a.date.Time.Day() {
				if d, ok := r.on(j, next, a.date.Time.Year(), int(a.date.Time.Month()), last); ok {
					return r.rangeOf(DateRange, i, a, moment{date: &d, next: next})
				}
			}
		case a.clock != nil && b.clock != nil && b.date == nil:
			if a.clock.bare && b.clock.bare && (!opened || r.word(b.next) || r.is(b.next, "unit") || r.is(b.next, "percent") || r.is(b.next, "currency")) {
				continue
			}
			return r.rangeOf(TimeRange, i, a, b)
		}
	}
	return 0
}

// monthNear reports whether one of the next tokens is a month.
func (r *reader) monthNear(i int) bool {
	for j := i; j < i+5; j++ {
		if _, next := r.monthAt(j); next > 0 {
			return true
		}
	}
	return false
}

// joins returns the token after a word or a dash that joins the ends of a range, 0 if there is none.
func (r *reader) joins(i int, opened bool) int {
	t := r.tok(i)
	if t.kind == 'p' && strings.Contains("-–—", t.fold) && t.fold != "" {
		return i + 1
	}
	means, next := r.match(i, "cue")
	if (means == "to" || means == "until") && (opened || t.fold != "a") {
		return next
	}
	if _, next := r.match(i, "and"); opened && (next > 0 || t.fold == "und") {
		return i + 1
	}
	return 0
}

// rangeOf makes a range and its ends.
func (r *reader) rangeOf(kind Kind, i int, a, b moment) int {
	from, to := r.values(i, a), r.values(b.first(), b)
	v := r.value(kind, i, b.next)
	if kind == DateRange {
		v.Time, v.Until = a.date.Time, b.date.Time
		if b.date.Kind == DateRange {
			v.Until = b.date.Until
		}
		if len(a.date.Alternatives) == 1 && len(b.date.Alternatives) == 1 {
			w := v
			if w.Time, w.Until = a.date.Alternatives[0].Time, b.date.Alternatives[0].Time; b.date.Kind == DateRange {
				w.Until = b.date.Alternatives[0].Until
			}
			v.Alternatives = []Value{w}
		}
		if v.Until.Before(v.Time) {
			if moved := v.Until.AddDate(1, 0, 0); len(v.Alternatives) == 0 && !moved.Before(v.Time) && !r.monthNear(b.next-2) {
				return r.add(append(from, to...)...)
			}
			return r.add(append(from, to...)...)
		}
		return r.add(append(append([]Value{v}, from...), to...)...)
	}
	x, y := *a.clock, *b.clock
	// The ends are in one part of the day unless the hours go down.
	if x.half && y.part != "" && x.part == "" {
		if y.part == "pm" && x.hour+12 <= y.hour {
			x.hour += 12
		}
		x.half = false
	}
	if x.bare && !y.bare && !y.half {
		x.half = false
	}
	if y.half && y.hour <= x.hour {
		y.hour, y.half, x.half = y.hour+12, false, false
	} else if x.part != "" || !x.half {
		y.half = false
	}
	day := r.today()
	if a.date != nil {
		day = a.date.Time
	}
	v.Time, v.Until, v.Zoned = x.on(day, 0), y.on(day, 0), x.zone != nil
	if v.Until.Before(v.Time) {
		v.Until = v.Until.AddDate(0, 0, 1)
	}
	if x.half && y.half {
		w := v
		w.Time, w.Until = x.on(day, 12), y.on(day, 12)
		v.Alternatives = []Value{w}
	}
	a.clock, b.clock = &x, &y
	out := append([]Value{v}, r.values(i, a)...)
	out = append(out, r.values(y.i, b)...)
	for _, c := range []*clock{&x, &y} {
		if n, ok := r.amount(c.i); ok && c.bare {
			out = append(out, n)
		}
	}
	return r.add(out...)
}

// first is the token that a moment begins with.
func (m moment) first() int {
	switch {
	case m.date == nil:
		return m.clock.i
	case m.clock == nil:
		return m.date.at
	}
	return min(m.date.at, m.clock.i)
}

package values

import "time"

func (r *calendar) today() time.Time { return r.floor("day") }

// floor is the beginning of the day, week, month, quarter or year of now.
func (r *calendar) floor(unit string) time.Time {
	year, month, day := r.Now.Date()
	switch unit {
	case "week":
		day -= (int(r.Now.Weekday()) + 6) % 7
	case "month":
		day = 1
	case "quarter":
		month, day = (month-1)/3*3+1, 1
	case "year":
		month, day = 1, 1
	}
	return time.Date(year, month, day, 0, 0, 0, 0, r.Now.Location())
}

// step moves a day by n units, the last day of a month at most to the last day of a month; false for units of hours
// and less.
func step(t time.Time, n int, unit string) (time.Time, bool) {
	f := factors()[unit]
	size := rat(f.times)
	switch {
	case n > 1e5 || n < -1e5 || !size.IsInt():
	case f.measure == "calendar":
		moved := t.AddDate(0, n*int(size.Num().Int64()), 0)
		if moved.Day() != t.Day() {
			moved = moved.AddDate(0, 0, -moved.Day())
		}
		return moved, true
	case f.measure == "time" && size.Num().Int64() >= 86400:
		return t.AddDate(0, 0, n*int(size.Num().Int64()/86400)), true
	}
	return t, false
}

// on makes a day, which has to exist.
func (r *calendar) on(i, next, year, month, day int) (v Value, ok bool) {
	v = r.value(Date, i, next)
	v.Time = time.Date(year, time.Month(month), day, 0, 0, 0, 0, r.Now.Location())
	return v, v.Time.Day() == day && int(v.Time.Month()) == month
}

// nearest makes the coming day of those that list makes.
func (r *calendar) nearest(list func(n int) (Value, bool)) (v Value, ok bool) {
	for n := 0; n <= 8; n++ {
		if v, ok = list(n); ok && !v.Time.Before(r.today()) {
			v.open = true
			return v, true
		}
	}
	return v, false
}

// between makes a range of days that begins at first and is as long as n units.
func (r *calendar) between(i, next int, first time.Time, n int, unit string) Value {
	v := r.value(DateRange, i, next)
	end, _ := step(first, n, unit)
	v.Time, v.Until = first, end.AddDate(0, 0, -1)
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
func (r *calendar) date(i int) (v Value, ok bool) {
	if t := r.tok(i); t.kind == 'd' && !t.gap && (r.tok(i-1).kind == 'w' || r.mark(i-1, "/:.")) {
		return v, false
	}
	got, next := r.rule("date", i)
	if next == 0 || !r.ends(next) && r.tok(next).fold != "t" && !r.is(next, "dash") {
		return v, false
	}
	if v, ok = r.day(got, i, next); ok && got.has("edge") {
		edge := got.num("edge")
		if v.Kind, v.Alternatives = Date, nil; edge == 1 {
			v.Time = v.Until
		}
		v.Until = time.Time{}
	}
	return v, ok
}

// day makes a day or a range of days of what the grammar has captured.
func (r *calendar) day(got found, i, next int) (v Value, ok bool) {
	month, day, year := got.num("month", "mon"), got.num("dom", "ordinal"), got.num("year")
	n, which := got.num("next"), got.get("next").means
	if c := got.get("after"); c.name != "" {
		n, which = atoi(c.means), c.means
	}
	unit := got.get("period").means
	if q := got.num("q"); q > 0 || unit == "quarter" && day > 0 {
		month, day = 3*(q+max(day, 1)*boolean(q == 0))-2, 0
		unit = "quarter"
	} else if month > 0 {
		unit = "month"
	}
	switch {
	case got.has("a"):
		return r.numeric(got, i, next)
	case day > 0 && month > 0 && year > 0:
		return r.on(i, next, year, month, day)
	case day > 0 && month > 0:
		return r.nearest(func(n int) (Value, bool) { return r.on(i, next, r.Now.Year()+n, month, day) })
	case day > 0: // the 5th
		return r.nearest(func(n int) (Value, bool) {
			first := r.floor("month").AddDate(0, n, 0)
			return r.on(i, next, first.Year(), int(first.Month()), day)
		})
	case month > 12:
		return v, false
	case month > 0 && year > 0:
		v, ok = r.on(i, next, year, month, 1)
		return r.between(i, next, v.Time, 1, unit), ok
	case month > 0: // one of this year that is over may also be that of next year
		first := r.floor("year").AddDate(0, month-1, 0)
		v = r.between(i, next, first, 1, unit)
		past := v.Until.Before(r.today())
		switch {
		case n < 0 && !past:
			v = r.between(i, next, first.AddDate(-1, 0, 0), 1, unit)
		case n > 0 && !first.After(r.today()):
			v = r.between(i, next, first.AddDate(1, 0, 0), 1, unit)
		case which == "" && past:
			v = or(v, r.between(i, next, first.AddDate(1, 0, 0), 1, unit))
		}
		return v, true
	case got.has("weekday"):
		return r.weekly(i, next, got.num("weekday"), which), true
	case got.has("day"):
		v = r.value(Date, i, next)
		v.Time = r.today().AddDate(0, 0, got.num("day"))
		return v, true
	case unit == "weekend":
		first := r.floor("week").AddDate(0, 0, 7*n+5)
		v = r.between(i, next, first, 2, "day")
		if soon := first.AddDate(0, 0, -7); n > 0 && soon.After(r.today()) {
			v = or(v, r.between(i, next, soon, 2, "day"))
		}
		return v, true
	case unit != "":
		first, ok := step(r.floor(unit), n, unit)
		return r.between(i, next, first, 1, unit), ok
	case got.has("n"):
		return r.counted(got, i, next, n)
	}
	return r.between(i, next, time.Date(year, 1, 1, 0, 0, 0, 0, r.Now.Location()), 1, "year"), true
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// numeric reads 03.04.2025 and 3/4/25.
func (r *calendar) numeric(got found, i, next int) (Value, bool) {
	day, month, year := got.num("a"), got.num("b"), got.num("year")
	if got.has("yy") {
		year = 2000 + got.num("yy")
	} else if year == 0 {
		return r.nearest(func(n int) (Value, bool) { return r.on(i, next, r.Now.Year()+n, month, day) })
	}
	v, ok := r.on(i, next, year, month, day)
	w, swapped := r.on(i, next, year, day, month)
	switch {
	case got.has("dot") || !swapped:
		return v, ok
	case !ok:
		return w, true
	case r.Language == "en":
		return or(v, w), true
	}
	return v, true
}

// weekly is a weekday: "1" the next, "-1" the last, "0" that of this week, "" the coming one.
func (r *calendar) weekly(i, next, weekday int, which string) Value {
	today := int(r.Now.Weekday())
	at := func(days int) Value {
		v := r.value(Date, i, next)
		v.Time = r.today().AddDate(0, 0, days)
		return v
	}
	later := at((weekday-today+13)%7 + 1)
	earlier := at(-((today-weekday+13)%7 + 1))
	own := (weekday+6)%7 - (today+6)%7 // of this week
	switch {
	case which == "1":
		return or(at(own+7), later)
	case which == "-1":
		return or(earlier, at(own-7))
	case which == "0":
		return at(own)
	case own == 0:
		return or(at(0), later)
	}
	return later
}

// counted is "in three days", "vor 2 Wochen", "3 hours ago", and with a direction "last 7 days".
func (r *calendar) counted(got found, i, next, direction int) (v Value, ok bool) {
	n, unit, sign := got.get("n").n, got.get("unit").means, direction
	if direction == 0 {
		if sign = 1; got.has("back") || got.num("ago") < 0 {
			sign = -1
		}
		if !got.has("ago") {
			n, unit, next = r.chain(n, unit, next)
		}
	}
	if v = r.value(Date, i, next); unit == "hour" && !n.IsInt() {
		n, unit = convert(n, unit, "minute"), "minute"
	}
	if !n.IsInt() || n.Num().BitLen() > 20 {
		return v, false
	}
	count := sign * int(n.Num().Int64())
	v.Time, ok = step(r.today(), count, unit)
	switch {
	case !ok && direction == 0 && factors()[unit].measure == "time":
		seconds, _ := rat(factors()[unit].times).Float64()
		v.Kind, v.Time = DateTime, r.Now.Add(time.Duration(float64(count)*seconds*float64(time.Second)))
		return v, true
	case ok && direction != 0:
		other := v.Time
		v = r.value(DateRange, i, next)
		if v.Time, v.Until = r.today(), other; direction < 0 {
			v.Time, v.Until = other, v.Time
		}
	}
	return v, ok
}

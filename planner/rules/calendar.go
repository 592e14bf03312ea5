package rules

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// date is a day, a time of day, or both, as far as the question states them; zero fields are unknown.
type date struct {
	year, month, day int
	hour, minute     int
	timed            bool
	relative         string // "tomorrow", "next friday"; resolved against a today by resolve
}

func (d date) full() bool { return d.year > 0 && d.month > 0 && d.day > 0 }

func valid(d date, end int) (date, int) {
	if d.month < 1 || d.month > 12 || d.day < 1 || d.day > 31 {
		return date{}, 0
	}
	return d, end
}

// today is the day of a moment.
func today(t time.Time) date { return date{year: t.Year(), month: int(t.Month()), day: t.Day()} }

// resolve fills in what a date leaves to the day it was spoken on.
func (d date) resolve(today date) date {
	if today.year == 0 {
		return d
	}
	now := time.Date(today.year, time.Month(today.month), today.day, 0, 0, 0, 0, time.UTC)
	if d.relative == "" {
		if d.year == 0 && d.month > 0 {
			d.year = today.year
			if d.month < today.month || d.month == today.month && d.day < today.day {
				d.year++
			}
		}
		return d
	}
	lead, day, _ := strings.Cut(d.relative, " ")
	if day == "" {
		day, lead = lead, ""
	}
	switch w, ok := weekdays[day]; {
	case ok:
		ahead := (int(w) - int(now.Weekday()) + 7) % 7
		if lead == "last" {
			ahead -= 7
		} else if ahead == 0 && lead == "next" {
			ahead = 7
		}
		now = now.AddDate(0, 0, ahead)
	case day == "tomorrow":
		now = now.AddDate(0, 0, 1)
	case day == "overmorrow":
		now = now.AddDate(0, 0, 2)
	case day == "yesterday":
		now = now.AddDate(0, 0, -1)
	}
	d.year, d.month, d.day, d.relative = now.Year(), int(now.Month()), now.Day(), ""
	return d
}

// layouts maps ways of writing a date format to a layout of ours.
var layouts = []struct{ written, layout string }{
	{"yyyy-mm-ddthh:mm", "2006-01-02T15:04:05Z"}, {"yyyy-mm-dd hh:mm:ss", "2006-01-02 15:04:05"}, {"yyyy-mm-dd hh:mm", "2006-01-02 15:04"},
	{"iso 8601 datetime", "2006-01-02T15:04:05Z"}, {"yyyy-mm-dd", "2006-01-02"}, {"yyyy/mm/dd", "2006/01/02"}, {"yyyy.mm.dd", "2006.01.02"},
	{"mm/dd/yyyy", "01/02/2006"}, {"mm-dd-yyyy", "01-02-2006"}, {"dd/mm/yyyy", "02/01/2006"}, {"dd-mm-yyyy", "02-01-2006"}, {"dd.mm.yyyy", "02.01.2006"},
	{"yyyymmdd", "20060102"}, {"yyyy-mm", "2006-01"}, {"mm/yyyy", "01/2006"},
}

var isoStamp = regexp.MustCompile(`\d{4}-\d\d-\d\dt\d\d:\d\d(:\d\d)?(z|[+-]\d\d:\d\d)?`)

// format writes a date the way a parameter's description asks for, ISO 8601 if it does not say.
func (d date) format(description, format string) string {
	t := time.Date(d.year, time.Month(max(d.month, 1)), max(d.day, 1), d.hour, d.minute, 0, 0, time.UTC)
	text := strings.ToLower(description)
	if format == "date-time" || isoStamp.MatchString(text) {
		return t.Format("2006-01-02T15:04:05Z")
	}
	for _, l := range layouts {
		if strings.Contains(text, l.written) {
			return t.Format(l.layout)
		}
	}
	if d.day == 0 {
		return t.Format("2006-01")
	}
	return t.Format("2006-01-02")
}

// clock writes a time of day as the question has it, unless the parameter's description names a format.
func (m mention) clock(description string) string {
	d := m.date
	text := strings.ToLower(description)
	switch {
	case strings.Contains(text, "hh:mm:ss"):
		return fmt.Sprintf("%02d:%02d:00", d.hour, d.minute)
	case strings.Contains(text, "hh:mm") || strings.Contains(text, "24-hour") || strings.Contains(text, "24 hour"):
		return fmt.Sprintf("%02d:%02d", d.hour, d.minute)
	}
	return m.text
}

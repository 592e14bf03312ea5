package values

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// formats are the formats of strings with the kinds of values that have them.
var formats = map[string][]Kind{
	"email": {Email}, "uri": {URL, Quotation, Phrase}, "url": {URL, Quotation, Phrase}, "uuid": {Identifier, Quotation},
	"date": {Date, DateTime, DateRange}, "date-time": {DateTime, Date, Time, DateRange}, "time": {Time, DateTime, TimeRange}, "duration": {Duration},
}

// asked are the words of parameters that ask for a kind of value.
var asked = map[Kind]string{
	Email: "email mail recipient to", URL: "url uri link website", Path: "path file filename folder directory",
	Identifier: "id identifier number code key", Expression: "expression formula equation calculation",
	Quotation: "text message body content title subject query", Name: "name city location person customer",
}

var (
	uuid        = regexp.MustCompile(`^(?i)[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$`)
	layoutShape = regexp.MustCompile(`(?i)\b(?:YYYY|YY|DD|MM|HH)(?:[-/.,: T]*(?:YYYY|YY|DD|MM|HH|SS))+|(?:%[YmdHMSy][-/:.T]?)+`)
	layoutParts = strings.NewReplacer("YYYY", "2006", "YY", "06", "DD", "02", "HH", "15", "SS", "05",
		"%Y", "2006", "%m", "01", "%d", "02", "%H", "15", "%M", "04", "%S", "05", "%y", "06")
)

// text writes a value as a string, "" if it does not fit.
func (t *target) text(v Value) (string, float64) {
	kinds, strict := formats[t.Format]
	if strict && !slices.Contains(kinds, v.Kind) || t.Format == "uuid" && !uuid.MatchString(v.Text) {
		return "", 0
	}
	score := 0.5
	if strict {
		score = 1
	} else if shares(t.words, asked[v.Kind]) {
		score = 0.9
	}
	switch v.Kind {
	case URL:
		if strict && !strings.Contains(v.Text, "://") {
			return "https://" + v.Text, 0.8
		}
	case Money:
		if shares(t.words, "currency") && !shares(t.words, "amount") {
			return v.Unit, 0.8
		}
		return string(v.Number), 0.4
	case Quantity, Duration:
		if form := periods[v.Unit]; form != "" && (strict || strings.Contains(t.hint, "iso 8601")) {
			return strings.Replace(form, "n", string(v.Number), 1), 1
		}
		if shares(t.name, "unit units") {
			return v.Unit, 0.7
		}
		return v.Text, 0.4
	case Number, Ordinal, Percent:
		if strings.Trim(v.Text, "0123456789") != "" {
			return string(v.Number), 0.4
		}
		return v.Text, 0.4
	case Date, DateTime, Time, DateRange, TimeRange:
		return t.moment(v)
	}
	return v.Text, score
}

// periods are durations in ISO 8601.
var periods = map[string]string{"year": "PnY", "month": "PnM", "week": "PnW", "day": "PnD", "hour": "PTnH", "minute": "PTnM", "second": "PTnS"}

// layout returns the layout that the description names, as package time writes it. MM after HH are minutes.
func (t *target) layout() string {
	named := layoutShape.FindString(t.Description)
	if !strings.HasPrefix(named, "%") {
		named = strings.ToUpper(named)
	}
	date, clock, timed := strings.Cut(layoutParts.Replace(named), "15")
	layout := strings.ReplaceAll(date, "MM", "01")
	if timed {
		layout += "15" + strings.ReplaceAll(clock, "MM", "04")
	}
	return layout
}

// moment writes a date or time in the layout that the parameter asks for, ISO 8601 if it does not say. A range is
// written as its end that the parameter names, as a month, or where any text will do, as it is.
func (t *target) moment(v Value) (string, float64) {
	moment, layout := v.Time, t.layout()
	dated, timed := v.Kind != Time && v.Kind != TimeRange, v.Kind == DateTime || v.Kind == Time || v.Kind == TimeRange
	if !v.Until.IsZero() {
		month := dated && moment.Day() == 1 && moment.AddDate(0, 1, -1).Equal(v.Until)
		switch {
		case shares(t.name, "start from begin since after min"):
		case shares(t.name, "end to until before max due deadline"):
			moment = v.Until
		case month && (layout == "2006-01" || layout == "01/2006" || layout == "" && shares(t.name, "month")):
			if layout == "" {
				layout = "2006-01"
			}
		case t.Format != "" || layout != "" || shares(t.name, "date day time"):
			return "", 0
		default:
			return v.Text, 0.4
		}
	}
	score := 0.6
	if layout != "" || t.Format != "" || shares(t.words, "date time day when datetime deadline") {
		score = 1
	}
	switch {
	case layout != "":
		if strings.Contains(layout, "01") && !dated || strings.Contains(layout, "15") && !timed {
			return "", 0
		}
	case t.Format == "date-time":
		if layout = time.RFC3339; !timed || !dated {
			score = 0.5
		}
	case t.Format == "date" || !timed:
		layout = time.DateOnly
	case t.Format == "time":
		layout = "15:04:05Z07:00"
	case !dated && (strings.Contains(t.hint, "12-hour") || strings.Contains(t.hint, "am/pm")):
		layout = "3:04 PM"
	case !dated:
		layout = "15:04"
	default:
		layout = time.RFC3339
	}
	return moment.Format(layout), score
}

package values

import (
	"slices"
	"strings"
	"time"
)

// formats are the formats of strings with the kinds of values that have them.
var formats = map[string][]Kind{
	"email": {Email}, "uri": {URL, Quotation, Phrase}, "url": {URL, Quotation, Phrase}, "uuid": {Identifier, Quotation},
	"date": {Date, DateTime, DateRange}, "date-time": {DateTime, Date, Time, DateRange},
	"time": {Time, DateTime, TimeRange}, "duration": {Duration},
}

// asked are the words of parameters that ask for a kind of value.
var asked = map[Kind]string{
	Email: "email mail recipient to", URL: "url uri link website", Path: "path file filename folder directory",
	Identifier: "id identifier number code key", Expression: "expression formula equation calculation",
	Quotation: "text message body content title subject query", Name: "name city location person customer",
}

// periods are durations in ISO 8601.
var periods = map[string]string{
	"year": "PnY", "month": "PnM", "week": "PnW", "day": "PnD", "hour": "PTnH", "minute": "PTnM", "second": "PTnS",
}

var (
	uuid        = Lazy(`^(?i)[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$`)
	layoutShape = Lazy(`(?i)\b(?:YY(?:YY)?|DD|MM|HH)(?:[-/.,: T]*(?:YY(?:YY)?|DD|MM|HH|SS))+|` +
		`(?:%[YmdHMSy][-/:.T]?)+`)
	hourShape   = Lazy(`(?:^|[^:\d])\d{1,2} ?[ap]m\b`)
	layoutParts = strings.NewReplacer("YYYY", "2006", "YY", "06", "DD", "02", "HH", "15", "SS", "05",
		"%Y", "2006", "%m", "01", "%d", "02", "%H", "15", "%M", "04", "%S", "05", "%y", "06")
)

// text writes a value as a string, "" if it does not fit.
func (t *target) text(v Value) (string, float64) {
	kinds, strict := formats[t.Format]
	if strict && !slices.Contains(kinds, v.Kind) || t.Format == "uuid" && !uuid().MatchString(v.Text) {
		return "", 0
	}
	period := periods[v.Unit]
	switch {
	case v.Kind == URL && strict && !strings.Contains(v.Text, "://"):
		return "https://" + v.Text, 0.8
	case v.Kind == Money && (shares(t.name, "currency") || shares(t.words, "currency") && !shares(t.words, "amount")),
		v.Kind == Quantity && shares(t.name, "unit units") && len(t.name) > 1:
		return v.Unit, 0.8
	case v.Kind == Quantity && shares(t.name, "unit units"): // of the result
		return "", 0
	case v.Kind == Number && t.layout() != "", v.Kind == Money && v.Number == "":
		return "", 0
	case v.Kind == Duration && period != "" && (strict || t.mentions("iso 8601")):
		return strings.Replace(period, "n", string(v.Number), 1), 1
	case !v.Time.IsZero():
		return t.moment(v)
	case v.Kind == Duration && shares(t.name, "age"):
		return string(v.Number), 1
	case v.Number != "" && v.Kind != Quantity && v.Kind != Duration && strings.Trim(v.Text, "0123456789") != "":
		return string(v.Number), 0.4
	case v.Number != "":
		return v.Text, 0.4
	case strict:
		return v.Text, 1
	case shares(t.words, asked[v.Kind]):
		return v.Text, 0.9
	}
	return v.Text, 0.5
}

// layout returns the layout that the description names, as package time writes it. MM after HH are minutes.
func (t *target) layout() string {
	named := layoutShape().FindString(t.Description)
	if !strings.HasPrefix(named, "%") {
		named = strings.ToUpper(named)
	}
	date, clock, timed := strings.Cut(layoutParts.Replace(named), "15")
	if layout := strings.ReplaceAll(date, "MM", "01"); timed {
		return layout + "15" + strings.ReplaceAll(clock, "MM", "04")
	}
	return strings.ReplaceAll(date, "MM", "01")
}

// moment writes a date or time in the layout that the parameter asks for, ISO 8601 if it does not say. A range is
// written as its end that the parameter names, as a month, or where any text will do, as it is.
func (t *target) moment(v Value) (string, float64) {
	moment, layout, score := v.Time, t.layout(), 0.6
	dated, timed := v.Kind != Time && v.Kind != TimeRange, v.Kind != Date && v.Kind != DateRange
	if layout != "" || t.Format != "" || shares(t.words, "date time day when datetime deadline") {
		score = 1
	}
	month := dated && moment.Day() == 1 && moment.AddDate(0, 1, -1).Equal(v.Until)
	switch {
	case v.Until.IsZero() || shares(t.name, "start from begin since after min"):
	case shares(t.name, "end to until before max due deadline"):
		moment = v.Until
	case month && layout == "" && shares(t.name, "month") && meaning(fold(v.Text), "month") != "":
		return v.Text, 1
	case month && layout == "" && shares(t.name, "month"):
		layout = "2006-01"
	case month && layout != "" && !strings.Contains(layout, "02"):
	case t.Format != "" || layout != "" || shares(t.name, "date day time"):
		return "", 0
	default:
		return v.Text, 0.4
	}
	switch {
	case layout != "":
		if strings.Contains(layout, "01") && !dated || strings.Contains(layout, "15") && !timed {
			return "", 0
		}
	case t.Format == "date" || t.Format != "date-time" && !timed:
		layout = time.DateOnly
	case t.Format == "time":
		layout = "15:04:05Z07:00"
	case t.Format == "" && !dated && hourShape().MatchString(t.hint) && hourShape().MatchString(strings.ToLower(v.Text)):
		return v.Text, score // e.g. 3pm
	case t.Format != "date-time" && !dated && t.mentions("12-hour", "am/pm"):
		layout = "3:04 PM"
	case t.Format != "date-time" && !dated:
		layout = "15:04"
	default:
		if layout = time.RFC3339; !timed || !dated {
			score = 0.5
		}
	}
	return moment.Format(layout), score
}

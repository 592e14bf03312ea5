package values

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// now is Wednesday, 4 June 2025.
func now() time.Time { return time.Date(2025, 6, 4, 10, 30, 0, 0, time.FixedZone("", 2*3600)) }

var kindNames = []string{"", "number", "ordinal", "money", "quantity", "percent", "duration", "date", "datetime", "time", "dates",
	"times", "email", "url", "path", "quote", "id", "name", "phrase", "flag", "expression"}

// reading writes what a value says, without its alternatives.
func reading(v Value) string {
	out := kindNames[v.Kind]
	zone := ""
	if _, offset := v.Time.Zone(); offset != 2*3600 {
		zone = "Z07:00"
	}
	switch v.Kind {
	case Number, Ordinal, Money, Quantity, Percent, Duration:
		out += " " + string(v.Number)
		if v.Unit != "" {
			out += " " + v.Unit
		}
	case Date:
		out += v.Time.Format(" 2006-01-02")
	case DateTime:
		out += v.Time.Format(" 2006-01-02 15:04" + zone)
	case Time:
		out += v.Time.Format(" 15:04" + zone)
	case DateRange:
		out += v.Time.Format(" 2006-01-02") + v.Until.Format("..2006-01-02")
	case TimeRange:
		out += v.Time.Format(" 15:04") + v.Until.Format("..15:04")
	case Boolean:
		out += fmt.Sprint(" ", v.Flag)
	default:
		out += " " + v.Text
	}
	return out
}

// show writes a value with its alternatives.
func show(v Value) string {
	out := reading(v)
	for _, a := range v.Alternatives {
		out += " or " + reading(a)
	}
	return out
}

func showAll(values []Value) string {
	var out []string
	for _, v := range values {
		out = append(out, show(v))
	}
	return strings.Join(out, "; ")
}

type row struct{ text, want string }

// check compares the values of texts in a language.
func check(t *testing.T, o Options, rows []row) {
	t.Helper()
	o.Now = now()
	for _, row := range rows {
		if got := showAll(Extract(row.text, o)); got != row.want {
			t.Errorf("%s %q:\n got %s\nwant %s", o.Language, row.text, got, row.want)
		}
	}
}

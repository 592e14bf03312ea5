package values

import (
	"encoding/json"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/agenticnexus/agenticnexus/internal/schema"
)

// Fitted is a value as a parameter asks for it.
type Fitted struct {
	Value     any     // as encoding/json writes it
	Score     float64 // 1 if the parameter asks for such a value, less the less it says
	Ambiguous bool    // other values fit as well: ask, or leave it out
	Others    []any
}

// fitting collects how the readings of a value fit one parameter.
type fitting struct {
	*schema.Schema
	hint   string // name, title and description in lower case
	words  []string
	found  []Fitted
	unsure bool
}

// Fit writes the value with the type, format, pattern, choices and bounds of a parameter, whose name and description may
// name a unit or a layout. It returns false if the value does not fit. Arrays and objects are left to the caller.
func (v Value) Fit(p schema.Property) (Fitted, bool) {
	if p.Schema == nil {
		p.Schema = &schema.Schema{}
	}
	f := &fitting{Schema: p.Schema, hint: strings.ToLower(p.Name + " " + p.Title + " " + p.Description)}
	f.words = words(p.Name + " " + p.Title + " " + p.Description)
	if len(p.Alternatives) > 0 {
		for _, s := range p.Alternatives {
			if one, ok := v.Fit(schema.Property{Name: p.Name, Schema: s}); ok {
				f.found = append(f.found, one)
			}
		}
		slices.SortStableFunc(f.found, func(a, b Fitted) int { return int(100 * (b.Score - a.Score)) })
		if len(f.found) == 0 {
			return Fitted{}, false
		}
		return f.found[0], true
	}
	for _, reading := range append([]Value{v}, v.Alternatives...) {
		f.read(reading, words(p.Name))
	}
	if len(f.found) == 0 {
		return Fitted{}, false
	}
	best := f.found[0]
	for _, other := range f.found[1:] {
		if !reflect.DeepEqual(other.Value, best.Value) {
			best.Others = append(best.Others, other.Value)
		}
	}
	best.Ambiguous = len(best.Others) > 0 || f.unsure
	return best, true
}

// words splits a text at marks and inner capitals, in lower case.
func words(text string) []string {
	var b strings.Builder
	var before rune
	for _, c := range text {
		if unicode.IsUpper(c) && unicode.IsLower(before) {
			b.WriteByte(' ')
		}
		b.WriteRune(c)
		before = c
	}
	return strings.FieldsFunc(fold(b.String()), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
}

func (f *fitting) says(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(f.words, w) })
}

// read tries the types that the parameter allows.
func (f *fitting) read(v Value, name []string) {
	types := f.Types
	if len(types) == 0 {
		types = []string{"string", "number", "boolean"}
	}
	for _, kind := range types {
		switch kind {
		case "integer", "number":
			for _, n := range f.numbers(v, kind == "integer", name) {
				f.number(n, kind == "integer", v)
			}
		case "string":
			if text, score := f.text(v, name); text != "" {
				f.keep(text, score)
			}
		case "boolean":
			if v.Kind == Boolean {
				f.keep(v.Flag, 1)
			}
		}
		if len(f.found) > 0 {
			return
		}
	}
}

// keep takes a value that the choices, bounds and the pattern allow.
func (f *fitting) keep(value any, score float64) {
	if s, ok := value.(string); ok && f.Enum == nil {
		if re, err := regexp.Compile(f.Pattern); err == nil && !re.MatchString(s) || !f.within(int64(len([]rune(s))), "minLength", "maxLength") {
			return
		}
	}
	if f.Enum != nil {
		var choices []string
		for _, e := range f.Enum {
			choices = append(choices, strings.Trim(string(e), `"`))
		}
		said, _ := value.(string)
		if said == "" {
			b, _ := json.Marshal(value)
			said = string(b)
		}
		i := slices.IndexFunc(choices, func(c string) bool { return strings.EqualFold(c, said) })
		if m := Enum(said, choices); i < 0 && len(m) == 1 {
			i = slices.Index(choices, m[0].Choice)
		}
		if i < 0 || json.Unmarshal(f.Enum[i], &value) != nil {
			return
		}
	}
	f.found = append(f.found, Fitted{Value: value, Score: score})
}

func (f *fitting) within(n int64, low, high string) bool {
	return f.inBounds(new(big.Rat).SetInt64(n), map[string]int{low: 1, high: -1})
}

// inBounds compares a number with bounds: 1 for a lower one, 2 if it is excluded, negative for upper ones.
func (f *fitting) inBounds(n *big.Rat, bounds map[string]int) bool {
	for name, side := range bounds {
		if text, ok := f.Bounds[name]; ok {
			if c := n.Cmp(rat(string(text))); c*side < 0 || c == 0 && side*side > 1 {
				return false
			}
		}
	}
	return true
}

var numberBounds = map[string]int{"minimum": 1, "exclusiveMinimum": 2, "maximum": -1, "exclusiveMaximum": -2}

// number keeps a number of the right type within the bounds.
func (f *fitting) number(n *big.Rat, integer bool, v Value) {
	step, stepped := f.Bounds["multipleOf"]
	if integer && !n.IsInt() || !f.inBounds(n, numberBounds) || stepped && rat(string(step)).Sign() > 0 && !new(big.Rat).Quo(n, rat(string(step))).IsInt() {
		return
	}
	score := map[Kind]float64{Number: 0.8, Ordinal: 0.4, Identifier: 0.4}[v.Kind]
	if score == 0 {
		score = 0.9
	}
	if n.IsInt() && n.Num().IsInt64() {
		f.keep(n.Num().Int64(), score)
	} else if x, _ := n.Float64(); !n.IsInt() {
		f.keep(x, score)
	} else {
		f.keep(json.Number(n.Num().String()), score)
	}
}

// numbers returns the numbers that a value may stand for.
func (f *fitting) numbers(v Value, integer bool, name []string) []*big.Rat {
	n := rat(string(v.Number))
	switch v.Kind {
	case Number, Ordinal:
		return []*big.Rat{n}
	case Identifier:
		if len(v.Text) <= maxDigits && strings.Trim(v.Text, "0123456789") == "" {
			return []*big.Rat{rat(v.Text)}
		}
	case Money:
		if f.says("cents", "cent", "centimes") || strings.Contains(f.hint, "smallest currency unit") || strings.Contains(f.hint, "minor unit") {
			n.Mul(n, rat("100"))
		}
		return []*big.Rat{n}
	case Percent:
		share := new(big.Rat).Quo(n, rat("100"))
		limit, limited := f.Bounds["maximum"]
		initial, err := strconv.ParseFloat(string(f.Default), 64)
		switch {
		case integer, f.says("percent", "percentage", "pct"), strings.Contains(f.hint, "%"):
			return []*big.Rat{n}
		case limited && rat(string(limit)).Cmp(rat("1")) <= 0, f.says("decimal", "fraction"), strings.Contains(f.hint, "0."), err == nil && initial > 0 && initial < 1:
			return []*big.Rat{share}
		}
		return []*big.Rat{share, n}
	case Quantity, Duration:
		unit := f.unit(v.Unit, name)
		if unit == "" { // a span of time without a unit is a number of what?
			f.unsure = f.unsure || factors[v.Unit].measure == "time"
			return []*big.Rat{n}
		}
		if c := convert(n, v.Unit, unit); c != nil {
			return []*big.Rat{c}
		}
	case Date, DateTime, Time, DateRange:
		return calendar(v, name, f)
	}
	return nil
}

// calendar returns the part of a date or time that a number stands for.
func calendar(v Value, name []string, f *fitting) []*big.Rat {
	n := int64(-1)
	dated := v.Kind == Date || v.Kind == DateTime
	switch {
	case slices.Contains(name, "year") && (dated || v.Kind == DateRange && v.Until.Year() == v.Time.Year()):
		n = int64(v.Time.Year())
	case slices.Contains(name, "month") && (dated || v.Kind == DateRange && v.Until.Month() == v.Time.Month()):
		n = int64(v.Time.Month())
	case slices.Contains(name, "day") && dated:
		n = int64(v.Time.Day())
	case slices.Contains(name, "hour") && (v.Kind == Time || v.Kind == DateTime):
		n = int64(v.Time.Hour())
	case slices.Contains(name, "minute") && (v.Kind == Time || v.Kind == DateTime):
		n = int64(v.Time.Minute())
	case dated && f.says("timestamp", "unix", "epoch"):
		if n = v.Time.Unix(); f.says("ms", "milliseconds", "millis") {
			n *= 1000
		}
	}
	if n < 0 {
		return nil
	}
	return []*big.Rat{new(big.Rat).SetInt64(n)}
}

// unit returns the unit of the same measure that the parameter names, "" if it names none. Its name comes before its
// description, and there "in seconds" before other mentions. Several units name none.
func (f *fitting) unit(said string, name []string) string {
	measure := factors[said].measure
	for _, list := range [][]string{name, after(f.words, "in"), f.words} {
		var found []string
		for _, word := range list {
			for _, language := range []string{"en", "de", "fr", "es"} {
				for _, p := range lexicons[language]["unit"][word] {
					same := measure == "time" || measure == "calendar"
					m := factors[p.means].measure
					if len(p.rest) == 0 && (m == measure || same && (m == "time" || m == "calendar")) && !slices.Contains(found, p.means) {
						found = append(found, p.means)
					}
				}
			}
		}
		if len(found) == 1 {
			return found[0]
		}
	}
	return ""
}

// after returns the words that follow a word.
func after(words []string, word string) []string {
	var out []string
	for i := 1; i < len(words); i++ {
		if words[i-1] == word {
			out = append(out, words[i])
		}
	}
	return out
}

var layoutShape = regexp.MustCompile(`(?i)(?:\b(?:YYYY|YY|DD|MM|HH)(?:[-/.,: T]*(?:YYYY|YY|DD|MM|HH|SS|Z\b))+|(?:%[YmdHMSy][-/:. T]*){2,})`)

// layout returns the layout of dates and times that the parameter's description names, as package time writes it.
func (f *fitting) layout() string {
	named := layoutShape.FindString(f.Description)
	if named == "" {
		return ""
	}
	if strings.HasPrefix(named, "%") {
		return strings.TrimRight(strings.NewReplacer("%Y", "2006", "%m", "01", "%d", "02", "%H", "15", "%M", "04", "%S", "05", "%y", "06").Replace(named), " .")
	}
	named = strings.NewReplacer("YYYY", "2006", "YY", "06", "DD", "02", "HH", "15", "SS", "05").Replace(strings.ToUpper(named))
	month, minutes, hasHour := strings.Cut(named, "15")
	if hasHour {
		return strings.ReplaceAll(month, "MM", "01") + "15" + strings.ReplaceAll(minutes, "MM", "04")
	}
	return strings.ReplaceAll(named, "MM", "01")
}

// formats are the formats of strings with the kinds of values that have them.
var formats = map[string][]Kind{
	"email": {Email}, "idn-email": {Email}, "uri": {URL}, "url": {URL}, "uri-reference": {URL, Path}, "uuid": {Identifier},
	"date": {Date, DateTime, DateRange}, "date-time": {DateTime, Date, Time, DateRange}, "time": {Time, DateTime}, "duration": {Duration},
}

// text writes a value as a string, "" if it does not fit.
func (f *fitting) text(v Value, name []string) (string, float64) {
	kinds, strict := formats[f.Format]
	if strict && !slices.Contains(kinds, v.Kind) {
		if v.Kind != Quotation && v.Kind != Phrase || f.Format == "date" || f.Format == "date-time" || f.Format == "time" {
			return "", 0
		}
	}
	score := 0.5
	if strict {
		score = 1
	}
	switch v.Kind {
	case Email, URL, Path, Identifier:
		if f.says(map[Kind][]string{Email: {"email", "mail", "recipient", "to"}, URL: {"url", "uri", "link", "website"},
			Path: {"path", "file", "filename", "folder", "directory"}, Identifier: {"id", "identifier", "number", "code", "key"}}[v.Kind]...) {
			score = max(score, 0.9)
		}
		if v.Kind == Identifier && f.Format == "uuid" && !uuidShape.MatchString(v.Text) {
			return "", 0
		}
		if v.Kind == URL && f.Format != "" && !strings.Contains(v.Text, "://") {
			return "https://" + v.Text, 0.8
		}
	case Expression:
		if f.says("expression", "formula", "equation", "calculation") {
			score = 1
		}
	case Money:
		if f.says("currency") && !f.says("amount") {
			return v.Unit, 0.8
		}
		return string(v.Number), 0.4
	case Quantity:
		if slices.ContainsFunc(name, func(w string) bool { return strings.HasPrefix(w, "unit") }) {
			return v.Unit, 0.7
		}
		return v.Text, 0.4
	case Duration:
		if f.Format == "duration" || strings.Contains(f.hint, "iso 8601") {
			return isoPeriod(v), 1
		}
		return v.Text, 0.4
	case Number, Ordinal, Percent:
		if strings.Trim(v.Text, "0123456789") != "" {
			return string(v.Number), 0.4
		}
		return v.Text, 0.4
	case Date, DateTime, Time, DateRange, TimeRange:
		return f.moment(v, name)
	}
	return v.Text, score
}

var uuidShape = regexp.MustCompile(`^(?i)[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$`)

func isoPeriod(v Value) string {
	for iso, unit := range isoUnits {
		if unit == v.Unit {
			if before, after, _ := strings.Cut(iso, "T"); before != "" {
				return "P" + string(v.Number) + before
			} else if after != "" {
				return "PT" + string(v.Number) + after
			}
		}
	}
	return ""
}

// moment writes a date or time in the layout that the parameter asks for, ISO 8601 if it does not say.
func (f *fitting) moment(v Value, name []string) (string, float64) {
	t := v.Time
	layout := f.layout()
	if v.Kind == DateRange || v.Kind == TimeRange {
		short := layout != "" && !strings.Contains(layout, "02") || slices.Contains(name, "month") || slices.Contains(name, "year")
		switch {
		case slices.ContainsFunc(name, func(w string) bool { return slices.Contains(strings.Fields("start from begin since after min"), w) }):
		case slices.ContainsFunc(name, func(w string) bool { return slices.Contains(strings.Fields("end to until before max due deadline"), w) }):
			t = v.Until
		case short && v.Kind == DateRange && t.Day() == 1 && t.AddDate(0, 1, -1).Equal(v.Until):
			if layout == "" {
				layout = "2006-01"
			}
		case f.Format != "" || layout != "" || f.says("date", "day", "time"):
			return "", 0
		default:
			return v.Text, 0.4
		}
	}
	score := 0.6
	if layout != "" || f.Format != "" || f.says("date", "time", "day", "when", "datetime", "deadline") {
		score = 1
	}
	dated, timed := v.Kind != Time && v.Kind != TimeRange, v.Kind == DateTime || v.Kind == Time || v.Kind == TimeRange
	switch {
	case layout != "":
		if needsDate := strings.Contains(layout, "02") || strings.Contains(layout, "01"); needsDate && !dated || strings.Contains(layout, "15") && !timed {
			return "", 0
		}
	case f.Format == "date-time":
		layout = time.RFC3339
		if !timed {
			score = 0.5
		}
		if !dated {
			score = 0.6
		}
	case f.Format == "date" || !timed:
		layout = "2006-01-02"
	case f.Format == "time":
		layout = "15:04:05Z07:00"
	case !dated && (strings.Contains(f.hint, "12-hour") || strings.Contains(f.hint, "am/pm")):
		layout = "3:04 PM"
	case !dated:
		layout = "15:04"
	default:
		layout = "2006-01-02T15:04:05Z07:00"
	}
	return t.Format(layout), score
}

package values

import (
	"encoding/json"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/agenticnexus/agenticnexus/internal/schema"
)

// Fitted is a value as a parameter asks for it.
type Fitted struct {
	Value     any     // as encoding/json writes it
	Score     float64 // 1 if the parameter asks for such a value, less the less it says
	Ambiguous bool    // it may be another value: ask, or leave it out
	Others    []any
}

// target is a parameter that a value is fitted to.
type target struct {
	*schema.Schema
	name, words []string // of the parameter; with those of its title and description
	hint        string   // the words as one text with the marks
	found       []Fitted
	unsure      bool
}

// Fit writes the value with the type, format, pattern, choices and bounds of a parameter. The parameter's name and
// description may name a unit or a layout. It returns false if the value does not fit. Arrays and objects are left to
// the caller.
func (v Value) Fit(p schema.Property) (best Fitted, ok bool) {
	if p.Schema == nil {
		p.Schema = &schema.Schema{}
	}
	for _, s := range p.Alternatives {
		if one, fits := v.Fit(schema.Property{Name: p.Name, Schema: s}); fits && (!ok || one.Score > best.Score) {
			best, ok = one, true
		}
	}
	if len(p.Alternatives) > 0 {
		return best, ok
	}
	text := p.Name + " " + p.Title + " " + p.Description
	t := &target{Schema: p.Schema, name: words(p.Name), words: words(text), hint: fold(text)}
	for _, reading := range append([]Value{v}, v.Alternatives...) {
		if reading.Kind == Quantity && v.Kind == Number && (t.unit(reading.Unit) != "" || t.mentions("temp")) {
			t.found = nil // 298K
		}
		t.read(reading)
	}
	for i, f := range t.found {
		if i == 0 {
			best = f
		} else if !reflect.DeepEqual(f.Value, best.Value) {
			best.Others = append(best.Others, f.Value)
		}
	}
	best.Ambiguous = len(best.Others) > 0 || t.unsure
	return best, len(t.found) > 0
}

// words splits a text at marks and inner capitals, in lower case.
func words(text string) []string {
	var b strings.Builder
	before := ' '
	for _, c := range text {
		if unicode.IsUpper(c) && unicode.IsLower(before) {
			b.WriteByte(' ')
		}
		b.WriteRune(c)
		before = c
	}
	return strings.FieldsFunc(fold(b.String()), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
}

// shares reports whether a list has one of the words.
func shares(list []string, words string) bool {
	return slices.ContainsFunc(strings.Fields(words), func(w string) bool { return slices.Contains(list, w) })
}

// mentions reports whether the parameter's texts have one of the parts.
func (t *target) mentions(parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(t.hint, part) })
}

// read tries the types that the parameter allows.
func (t *target) read(v Value) {
	types, known := t.Types, len(t.found)
	if len(types) == 0 {
		types = []string{"string", "number", "boolean"}
	}
	for _, kind := range types {
		switch {
		case kind == "string":
			if text, score := t.text(v); text != "" {
				t.keep(text, score)
			}
		case kind == "boolean" && v.Kind == Boolean:
			t.keep(v.Flag, 1)
		case kind == "integer" || kind == "number":
			for _, n := range t.numbers(v, kind == "integer") {
				t.number(n, kind == "integer", v.Kind)
			}
		}
		if len(t.found) > known {
			return
		}
	}
}

// keep takes a value that the choices, the pattern and the length allow.
func (t *target) keep(value any, score float64) {
	said, text := value.(string)
	if !text {
		raw, _ := json.Marshal(value)
		said = string(raw)
	}
	form, err := regexp.Compile(t.Pattern)
	length := new(big.Rat).SetInt64(int64(len([]rune(said))))
	if text && (err == nil && !form.MatchString(said) && t.Enum == nil || !t.within(length, "minLength", "maxLength")) {
		return
	}
	if t.Enum != nil {
		choices := make([]string, len(t.Enum))
		for i, e := range t.Enum {
			choices[i] = strings.Trim(string(e), `"`)
		}
		named := Enum(said, choices)
		if len(named) != 1 || json.Unmarshal(t.Enum[slices.Index(choices, named[0].Choice)], &value) != nil {
			return
		}
	}
	t.found = append(t.found, Fitted{Value: value, Score: score})
}

func (t *target) within(n *big.Rat, low, high string) bool {
	for i, name := range []string{low, high, "exclusiveMinimum", "exclusiveMaximum"} {
		if limit := string(t.Bounds[name]); limit != "" {
			if side := n.Cmp(rat(limit)) * (1 - i%2*2); side < 0 || side == 0 && i > 1 {
				return false
			}
		}
	}
	return true
}

// number keeps a number of the right type within the bounds.
func (t *target) number(n *big.Rat, integer bool, kind Kind) {
	step := rat(string(t.Bounds["multipleOf"]))
	steps := step.Sign() <= 0 || new(big.Rat).Quo(n, step).IsInt()
	if integer && !n.IsInt() || !t.within(n, "minimum", "maximum") || !steps {
		return
	}
	score := map[Kind]float64{Number: 0.8, Ordinal: 0.4, Identifier: 0.4}[kind]
	if score == 0 {
		score = 0.9
	}
	if t.unsure {
		score = 0.5
	}
	switch x, _ := n.Float64(); {
	case !n.IsInt():
		t.keep(x, score)
	case n.Num().IsInt64():
		t.keep(n.Num().Int64(), score)
	default:
		t.keep(json.Number(n.Num().String()), score)
	}
}

// numbers returns the numbers that a value may stand for.
func (t *target) numbers(v Value, integer bool) []*big.Rat {
	n := rat(string(v.Number))
	switch v.Kind {
	case Number, Ordinal:
	case Identifier:
		if n = rat(v.Text); len(v.Text) > maxDigits || strings.Trim(v.Text, "0123456789") != "" {
			return nil
		}
	case Money:
		if v.Number == "" {
			return nil
		}
		if shares(t.words, "cents cent centimes") || t.mentions("smallest currency unit", "minor unit") {
			n = times(n, rat("100"))
		}
	case Percent:
		share, usual, most := times(n, rat("1/100")), rat(string(t.Default)), string(t.Bounds["maximum"])
		switch {
		case integer || t.mentions("percent", "pct", "%"):
		case most != "" && rat(most).Cmp(rat("1")) <= 0 || t.mentions("decimal", "fraction", "0.") || !usual.IsInt():
			n = share
		default:
			return []*big.Rat{share, n}
		}
	case Quantity, Duration:
		if unit := t.unit(v.Unit); unit != "" {
			n = convert(n, v.Unit, unit)
		} else if factors()[v.Unit].measure == "time" && !shares(t.name, "age") {
			t.unsure = true // a time of what?
		}
	default:
		n = t.calendar(v)
	}
	if n == nil {
		return nil
	}
	return []*big.Rat{n}
}

// calendar returns the part of a date that the parameter asks for, nil if none.
func (t *target) calendar(v Value) *big.Rat {
	day := v.Kind == Date || v.Kind == DateTime
	unix := day && shares(t.words, "timestamp unix epoch")
	part := func(n int) *big.Rat { return new(big.Rat).SetInt64(int64(n)) }
	switch {
	case shares(t.name, "year") && (day || v.Kind == DateRange && v.Time.Year() == v.Until.Year()):
		return part(v.Time.Year())
	case shares(t.name, "month") && (day || v.Kind == DateRange && v.Time.Month() == v.Until.Month()):
		return part(int(v.Time.Month()))
	case shares(t.name, "day") && day:
		return part(v.Time.Day())
	case (shares(t.name, "hour") || shares(t.name, "opening operating closing")) && (v.Kind == Time || v.Kind == DateTime):
		return part(v.Time.Hour())
	case unix && shares(t.words, "ms milliseconds millis"):
		return part(int(v.Time.UnixMilli()))
	case unix:
		return part(int(v.Time.Unix()))
	}
	return nil
}

// unit returns the unit of the same measure that the parameter names, "" if it names none or several. Its name comes
// before its description, and there "in seconds" before other mentions.
func (t *target) unit(said string) string {
	in := slices.Clone(t.words)
	for i := range in {
		if i == 0 || t.words[i-1] != "in" {
			in[i] = ""
		}
	}
	kind := func(unit string) string { return strings.Replace(factors()[unit].measure, "calendar", "time", 1) }
	for _, list := range [][]string{t.name, in, t.words} {
		var found []string
		for _, word := range list {
			if symbol := meaning(word, "unit"); symbol != "" && kind(symbol) == kind(said) && !slices.Contains(found, symbol) {
				found = append(found, symbol)
			}
		}
		if len(found) == 1 {
			return found[0]
		}
	}
	return ""
}

// meaning is what a word of any language means in a class.
func meaning(word, class string) string {
	for _, language := range codes {
		if list := lexicons()[language][class][word]; list != nil && len(list[len(list)-1].rest) == 0 {
			return list[len(list)-1].means
		}
	}
	return ""
}

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

// Fit writes the value with the type, format, pattern, choices and bounds of a parameter, whose name and description may
// name a unit or a layout. It returns false if the value does not fit. Arrays and objects are left to the caller.
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
	t := &target{Schema: p.Schema, name: words(p.Name), hint: fold(p.Name + " " + p.Title + " " + p.Description)}
	t.words = words(p.Name + " " + p.Title + " " + p.Description)
	for _, reading := range append([]Value{v}, v.Alternatives...) {
		t.read(reading)
	}
	if len(t.found) == 0 {
		return best, false
	}
	best = t.found[0]
	for _, other := range t.found[1:] {
		if !reflect.DeepEqual(other.Value, best.Value) {
			best.Others = append(best.Others, other.Value)
		}
	}
	best.Ambiguous = len(best.Others) > 0 || t.unsure
	return best, true
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

// read tries the types that the parameter allows.
func (t *target) read(v Value) {
	types, known := t.Types, len(t.found)
	if len(types) == 0 {
		types = []string{"string", "number", "boolean"}
	}
	for _, kind := range types {
		switch text, score := "", 0.0; kind {
		case "integer", "number":
			for _, n := range t.numbers(v, kind == "integer") {
				t.number(n, kind == "integer", v.Kind)
			}
		case "string":
			if text, score = t.text(v); text != "" {
				t.keep(text, score)
			}
		case "boolean":
			if v.Kind == Boolean {
				t.keep(v.Flag, 1)
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
	if t.Enum != nil {
		choices := make([]string, len(t.Enum))
		for i, e := range t.Enum {
			choices[i] = strings.Trim(string(e), `"`)
		}
		named := Enum(said, choices)
		if len(named) != 1 || json.Unmarshal(t.Enum[slices.Index(choices, named[0].Choice)], &value) != nil {
			return
		}
	} else if form, err := regexp.Compile(t.Pattern); text && (err == nil && !form.MatchString(said) ||
		!t.within(new(big.Rat).SetInt64(int64(len([]rune(said)))), "minLength", "maxLength")) {
		return
	}
	t.found = append(t.found, Fitted{Value: value, Score: score})
}

func (t *target) within(n *big.Rat, least, most string) bool {
	low, high := t.Bounds[least], t.Bounds[most]
	return (low == "" || n.Cmp(rat(string(low))) >= 0) && (high == "" || n.Cmp(rat(string(high))) <= 0)
}

// number keeps a number of the right type within the bounds.
func (t *target) number(n *big.Rat, integer bool, kind Kind) {
	exclusive := slices.ContainsFunc([]string{"exclusiveMinimum", "exclusiveMaximum"}, func(name string) bool {
		return t.Bounds[name] != "" && n.Cmp(rat(string(t.Bounds[name]))) == 0
	})
	step := rat(string(t.Bounds["multipleOf"]))
	if integer && !n.IsInt() || exclusive || !t.within(n, "minimum", "maximum") || !t.within(n, "exclusiveMinimum", "exclusiveMaximum") ||
		step.Sign() > 0 && !new(big.Rat).Quo(n, step).IsInt() {
		return
	}
	score := 0.9
	if kind == Number {
		score = 0.8
	} else if kind == Ordinal || kind == Identifier {
		score = 0.4
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
	n, hundred := rat(string(v.Number)), rat("100")
	switch v.Kind {
	case Number, Ordinal:
	case Identifier:
		if n = rat(v.Text); len(v.Text) > maxDigits || strings.Trim(v.Text, "0123456789") != "" {
			return nil
		}
	case Money:
		if shares(t.words, "cents cent centimes") || strings.Contains(t.hint, "smallest currency unit") || strings.Contains(t.hint, "minor unit") {
			n = times(n, hundred)
		}
	case Percent:
		share := new(big.Rat).Quo(n, hundred)
		most, usual := t.Bounds["maximum"], rat(string(t.Default))
		switch {
		case integer || shares(t.words, "percent percentage pct") || strings.Contains(t.hint, "%"):
		case most != "" && rat(string(most)).Cmp(rat("1")) <= 0 || shares(t.words, "decimal fraction") || strings.Contains(t.hint, "0.") || !usual.IsInt():
			n = share
		default:
			return []*big.Rat{share, n}
		}
	case Quantity, Duration:
		if unit := t.unit(v.Unit); unit != "" {
			n = convert(n, v.Unit, unit)
		} else if factors[v.Unit].measure == "time" {
			t.unsure = true // a time of what?
		}
		if n == nil {
			return nil
		}
	default:
		return t.calendar(v)
	}
	return []*big.Rat{n}
}

// calendar returns the part of a date that the parameter asks for.
func (t *target) calendar(v Value) []*big.Rat {
	n, single := int64(0), v.Kind == Date || v.Kind == DateTime
	switch {
	case slices.Contains(t.name, "year") && (single || v.Kind == DateRange && v.Time.Year() == v.Until.Year()):
		n = int64(v.Time.Year())
	case slices.Contains(t.name, "month") && (single || v.Kind == DateRange && v.Time.Month() == v.Until.Month()):
		n = int64(v.Time.Month())
	case slices.Contains(t.name, "day") && single:
		n = int64(v.Time.Day())
	case !single || !shares(t.words, "timestamp unix epoch"):
		return nil
	case shares(t.words, "ms milliseconds millis"):
		n = v.Time.UnixMilli()
	default:
		n = v.Time.Unix()
	}
	return []*big.Rat{new(big.Rat).SetInt64(n)}
}

// unit returns the unit of the same measure that the parameter names, "" if it names none or several. Its name comes
// before its description, and there "in seconds" before other mentions.
func (t *target) unit(said string) string {
	var in []string
	for i, word := range t.words {
		if i > 0 && t.words[i-1] == "in" {
			in = append(in, word)
		}
	}
	kind := func(unit string) string { return strings.Replace(factors[unit].measure, "calendar", "time", 1) }
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
		for _, p := range lexicons[language][class][word] {
			if len(p.rest) == 0 {
				return p.means
			}
		}
	}
	return ""
}

package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/agenticnexus/agenticnexus/internal/schema"
	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/planner/rules/values"
)

// How well a parameter is filled.
const (
	takeRequired = 0.3 // the least score that a required parameter takes
	takeOptional = 1.9
	known        = 0.5 // below, a required argument is a guess
	sure         = 1.0 // below, it is weak evidence
	strong       = 4.0
)

// choice is what a parameter is given.
type choice struct {
	value      any
	score      float64
	start, end int  // bytes of the question; equal for what is not a part of it
	named      bool // the value is one that the schema or its description lists
	unclear    bool // the question can be read in more than one way
}

func (c choice) overlaps(start, end int) bool { return c.start < end && start < c.end }

// clashes reports whether two choices use the same part of the question, or the same result.
func (c choice) clashes(o choice) bool {
	if c.end == c.start {
		_, refers := c.value.(reference)
		return refers && c.value == o.value
	}
	return c.overlaps(o.start, o.end)
}

// filling is what the parameters of a tool are given.
type filling struct {
	chosen  map[string]choice
	missing []param  // required and open
	unclear []string // parameters left open because a value for them can be read in more than one way
}

// uses is how surely a word is part of an argument.
func (f filling) uses(w word) float64 {
	used := 0.0
	for _, c := range f.chosen {
		if c.overlaps(w.start, w.end) {
			used = max(used, min(1, c.score/2))
		}
	}
	return used
}

// guessed reports whether a required argument rests on weak evidence.
func (f filling) guessed(q param) bool {
	c, ok := f.chosen[q.Name]
	return ok && q.Required && c.score < known
}

// filler fills the parameters of one tool from one question.
type filler struct {
	p       *Planner
	a       ask
	f       *profile
	earlier []*call
	phrases []values.Value
	digits  int // how many numbers are written in digits
}

// fill gives each parameter at most one part of what is asked, so that all fit best together, and no part twice.
func (p *Planner) fill(a ask, f *profile, earlier []*call) filling {
	l := filler{p: p, a: a, f: f, earlier: earlier}
	l.a.values = l.parts()
	l.phrases = l.cut()
	for _, v := range a.values {
		if v.Kind == values.Number && strings.ContainsAny(v.Text, "0123456789") {
			l.digits++
		}
	}
	return l.fill(f.params, 0)
}

// parts adds to the values what a tool may want of them: the parts of "owner/name", and a place with the region after it
// or the number before it.
func (l *filler) parts() []values.Value {
	out := slices.Clip(l.a.values)
	owned := slices.ContainsFunc(l.f.params, func(q param) bool { return q.Name == "owner" || q.Name == "org" })
	for i, v := range l.a.values {
		if owner, name, ok := strings.Cut(v.Text, "/"); owned && ok && v.Kind == values.Identifier && !strings.Contains(name, "/") {
			left, right := v, v
			left.Text, left.End, left.Label = owner, v.Start+len(owner), "owner"
			right.Text, right.Start, right.Label = name, v.End-len(name), "repo"
			out = append(out, left, right)
		}
		if _, inner, ok := strings.Cut(v.Text, " "); ok && v.Kind == values.DateRange { // "the next 5 years" for a number of years
			for _, d := range values.Extract(inner, values.Options{Now: l.a.now, Language: l.a.lang}) {
				if d.Kind == values.Duration {
					d.Start, d.End = d.Start+v.End-len(inner), d.End+v.End-len(inner)
					out = append(out, d)
				}
			}
		}
		if v.Kind != values.Name {
			continue
		}
		wide := v
		for _, next := range l.a.values[i+1:] {
			if next.Kind == values.Name && next.Start > wide.End && strings.TrimSpace(l.a.text[wide.End:next.Start]) == "," {
				wide.End = next.End
			}
		}
		for _, before := range l.a.values[:i] {
			if before.Kind <= values.Ordinal && before.End < v.Start && strings.TrimSpace(l.a.text[before.End:v.Start]) == "" {
				wide.Start = before.Start
			}
		}
		if wide.Start < v.Start || wide.End > v.End {
			wide.Text, wide.Label = l.a.text[wide.Start:wide.End], "region"
			out = append(out, wide)
		}
	}
	return out
}

func (l *filler) fill(params []param, depth int) filling {
	out := filling{chosen: map[string]choice{}}
	rows := make([][]choice, len(params))
	for i, q := range params {
		rows[i] = l.candidates(q)
	}
	for i, c := range assign(params, rows) {
		if c != nil {
			out.chosen[params[i].Name] = *c
		}
	}
	l.inOrder(params, rows, out.chosen)
	for name, c := range out.chosen {
		if c.unclear { // asked about or left out, but no guess
			delete(out.chosen, name)
			out.unclear = append(out.unclear, name)
		}
	}
	for _, q := range params {
		if _, ok := out.chosen[q.Name]; ok {
			continue
		}
		if c, ok := l.inner(q, out, depth); ok {
			out.chosen[q.Name] = c
		} else if q.Required {
			if c, ok := settled(q); ok {
				out.chosen[q.Name] = c
			} else {
				out.missing = append(out.missing, q)
			}
		}
	}
	return out
}

// worth is what a choice adds; required parameters come first.
func worth(q param, c choice) float64 {
	if q.Required {
		return c.score - takeRequired + 1.5
	}
	return c.score - takeOptional + 0.01
}

// Bounds of the search for the best assignment.
const (
	maxChoices = 12    // of one parameter, the best
	maxVisits  = 20000 // beyond, the best found so far stands
)

// assignment searches what to give each parameter so that the sum is highest and nothing is used twice.
type assignment struct {
	params  []param
	rows    [][]choice // sorted, best first
	rest    []float64  // the most that the parameters from each on can add
	current []*choice
	best    []*choice
	highest float64
	visits  int
}

func assign(params []param, rows [][]choice) []*choice {
	s := assignment{params: params, rows: rows, rest: make([]float64, len(rows)+1), current: make([]*choice, len(rows)), highest: -1}
	for i := len(rows) - 1; i >= 0; i-- {
		rows[i] = slices.DeleteFunc(rows[i], func(c choice) bool { return c.score < least(params[i]) })
		slices.SortStableFunc(rows[i], func(a, b choice) int { return cmp.Compare(b.score, a.score) })
		rows[i] = rows[i][:min(len(rows[i]), maxChoices)]
		s.rest[i] = s.rest[i+1]
		if len(rows[i]) > 0 {
			s.rest[i] += worth(params[i], rows[i][0])
		}
	}
	s.from(0, 0)
	return s.best
}

// from tries all that the parameters from i on may be given.
func (s *assignment) from(i int, sum float64) {
	if s.visits++; s.visits > maxVisits || sum+s.rest[i] <= s.highest {
		return
	}
	if i == len(s.rows) {
		s.highest, s.best = sum, slices.Clone(s.current)
		return
	}
	for k := range s.rows[i] {
		c := &s.rows[i][k]
		if !slices.ContainsFunc(s.current[:i], func(o *choice) bool { return o != nil && o.clashes(*c) }) {
			s.current[i] = c
			s.from(i+1, sum+worth(s.params[i], *c))
		}
	}
	s.current[i] = nil
	s.from(i+1, sum)
}

// least is the least score that a parameter takes.
func least(q param) float64 {
	if q.Required {
		return takeRequired
	}
	return takeOptional
}

// slack is how much better the other way round must fit to break the order of mention.
const slack = 0.35

// inOrder makes parameters of one type take their values in the order of mention where the words around them do not
// decide: a and b of "36 and 48".
func (l *filler) inOrder(params []param, rows [][]choice, chosen map[string]choice) {
	at := func(i int, c choice) (choice, bool) {
		k := slices.IndexFunc(rows[i], func(o choice) bool { return o.start == c.start && o.end == c.end })
		if k < 0 {
			return choice{}, false
		}
		return rows[i][k], true
	}
	for range params {
		for b := range params {
			for a := range b {
				x, okX := chosen[params[a].Name]
				y, okY := chosen[params[b].Name]
				if !okX || !okY || x.start <= y.start || kindOf(params[a].Schema) != kindOf(params[b].Schema) {
					continue
				}
				first, ok1 := at(a, y)
				second, ok2 := at(b, x)
				if ok1 && ok2 && first.score+second.score >= x.score+y.score-slack {
					chosen[params[a].Name], chosen[params[b].Name] = first, second
				}
			}
		}
	}
}

// inner fills an object, or a list of one object, whose fields the question gives.
func (l *filler) inner(q param, outer filling, depth int) (choice, bool) {
	s, list := q.Schema, false
	if kindOf(s) == "array" && s.Items != nil {
		s, list = s.Items, true
	}
	if kindOf(s) != "object" || len(s.Fields) == 0 || depth >= 2 {
		return choice{}, false
	}
	r := profiler{lang: l.a.lang}
	inside := filler{p: l.p, a: l.a.without(outer.chosen), f: l.f, phrases: l.phrases}
	fill := inside.fill(r.params(&profile{labels: map[string]bool{}, shared: map[string]int{}}, s, 0), depth+1)
	if len(fill.chosen) == 0 || len(fill.missing) > 0 {
		return choice{}, false
	}
	object, out := map[string]any{}, choice{score: strong, start: len(l.a.text)}
	for name, c := range fill.chosen {
		object[name] = c.value
		out.score = min(out.score, c.score)
		if c.end > c.start {
			out.start, out.end = min(out.start, c.start), max(out.end, c.end)
		}
	}
	out.value = object
	if list {
		out.value = []any{object}
	}
	out.start = min(out.start, out.end)
	return out, out.score >= least(q)
}

// describedDefault is how descriptions name what is taken when nothing is given.
var describedDefault = regexp.MustCompile(`(?i)\bdefaults?(?: value)?(?: is| to|:|=)? ?(?:to )?['"]?([\w.-]*\w)`)

// settled is what a required parameter is given that the question does not mention: its default or its only choice.
func settled(q param) (choice, bool) {
	raw := q.Default
	if len(raw) == 0 && len(q.Enum) == 1 {
		raw = q.Enum[0]
	}
	if m := describedDefault.FindStringSubmatch(q.Description); len(raw) == 0 && m != nil {
		if raw = json.RawMessage(strings.ToLower(m[1])); kindOf(q.Schema) == "string" {
			raw = json.RawMessage(strconv.Quote(m[1]))
		}
	}
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil || v == nil || !matches(q.Schema, v) {
		return choice{}, false
	}
	return choice{value: v, score: sure}, true
}

// matches reports whether a value has the type of a schema and is one of its choices.
func matches(s *schema.Schema, v any) bool {
	if len(s.Enum) > 0 && !slices.Contains(choices(s, maxEnum), fmt.Sprint(v)) {
		return false
	}
	switch v := v.(type) {
	case bool:
		return kindOf(s) == "boolean"
	case string:
		return kindOf(s) == "string"
	case float64:
		return kindOf(s) == "number" || kindOf(s) == "integer" && v == math.Trunc(v)
	}
	return kindOf(s) == "array" || kindOf(s) == "object"
}

// candidates returns what a parameter could be given.
func (l *filler) candidates(q param) (out []choice) {
	switch kind := kindOf(q.Schema); {
	case kind == "array":
		return l.lists(q)
	case kind == "object":
		return nil
	case kind == "boolean":
		return l.flags(q)
	case len(q.Enum) > 0:
		return l.choices(q)
	}
	for _, v := range l.a.values {
		out = l.take(out, q, v)
	}
	for _, v := range l.phrases {
		out = l.take(out, q, v)
	}
	if slices.Contains(q.stems, "currenc") || q.about["currenc"] && len(q.stems) == 1 && kindOf(q.Schema) == "string" {
		for _, m := range values.Enum(l.a.text, currencies) {
			before := strings.Fields(l.a.text[:m.Start])
			if m.End-m.Start == 1 && unicode.IsLetter(rune(l.a.text[m.Start])) {
				continue
			}
			if foreign := len(before) > 0 && unicode.IsUpper(rune(before[len(before)-1][0])) && strings.ToUpper(m.Choice) != l.a.text[m.Start:m.End]; l.a.covers(m.Start, m.End) && (!foreign || len(before) == 1) {
				v := values.Value{Cue: l.cueOf(m.Start)}
				out = append(out, choice{value: m.Choice, score: 3 + side(q, v), start: m.Start, end: m.End})
			}
		}
	}
	return append(out, l.references(q)...)
}

// currencies are the codes by which amounts of money are often asked for.
var currencies = strings.Fields("USD EUR GBP JPY CHF CNY INR CAD AUD SEK NOK DKK PLN")

// choices finds the choices of an enumeration that the question names.
func (l *filler) choices(q param) (out []choice) {
	texts := choices(q.Schema, maxEnum)
	for _, m := range values.Enum(l.a.text, texts) {
		quoted := func(v values.Value) bool {
			return v.Kind == values.Quotation && v.Start < m.Start && m.End < v.End && v.Text != l.a.text[m.Start:m.End]
		}
		if !l.a.covers(m.Start, m.End) || slices.ContainsFunc(l.a.values, quoted) {
			continue
		}
		var v any
		if json.Unmarshal(q.Enum[slices.Index(texts, m.Choice)], &v) == nil {
			c := choice{value: v, score: 3 + 0.5*l.cue(q, m.Start, m.End), start: m.Start, end: m.End, named: true}
			if search.IsStopWord(strings.ToLower(m.Choice)) {
				c.score -= 1.5
			}
			out = append(out, c)
		}
	}
	for i, text := range texts { // "PostgreSQL" for postgres
		for _, w := range l.a.words {
			if one := strings.ToLower(text); w.weight > 0 && len(one) >= 4 && len(w.lower) >= 4 && one != w.lower && (strings.HasPrefix(one, w.lower) || strings.HasPrefix(w.lower, one)) {
				var v any
				if json.Unmarshal(q.Enum[i], &v) == nil {
					out = append(out, choice{value: v, score: 2.2, start: w.start, end: w.end, named: true})
				}
			}
		}
	}
	if len(out) == 0 { // "remove" for delete
		var meant []int
		for i, text := range texts {
			if slices.ContainsFunc(l.a.verb, func(v string) bool { return sameGroup(v, search.Stem(strings.ToLower(text))) }) {
				meant = append(meant, i)
			}
		}
		var v any
		if len(meant) == 1 && json.Unmarshal(q.Enum[meant[0]], &v) == nil {
			out = append(out, choice{value: v, score: 2.5, named: true})
		}
	}
	for _, v := range l.a.values {
		out = l.take(out, q, v)
	}
	return out
}

// flagStems say in a flag's name that it is one; they need not be in the question.
var flagStems = stemSet("is has include with enable use only return show get should allow need want require do can flag option mode")

// flags finds where the question names a flag by the words of its name.
func (l *filler) flags(q param) (out []choice) {
	for _, v := range l.a.values {
		out = l.take(out, q, v)
	}
	hit, all, at := 0.0, 0.0, word{}
	for _, s := range q.stems {
		if flagStems[s] {
			continue
		}
		all++
		if i := slices.IndexFunc(l.a.words, func(w word) bool {
			return w.has(s) || slices.ContainsFunc(w.stems, func(o string) bool { return shortens(s, o) || shortens(o, s) })
		}); i >= 0 {
			hit++
			at = l.a.words[i]
		}
	}
	if hit == 0 || hit/all < 0.6 {
		return out
	}
	before := l.a.text[max(0, at.start-25):at.start]
	value := !slices.ContainsFunc(search.Words(before), func(w string) bool {
		return slices.Contains([]string{"no", "not", "without", "dont", "excluding", "ohne", "sans", "sin"}, w)
	})
	return append(out, choice{value: value, score: 1.5 + 0.5*hit, start: at.start, end: at.start})
}

// lists joins values that stand in a row.
func (l *filler) lists(q param) (out []choice) {
	if q.Items == nil {
		return nil
	}
	item := q
	item.Property.Schema = q.Items
	single := l.candidates(item)
	slices.SortStableFunc(single, func(a, b choice) int { return cmp.Compare(a.start, b.start) })
	for i, c := range single {
		row := choice{value: []any{c.value}, score: c.score - 0.3, start: c.start, end: c.end, named: c.named, unclear: c.unclear}
		out = append(out, row)
		elements := []any{c.value}
		for _, next := range single[i+1:] {
			if next.start < row.end || !joined(l.a.text[row.end:next.start]) {
				continue
			}
			elements = append(slices.Clone(elements), next.value)
			row.value, row.end, row.score = elements, next.end, max(row.score, next.score)+1.3
			out = append(out, row)
		}
	}
	return out
}

// joined reports whether what stands between two values makes them a list.
func joined(between string) bool {
	between = strings.ToLower(strings.Trim(between, " \"'`“”«»"))
	return slices.Contains([]string{",", "and", "or", ", and", ", or", "&", "und", "oder", "et", "ou", "y", "e", "o"}, between)
}

package rules

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"golang.org/x/text/language"

	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/internal/segment"
	"github.com/agenticnexus/agenticnexus/planner/rules/values"
)

// choices finds the choices of a parameter that the question names, also by another name or the meaning of a code.
func (l *filler) choices(q param) (out []choice) {
	add := func(value any, score float64, start, end int) {
		out = append(out, choice{value: value, score: score, start: start, end: end})
	}
	spoken := q.spoken()
	for _, m := range values.Enum(l.a.text, slices.Sorted(maps.Keys(spoken))) {
		score := chosen + choiceCue*l.cue(q, m.Start, m.End)
		if search.IsStopWord(strings.ToLower(m.Choice)) {
			score += stopChoice
		}
		if l.a.covers(m.Start, m.End) {
			add(spoken[m.Choice], score, m.Start, m.End)
		}
	}
	var meant []string
	verbIs := func(of string) bool {
		return slices.ContainsFunc(l.a.verb, func(v string) bool { return sameGroup(v, of) })
	}
	for _, text := range choices(q.Schema) {
		one := strings.ToLower(text)
		for _, w := range l.a.words { // "PostgreSQL" for postgres
			if w.weight > 0 && len(w.lower) >= 4 && (shortens(one, w.lower) && len(one) >= 4 || shortens(w.lower, one)) {
				add(spoken[text], choiceStart, w.start, w.end)
			}
			if l.a.lang != "en" && w.has(search.Stem(one)) && !slices.ContainsFunc(l.a.verb, w.has) {
				add(spoken[text], chosen, w.start, w.end) // "storniert" for cancelled
			}
		}
		if !verbIs(l.f.verb) && verbIs(search.Stem(one)) {
			meant = append(meant, text)
		}
	}
	if len(out) == 0 && len(meant) == 1 { // "remove" for delete, but not "show" for open
		add(spoken[meant[0]], choiceVerb, 0, 0)
	}
	return out
}

// coded is how descriptions name the meaning of a code: "1 for cleaning", "'2' represents an ironing service".
var coded = lazy(`['"]?\b(\d+|[A-Z][A-Z\d]{0,3})['"]? (?:for|represents|means|corresponds to|=|->)` +
	`(?: an?| the)? ['"]?(\pL[\pL -]*?)['"]?(?:[,;.)]| and | or |$)`)

// spoken are the values of a parameter by the names that a question may use: its choices, "Spanish" for es-ES, "London"
// for Europe/London, and without choices the meanings of the codes of its description.
func (q param) spoken() map[string]any {
	out := map[string]any{}
	for i, text := range choices(q.Schema) {
		var v any
		if json.Unmarshal(q.Enum[i], &v) != nil {
			continue
		}
		if _, name, ok := strings.Cut(text, "/"); ok {
			out[strings.ReplaceAll(name, "_", " ")] = v
		}
		if tag, err := language.Parse(text); err == nil && (q.about["languag"] || q.named("languag")) {
			base, _ := tag.Base()
			out[table().languages[base.String()]] = v
		}
		out[text] = v
	}
	found, count := coded().FindAllStringSubmatch(clip(q.Description, 600), -1), map[string]int{}
	for _, m := range found {
		for w := range strings.FieldsSeq(m[2]) {
			count[w]++
		}
	}
	for _, m := range found { // what all have in common tells nothing apart: "service"
		common := func(w string) bool { return len(found) > 1 && count[w] == len(found) }
		name := strings.Join(slices.DeleteFunc(strings.Fields(m[2]), common), " ")
		fitted, ok := (values.Value{Kind: values.Identifier, Text: m[1]}).Fit(q.Property)
		if ok && len(q.Enum) == 0 {
			out[name] = fitted.Value
		}
	}
	return out
}

// flags finds where the question names a flag by the words of its name.
func (l *filler) flags(q param) []choice {
	hit, all, at := 0.0, 0.0, word{}
	for _, s := range q.stems {
		i := slices.IndexFunc(l.a.words, func(w word) bool {
			return slices.ContainsFunc(w.stems, func(o string) bool { return o == s || shortens(s, o) || shortens(o, s) })
		})
		switch {
		case list("flag")[s]:
			continue
		case i >= 0:
			hit++
			at = l.a.words[i]
		}
		all++
	}
	if hit == 0 || hit/all < 0.6 {
		return nil
	}
	value := !slices.ContainsFunc(segment.Words(l.a.text[max(0, at.start-25):at.start]),
		func(w string) bool { return list("negators")[w] })
	return []choice{{value: value, score: flagged + flaggedWord*hit, start: at.start, end: at.start}}
}

// lists joins values that stand in a row.
func (l *filler) lists(q param) (out []choice) {
	if q.Items == nil {
		return nil
	}
	item, inside := q, *l
	item.Property.Schema = q.Items
	inside.texts = slices.DeleteFunc(slices.Clone(l.texts), func(v values.Value) bool { return v.Label == "rest" })
	single := inside.candidates(item)
	slices.SortStableFunc(single, func(a, b choice) int { return cmp.Compare(a.start, b.start) })
	for i, c := range single {
		row := c
		elements := []any{c.value}
		row.value, row.score = elements, c.score-lone
		out = append(out, row)
		for _, next := range single[i+1:] {
			if next.start < row.end || !joined().MatchString(l.between(q, row.end, next.start)) {
				continue
			}
			elements = append(slices.Clone(elements), next.value)
			row.value, row.end, row.score = elements, next.end, max(row.score, next.score)+listed
			out = append(out, row)
		}
	}
	return out
}

// between is what stands between two values, without the words that describe the parameter: "latitude 5 and longitude 6".
func (l *filler) between(q param, start, end int) string {
	text := l.a.text[start:end]
	for _, w := range l.a.words {
		if w.start >= start && w.end <= end && w.weight > 0 && q.about.any(w.stems) {
			text = strings.Replace(text, " "+l.a.text[w.start:w.end], "", 1)
		}
	}
	return text
}

// joined is what stands between two values of a list.
var joined = lazy("(?i)^[ \"'`“”«»]*(,|,? ?(and|or)|&|und|oder|et|ou|y|e|o)[ \"'`“”«»]*$")

// maxExcepting bounds the bytes before a value in which isExcepted looks.
const maxExcepting = 72

// Words that take what follows out of what is asked for: "everybody except Ann and Ben".
const exceptions = `(?i)(?:^|\PL)((?:except|excluding|besides|(?:apart|aside) from|other than|außer|ausgenommen|sauf|excepté|` +
	`hormis|excepto|salvo)(?: for)? `

var (
	excepting = lazy(exceptions + "(?:[^,;?!]{1,40} (?:and|or|und|oder|et|ou|y|o) )?[\"'`“«]*)$")
	exception = lazy(exceptions + `[^,;?!]{1,60}?)(?: (?:in|at|from|on|with|of)(?: .*)?|[,;?!].*)?$`)
)

// isExcepted reports whether a value is taken out of what is asked for.
func isExcepted(text string, v values.Value) bool {
	return excepting().MatchString(text[max(0, v.Start-maxExcepting):v.Start])
}

package rules

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/language"

	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/planner/rules/values"
)

// choices finds the choices of an enumeration that the question names.
func (l *filler) choices(q param) (out []choice) {
	texts := choices(q.Schema)
	add := func(text string, score float64, start, end int) {
		var v any
		if json.Unmarshal(q.Enum[slices.Index(texts, text)], &v) == nil {
			out = append(out, choice{value: v, score: score, start: start, end: end})
		}
	}
	aliases := q.aliases(texts)
	for _, m := range values.Enum(l.a.text, slices.Concat(texts, slices.Sorted(maps.Keys(aliases)))) {
		m.Choice = cmp.Or(aliases[m.Choice], m.Choice)
		score := chosen + choiceCue*l.cue(q, m.Start, m.End)
		if search.IsStopWord(strings.ToLower(m.Choice)) {
			score += stopChoice
		}
		if l.a.covers(m.Start, m.End) {
			add(m.Choice, score, m.Start, m.End)
		}
	}
	for _, text := range texts { // "PostgreSQL" for postgres
		for _, w := range l.a.words {
			one := strings.ToLower(text)
			if l.a.lang != "en" && w.has(search.Stem(one)) && !slices.ContainsFunc(l.a.verb, w.has) {
				add(text, chosen, w.start, w.end) // "storniert" for cancelled
			}
			if w.weight > 0 && len(w.lower) >= 4 && (shortens(one, w.lower) && len(one) >= 4 || shortens(w.lower, one)) {
				add(text, choiceStart, w.start, w.end)
			}
		}
	}
	verbIs := func(of string) bool {
		return slices.ContainsFunc(l.a.verb, func(v string) bool { return sameGroup(v, of) })
	}
	meant := func(text string) bool { // "remove" for delete, but not "show" for open
		return !verbIs(l.f.verb) && verbIs(search.Stem(strings.ToLower(text)))
	}
	if i := slices.IndexFunc(texts, meant); len(out) == 0 && i >= 0 && !slices.ContainsFunc(texts[i+1:], meant) {
		add(texts[i], choiceVerb, 0, 0)
	}
	return out
}

// aliases are other names of choices: "Spanish" for es-ES, "London" for Europe/London.
func (q param) aliases(choices []string) map[string]string {
	out := map[string]string{}
	for _, c := range choices {
		if _, name, ok := strings.Cut(c, "/"); ok {
			out[strings.ReplaceAll(name, "_", " ")] = c
		}
		if tag, err := language.Parse(c); err == nil && (q.about["languag"] || slices.Contains(q.stems, "languag")) {
			base, _ := tag.Base()
			if name := languageNames()[base.String()]; name != "" {
				out[name] = c
			}
		}
	}
	return out
}

// coded is how descriptions name the meaning of a code: "1 for cleaning", "'2' represents an ironing service".
var coded = regexp.MustCompile(`['"]?\b(\d+|[A-Z][A-Z\d]{0,3})['"]? (?:for|represents|means|corresponds to|=|->)` +
	`(?: an?| the)? ['"]?(\pL[\pL -]*?)['"]?(?:[,;.)]| and | or |$)`)

// codes finds the codes of a description whose meaning the question names.
func (l *filler) codes(q param) (out []choice) {
	codes, count := map[string]string{}, map[string]int{}
	found := coded.FindAllStringSubmatch(clip(q.Description, 600), -1)
	for _, m := range found {
		for w := range strings.FieldsSeq(m[2]) {
			count[w]++
		}
	}
	for _, m := range found { // what all have in common tells nothing apart: "service"
		common := func(w string) bool { return len(found) > 1 && count[w] == len(found) }
		own := slices.DeleteFunc(strings.Fields(m[2]), common)
		codes[strings.Join(own, " ")] = m[1]
	}
	for _, m := range values.Enum(l.a.text, slices.Sorted(maps.Keys(codes))) {
		if fitted, ok := (values.Value{Kind: values.Identifier, Text: codes[m.Choice]}).Fit(q.Property); ok && l.a.covers(m.Start, m.End) {
			score := chosen + choiceCue*l.cue(q, m.Start, m.End)
			out = append(out, choice{value: fitted.Value, score: score, start: m.Start, end: m.End})
		}
	}
	return out
}

var negators = strings.Fields("no not without dont excluding ohne sans sin")

// flags finds where the question names a flag by the words of its name.
func (l *filler) flags(q param) []choice {
	hit, all, at := 0.0, 0.0, word{}
	for _, s := range q.stems {
		i := slices.IndexFunc(l.a.words, func(w word) bool {
			return slices.ContainsFunc(w.stems, func(o string) bool { return o == s || shortens(s, o) || shortens(o, s) })
		})
		switch {
		case lists["flag"][s]:
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
	value := !slices.ContainsFunc(search.Words(l.a.text[max(0, at.start-25):at.start]),
		func(w string) bool { return slices.Contains(negators, w) })
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
			if next.start < row.end || !joined.MatchString(l.between(q, row.end, next.start)) {
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
var joined = regexp.MustCompile("(?i)^[ \"'`“”«»]*(,|,? ?(and|or)|&|und|oder|et|ou|y|e|o)[ \"'`“”«»]*$")

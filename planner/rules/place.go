package rules

import (
	"slices"
	"strings"
)

// place writes a location the way a parameter asks for: with the state or country where the
// parameter wants it and the question or common knowledge has it, without where only one is wanted.
func (f *filler) place(q param, m mention) (string, mention) {
	city, rest, span := m.text, "", m
	if head, tail, ok := strings.Cut(m.text, ","); ok {
		city, rest = strings.TrimSpace(head), strings.TrimSpace(tail)
	}
	for rest == "" && span.end+1 < len(f.r.tokens) && f.r.tokens[span.end].text == "," {
		o, ok := f.r.nameAt(span.end + 1)
		if !ok || o.kind != kindProper && o.kind != kindCode {
			break
		}
		rest = o.text
		span.end = o.end
	}
	if rest == "" && span.end+1 < len(f.r.tokens) && f.r.tokens[span.end].is("in") {
		if o, ok := f.r.nameAt(span.end + 1); ok && knownPlace(o.text) && !knownCity(o.text) {
			rest, span.end = o.text, o.end
		}
	}
	lower := strings.ToLower(city)
	has := func(stem string) bool {
		for _, s := range q.nameStems {
			if s == stem {
				return true
			}
		}
		return false
	}
	description := strings.ToLower(q.description)
	pair := wantsPair(description) || examplePair(q.examples)
	switch {
	case has("state") && places.states[lower] != "" && places.usCities[lower] == "" && !pair:
		return spellState(lower, q), m
	case has("state") && places.usCities[lower] != "" && !pair:
		return spellState(stateName(places.usCities[lower]), q), m
	case has("countri") && !pair:
		return f.country(q, city, rest), span
	case has("citi") && !pair && rest != "":
		return city, m
	case !pair && rest == "":
		return city, m
	}
	if rest == "" && pair {
		switch {
		case places.usCities[lower] != "" && (strings.Contains(description, "state") || places.cities[lower] == ""):
			return city + ", " + places.usCities[lower], m
		case places.cities[lower] != "":
			return city + ", " + places.cities[lower], m
		}
		return city, m
	}
	if code := places.states[strings.ToLower(rest)]; code != "" && pair {
		rest = code
	}
	return city + ", " + rest, span
}

// levelScore tells cities from states and countries, where a parameter wants one of them and the question has a pair
// ("Austin, Texas"): the first is the smaller.
func (f *filler) levelScore(q param, m mention) float64 {
	name := strings.ToLower(m.text)
	region := (places.states[name] != "" || places.countries[name] != "") && !knownCity(name)
	inRegion := false // "Quintana Roo, Mexico"
	if m.end+1 < len(f.r.tokens) && f.r.tokens[m.end].text == "," {
		o, ok := f.r.nameAt(m.end + 1)
		inRegion = ok && knownPlace(o.text)
	}
	wantsRegion := slices.Contains(q.nameStems, "state") || slices.Contains(q.nameStems, "countri")
	switch {
	case wantsRegion && inRegion:
		return -1
	case wantsRegion:
		return 0
	case inRegion && !knownPlace(m.text):
		return 2
	case region && (slices.Contains(q.nameStems, "citi") || m.start > 1 && f.r.tokens[m.start-1].text == "," && f.r.tokens[m.start-2].capital()):
		return -1.5
	}
	return 0
}

// wantsPair reports whether a description asks for a city with its state or country.
func wantsPair(description string) bool {
	for _, s := range []string{"city, state", "city and state", "city, country", "'city, ", "city and the state", "city and country", "city, st"} {
		if strings.Contains(description, s) {
			return true
		}
	}
	return false
}

func examplePair(examples []string) bool {
	for _, e := range examples {
		if i := strings.Index(e, ", "); i > 0 && i+4 >= len(e) {
			return true
		}
	}
	return false
}

func spellState(name string, q param) string {
	for _, e := range q.examples {
		if len(e) == 2 && strings.ToUpper(e) == e {
			return places.states[name]
		}
	}
	if strings.Contains(strings.ToLower(q.description), "abbrev") || strings.Contains(strings.ToLower(q.description), "code") {
		return places.states[name]
	}
	return title(name)
}

func stateName(code string) string {
	for name, c := range places.states {
		if c == code {
			return name
		}
	}
	return strings.ToLower(code)
}

// title writes a name with initial capitals.
func title(name string) string {
	words := strings.Fields(name)
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, " ")
}

func (f *filler) country(q param, city, rest string) string {
	name := city
	lower := strings.ToLower(city)
	switch {
	case rest != "" && places.countries[lower] == "":
		name = rest
	case places.demonyms[lower] != "":
		name = places.demonyms[lower]
	case places.cities[lower] != "":
		name = places.cities[lower]
	case places.usCities[lower] != "":
		name = "United States"
	}
	if strings.Contains(strings.ToLower(q.description), "code") {
		if code := places.countries[strings.ToLower(name)]; code != "" {
			return code
		}
	}
	return name
}

// nameAt returns the mention that begins at token i.
func (r reading) nameAt(i int) (mention, bool) {
	for _, m := range r.mentions {
		if m.start == i && m.kind != kindList {
			return m, true
		}
	}
	return mention{}, false
}

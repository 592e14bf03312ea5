package rules

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/search"
)

// proper returns what a name could give a string parameter.
func (f *filler) proper(q param, c class, m mention, score float64) []candidate {
	m = f.trim(q, m)
	if m.start == m.end {
		return nil
	}
	if m.end == m.start+1 && f.r.opensSentence(m.start) && f.explains(q, f.r.tokens[m.start]) {
		return nil // the verb of a request: "Ring the bell"
	}
	if m.end == m.start+1 && len(m.text) > 1 && strings.ToUpper(m.text) == m.text && f.explains(q, f.r.tokens[m.start]) {
		score -= 2 // an abbreviation that says which tool is meant: "send an SMS"
	}
	switch c {
	case classEmail, classURL:
		return nil
	case classID, classDate, classTime, classPath:
		score -= 0.5
	case classPlace:
		score += 1
		score += f.levelScore(q, m)
		switch {
		case personTitles[strings.TrimSuffix(f.r.tokens[m.start].lower, ".")]:
			score -= 3
		case slices.Contains(q.nameStems, "countri") && places.demonyms[strings.ToLower(m.text)] != "":
			score += 1.5
		case notPlace(m.text):
			score -= 2
		case knownPlace(m.text):
			score += 2
		case m.prep == "in" || m.prep == "near" || m.prep == "around":
			score += 1.4
		case placePreps[m.prep]:
			score += 0.7
		}
		text, span := f.place(q, m)
		if q.exemplifies(text) {
			score += 1
		}
		return []candidate{{text, score, span}}
	case classCurrency:
		if code := currencyCode(m.text); code != "" {
			return []candidate{{code, score + 3, m}}
		}
		if code := f.currencyAfter(m); code != "" {
			m.end++
			return []candidate{{code, score + 3, m}}
		}
		return nil
	case classLanguage:
		if places.demonyms[strings.ToLower(m.text)] == "" && languageCodes[strings.ToLower(m.text)] == "" {
			score--
		} else {
			score += 2
			if spelled := q.spellLanguage(m.text); spelled != m.text {
				return []candidate{{spelled, score, m}}
			}
		}
	default:
		score += 1.2
		if m.prep == "by" && slices.ContainsFunc(q.nameStems, func(s string) bool { return agents[s] }) {
			score += 1.5
		}
		if knownPlace(m.text) {
			score -= 0.7
		}
		if notPlace(m.text) && !q.exemplifies(m.text) {
			score -= 0.3
		}
	}
	if f.namesParam(q, m) {
		score += 1.5
	}
	if q.exemplifies(m.text) {
		return []candidate{{m.text, score + 1.5, m}}
	}
	out := []candidate{{m.text, score, m}}
	if long, ok := f.extended(q, m); ok && c != classLanguage {
		out = append(out, candidate{long.text, score + 0.3, long})
	}
	return out
}

// agents are who does or makes something: "by" stands before their names.
var agents = stems("artist author writer director composer performer singer band painter creator designer photographer publisher")

// extended is a name with the words in lower case that belong to it: "ATP synthase".
func (f *filler) extended(q param, m mention) (mention, bool) {
	end := m.end
	for end < len(f.r.tokens) && end < m.end+2 && !f.r.tokens[end].stop() && !f.explains(q, f.r.tokens[end]) && !digitAt(f.r.tokens[end].text, 0) {
		if _, ok := f.r.nameAt(end); !ok && end == m.end {
			break
		}
		end++
	}
	if end == m.end || strings.HasSuffix(f.r.tokens[m.end-1].text, "'s") {
		return m, false
	}
	m.end, m.text = end, f.r.between(m.start, end)
	return m, true
}

// namesParam reports whether a name contains the parameter's own word: "Premier League" for league.
func (f *filler) namesParam(q param, m mention) bool {
	for i := m.start; i < m.end; i++ {
		for _, s := range f.r.tokens[i].stems {
			if slices.Contains(q.nameStems, s) && f.paramsNamed(s) == 1 {
				return true
			}
		}
	}
	return false
}

// trim cuts words off the edges of a name that only say what it is the name of: the kind of thing that the
// tool is named after at the end ("Lasagna Recipe" for find_recipe), a request at the start.
func (f *filler) trim(q param, m mention) mention {
	if m.end-m.start < 2 {
		return m
	}
	start, end := m.start, m.end
	if t := f.r.tokens[end-1]; !q.exemplifies(m.text) && slices.ContainsFunc(t.stems, f.frame.after) {
		end--
	}
	if t := f.r.tokens[start]; end-start > 1 && f.labels(q, t) && search.RequestVerb(t.lower) {
		start++
	}
	if start == m.start && end == m.end {
		return m
	}
	m.start, m.end, m.text = start, end, f.r.between(start, end)
	return m
}

func (f *filler) labels(q param, t token) bool {
	return slices.ContainsFunc(t.stems, func(s string) bool { return slices.Contains(q.nameStems, s) || f.frame.words[s] })
}

var placePreps = set("in at near from to around for of")

package rules

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// text returns what a mention could give a string parameter.
func (f *filler) text(q param, m mention) []candidate {
	out := f.anyText(q, m)
	for i := range out {
		if s, ok := out[i].value.(string); ok && q.listed && !q.exemplifies(s) {
			out[i].score -= unlisted
		}
	}
	return out
}

// unlisted is what a value loses that a parameter's description does not list though it lists others.
const unlisted = 1.0

// anyText is text without regard to what the description lists.
func (f *filler) anyText(q param, m mention) []candidate {
	c := q.classOf()
	if m.kind == kindList && (c != classQuery || !f.topics(q, m)) {
		return nil
	}
	if f.isLabel(q, m) {
		return nil
	}
	score := f.cue(q, m) + roleScore(q, m)
	value := m.text
	switch m.kind {
	case kindDate:
		if c != classDate {
			if score < 2 {
				return nil
			}
			break
		}
		if !q.required && m.date.resolve(f.today) == f.today && todayByDefault.MatchString(q.description) {
			return nil
		}
		d := m.date.resolve(f.today)
		score += 3
		if d.month > 0 && d.year > 0 && d.relative == "" {
			value = d.format(q.description, q.format)
		}
	case kindTime:
		if c == classTime {
			score += 3
			value = m.clock(q.description)
		} else if c == classDate || score < 1.5 {
			return nil
		}
	case kindEmail:
		score += match(c == classEmail, 3, 0.8)
	case kindURL:
		score += match(c == classURL, 3, 0.8)
	case kindPath:
		score += match(c == classPath, 3, 1)
	case kindCode:
		if c == classURL || c == classEmail {
			return nil
		}
		score += match(c == classID, 2, 0.9)
	case kindQuoted:
		score += match(c == classDate || c == classEmail || c == classURL, 0.5, 1.8)
	case kindProper:
		return f.proper(q, c, m, score)
	case kindNumber:
		if c == classCurrency && m.number.currency != "" {
			return []candidate{{m.number.currency, 2 + sourceScore(q), f.r.unitSpan(m)}}
		}
		if telephone(q, m) {
			return []candidate{{m.text, score + 2, m}}
		}
		if c == classDate || c == classTime || c == classPlace || score < 1 && c != classID {
			return nil
		}
		value = f.quantityText(q, m)
		score -= 0.5
	case kindPhrase:
		return f.phrase(q, c, m)
	case kindFormula:
		if c != classExpression {
			return nil
		}
		score += 4
	case kindList:
		score += 2.2 + topicScore(q, m) // more than one of its items
	}
	switch c {
	case classCurrency:
		if code := currencyCode(value); code != "" {
			value, score = code, score+2
		}
	case classPlace:
		value, m = f.place(q, m)
	}
	if q.exemplifies(value) {
		score += 1.5
	}
	return []candidate{{value, score, m}}
}

// todayByDefault is how descriptions say that a date may be left out.
var todayByDefault = regexp.MustCompile(`(?i)\bdefaults?(?: value)?(?: is| to|:| =)? (?:the )?(?:current|today)`)

func (p param) exemplifies(value string) bool {
	return slices.ContainsFunc(p.examples, func(e string) bool { return strings.EqualFold(e, value) })
}

// examplesNamed finds example values of a string parameter that the question names: what a description
// lists is often all there is.
func (f *filler) examplesNamed(q param) []candidate {
	var out []candidate
	for i, e := range q.examples {
		if i == 12 || len(e) < 2 || strings.IndexFunc(e, unicode.IsLetter) < 0 {
			continue
		}
		if c, ok := f.naming(e); ok {
			c.value = e
			if !strings.EqualFold(c.span.text, e) {
				c.score -= 0.5
			}
			c.score += 0.5 + f.cue(q, c.span)*0.5
			out = append(out, c)
		}
	}
	return out
}

// quantityText is a number as text, with its unit where the parameter's examples have one.
func (f *filler) quantityText(q param, m mention) string {
	end := m.end
	if end == m.start+1 && m.number.unit != "" && end < len(f.r.tokens) && f.r.tokens[end].is(m.number.unit) {
		end++
	}
	for _, e := range q.examples {
		if digitAt(e, 0) && strings.ContainsAny(e, " ") {
			return strings.ReplaceAll(f.r.between(m.start, end), "-", " ")
		}
	}
	return strings.TrimSpace(m.text)
}

// isLabel reports whether a mention only names a parameter: "the ID" in "with the ID 'x'".
func (f *filler) isLabel(q param, m mention) bool {
	if m.kind == kindQuoted || m.kind == kindList || m.end-m.start > 2 || q.exemplifies(m.text) {
		return false
	}
	for i := m.start; i < m.end; i++ {
		for _, s := range f.r.tokens[i].stems {
			if !f.frame.labelStems[s] && s != "id" {
				return false
			}
		}
	}
	return true
}

func match(is bool, yes, no float64) float64 {
	if is {
		return yes
	}
	return no
}

// telephone reports whether a number is one to call: a parameter for one, and enough digits without a sign or separator.
func telephone(q param, m mention) bool {
	return len(m.text) >= 7 && allDigits(m.text) && slices.ContainsFunc(q.nameStems, func(s string) bool { return telephones[s] })
}

var telephones = stems("phone telephone mobile fax tel cell recipient")

// topics reports whether an enumeration joins things to search for, none of which only says which tool is meant: "finance
// and marketing", but not "reviews and offers" of a tool that finds offers.
func (f *filler) topics(q param, m mention) bool {
	return m.joined && !slices.ContainsFunc(m.items, func(item mention) bool {
		bare := f.unexplained(q, item)
		return item.kind != kindPhrase && item.kind != kindProper || bare.start != item.start || bare.end != item.end
	})
}

package rules

import (
	"math"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/search"
)

func (f *filler) numeric(q param, m mention) []candidate {
	if m.kind != kindNumber {
		return f.coded(q, m)
	}
	n := m.number
	score := 1 + f.cue(q, m)
	v := n.value
	switch {
	case n.percent:
		if q.share() {
			score++
		}
		if q.kind == "number" && !q.mentions("percent") && !q.mentions("percentag") && v <= 100 || q.maximum != nil && *q.maximum <= 1 {
			v = roundTo(v/100, 12)
		}
	case n.currency != "":
		if q.money() {
			score += 1.5
		} else {
			score -= 0.5
		}
	case n.unit != "":
		var s float64
		v, s = q.inUnit(v, n.unit)
		score += s
	case !n.spelled && v >= 1500 && v <= 2150 && n.integral() && !strings.Contains(m.text, ","):
		if slices.Contains(q.nameStems, "year") || slices.Contains(q.nameStems, "season") {
			score += 2
		} else {
			score--
		}
	}
	if n.ordinal {
		score--
	}
	if n.spelled {
		if f.r.countsItems(n) {
			return nil
		}
		score -= 0.2
		if n.unit != "" && unitOf(n.unit) == "" && q.measured() {
			score -= 0.9 // "two persons" are no kilograms
		}
	}
	score += roleScore(q, m)
	if q.kind == "integer" && v != math.Trunc(v) || q.minimum != nil && v < *q.minimum || q.maximum != nil && v > *q.maximum {
		return nil
	}
	return []candidate{{numberValue(q, v), score, m}}
}

func numberValue(q param, v float64) any {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return int64(v)
	}
	return v
}

func roundTo(v float64, digits int) float64 {
	p := math.Pow(10, float64(digits))
	if r := math.Round(v*p) / p; !math.IsInf(r, 0) && !math.IsNaN(r) {
		return r
	}
	return v
}

// countsItems reports whether a number only says how many things the question then lists: "two numbers,
// 36 and 48".
func (r reading) countsItems(n number) bool {
	digits := 0
	for _, m := range r.mentions {
		if m.kind == kindList && m.items[0].kind == kindNumber && float64(len(m.items)) == n.value {
			return true
		}
		if m.kind == kindNumber && !m.number.spelled {
			digits++
		}
	}
	return arities[n.unit] && digits > 0
}

var arities = set("numbers integers values digits variables coefficients points vectors sets sides")

// measured reports whether a parameter names the unit that it is measured in.
func (p param) measured() bool {
	return slices.ContainsFunc(convertible, func(u string) bool { return p.mentions(search.Stem(u)) })
}

// share reports whether a parameter is a rate or a part of a whole.
func (p param) share() bool {
	for _, s := range []string{"percent", "percentag", "rate", "ratio", "probabl", "probabil", "interest", "yield", "discount", "fraction", "share", "tax", "tip", "growth", "margin", "level"} {
		if p.mentions(s) {
			return true
		}
	}
	return false
}

// money reports whether a parameter is an amount of money.
func (p param) money() bool {
	for _, s := range []string{"price", "amount", "cost", "monei", "salari", "incom", "fee", "budget", "princip", "invest", "payment", "loan", "balanc", "dollar", "usd", "revenu", "valu", "spend", "rent", "debt", "deposit", "wage", "bill", "asset", "contribut", "earn", "profit", "total", "worth"} {
		if p.mentions(s) {
			return true
		}
	}
	return false
}

package rules

import (
	"regexp"
	"strconv"
	"strings"
)

const (
	numeral  = `[$€£]?\d(?:[\d,]*\d)?(?:\.\d+)?`
	percents = `\s*(?:%|percent|per cent)`
	several  = numeral + `(?:\s*,\s*` + numeral + `)*,?\s*(?:and|with)\s+` + numeral
	operator = `(?:[+*/^×÷-]|plus|minus|times|multiplied by|divided by|to the power of|modulo|x)`
)

var (
	shareOf   = regexp.MustCompile(`(?i)(` + numeral + `)` + percents + `\s+of\s+(` + numeral + `)`)
	shareOff  = regexp.MustCompile(`(?i)(` + numeral + `)` + percents + `\s+(?:off|discount on|less than)\s+(?:of\s+)?(` + numeral + `)`)
	shareMore = regexp.MustCompile(`(?i)\b(increase|raise|grow|decrease|reduce|lower|cut|discount)s?\s+(` + numeral + `)\s+by\s+(` + numeral + `)` + percents)
	sumOf     = regexp.MustCompile(`(?i)\b(?:add|add up|sum(?: up)?|(?:sum|total) of)\s+(` + several + `)`)
	productOf = regexp.MustCompile(`(?i)\b(?:multiply|product of)\s+(` + several + `|` + numeral + `\s+by\s+` + numeral + `)`)
	quotient  = regexp.MustCompile(`(?i)\bdivide\s+(` + numeral + `)\s+by\s+(` + numeral + `)`)
	takenFrom = regexp.MustCompile(`(?i)\bsubtract\s+(` + numeral + `)\s+from\s+(` + numeral + `)`)
	oneNumber = regexp.MustCompile(numeral)
	rootOf    = regexp.MustCompile(`(?i)square root of\s+(` + numeral + `)`)
	factorial = regexp.MustCompile(`(?i)(?:factorial of\s+(\d+)|(\d+)\s+factorial)`)
	infix     = regexp.MustCompile(`(?i)(?:sqrt|sin|cos|tan|log|ln|abs|exp)?\(*-?` + numeral + `\)*(?:\s*` + operator + `\s*(?:sqrt|sin|cos|tan|log|ln|abs|exp)?\(*-?` + numeral + `\)*)+`)
	function  = regexp.MustCompile(`(?i)(?:sqrt|sin|cos|tan|log|ln|abs|exp)\(` + numeral + `\)`)
	asksSum   = regexp.MustCompile(`(?i)(?:calculate|compute|evaluate|solve|what is|what's|whats|how much is|result of|value of)\s*:?\s*$`)
)

// formulas finds calculations spelled out in the question and writes them as expressions: "15% of
// $2500" becomes "2500 * 0.15".
func (r reading) formulas() []mention {
	var out []mention
	add := func(at []int, expression string) {
		start, end := r.tokensAt(at[0], at[1])
		m := mention{kind: kindFormula, start: start, end: end, text: expression}
		for _, o := range out {
			if o.overlaps(m) {
				return
			}
		}
		if start < end {
			out = append(out, m)
		}
	}
	group := func(m []int, i int) string { return r.text[m[2*i]:m[2*i+1]] }
	for _, m := range shareOf.FindAllStringSubmatchIndex(r.text, 8) {
		add(m, plain(group(m, 2))+" * "+fraction(group(m, 1), 0))
	}
	for _, m := range shareOff.FindAllStringSubmatchIndex(r.text, 8) {
		add(m, plain(group(m, 2))+" * "+fraction(group(m, 1), -1))
	}
	for _, m := range shareMore.FindAllStringSubmatchIndex(r.text, 8) {
		direction := 1.0
		switch strings.ToLower(group(m, 1)) {
		case "decrease", "reduce", "lower", "cut", "discount":
			direction = -1
		}
		add(m, plain(group(m, 2))+" * "+fraction(group(m, 3), direction))
	}
	joined := func(m []int, sign string) string {
		return plain(strings.Join(oneNumber.FindAllString(group(m, 1), 40), sign))
	}
	for _, m := range sumOf.FindAllStringSubmatchIndex(r.text, 8) {
		add(m, joined(m, " + "))
	}
	for _, m := range productOf.FindAllStringSubmatchIndex(r.text, 8) {
		add(m, joined(m, " * "))
	}
	for _, m := range quotient.FindAllStringSubmatchIndex(r.text, 8) {
		add(m, plain(group(m, 1))+" / "+plain(group(m, 2)))
	}
	for _, m := range takenFrom.FindAllStringSubmatchIndex(r.text, 8) {
		add(m, plain(group(m, 2))+" - "+plain(group(m, 1)))
	}
	for _, m := range rootOf.FindAllStringSubmatchIndex(r.text, 8) {
		add(m, "sqrt("+plain(group(m, 1))+")")
	}
	for _, m := range factorial.FindAllStringSubmatchIndex(r.text, 8) {
		i := 1
		if m[2] < 0 {
			i = 2
		}
		add(m, "factorial("+group(m, i)+")")
	}
	for _, m := range infix.FindAllStringIndex(r.text, 8) {
		if s := r.text[m[0]:m[1]]; r.calculates(s, m[0]) {
			add(m, operators.Replace(strings.ToLower(s)))
		}
	}
	for _, m := range function.FindAllStringIndex(r.text, 8) {
		add(m, r.text[m[0]:m[1]])
	}
	return out
}

// calculates reports whether text that looks like a calculation is one: not a date, a range or a
// number with dashes.
func (r reading) calculates(s string, at int) bool {
	if strings.ContainsAny(s, "+*^×÷") || strings.ContainsAny(s, " ") {
		return strings.Count(s, "(") == strings.Count(s, ")")
	}
	return asksSum.MatchString(r.text[:at]) && strings.Count(s, "-")+strings.Count(s, "/") == 1
}

var operators = strings.NewReplacer("multiplied by", "*", "divided by", "/", "to the power of", "^", "plus", "+", "minus", "-", "times", "*",
	"modulo", "%", "×", "*", "÷", "/", "x", "*", "$", "", "€", "", "£", "", ",", "")

// plain is a numeral without its currency sign and thousands separators.
func plain(s string) string {
	return strings.NewReplacer("$", "", "€", "", "£", "", ",", "").Replace(s)
}

// fraction is a percentage as a factor: 0.15, or with a direction 1.15 or 0.85.
func fraction(percent string, direction float64) string {
	v, err := strconv.ParseFloat(plain(percent), 64)
	if err != nil {
		return "0"
	}
	v /= 100
	if direction != 0 {
		v = 1 + direction*v
	}
	return strconv.FormatFloat(roundTo(v, 12), 'f', -1, 64)
}

// tokensAt returns the tokens that lie in a range of bytes.
func (r reading) tokensAt(from, to int) (int, int) {
	start, end := len(r.tokens), 0
	for i, t := range r.tokens {
		if t.end > from && t.start < to {
			start, end = min(start, i), max(end, i+1)
		}
	}
	return start, end
}

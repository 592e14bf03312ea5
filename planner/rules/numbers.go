package rules

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// number is a quantity as the question states it.
type number struct {
	value    float64
	percent  bool
	currency string // ISO code, "" if none
	unit     string // the word after it, such as "hours", or "" if none
	ordinal  bool
	spelled  bool // written as a word
}

func (n number) integral() bool { return n.value == math.Trunc(n.value) && math.Abs(n.value) < 1e15 }

var smallNumbers = map[string]float64{
	"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11,
	"twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20,
	"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "dozen": 12, "half": 0.5, "quarter": 0.25,
}

var multipliers = map[string]float64{
	"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "k": 1e3, "m": 1e6, "bn": 1e9, "b": 1e9, "lakh": 1e5, "crore": 1e7,
}

var currencySigns = map[rune]string{'$': "USD", '€': "EUR", '£': "GBP", '¥': "JPY", '₹': "INR"}

// numbers finds quantities with their units, written in digits or words.
func (r reading) numbers() []mention {
	var out []mention
	for i := 0; i < len(r.tokens); {
		m, ok := r.numberAt(i)
		if !ok {
			i++
			continue
		}
		out = append(out, m)
		i = m.end
	}
	return out
}

func (r reading) numberAt(i int) (mention, bool) {
	n, end, ok := r.digitsAt(i)
	if !ok {
		n, end, ok = r.spelledAt(i)
	}
	if !ok {
		n, end, ok = r.impliedAt(i)
	}
	if !ok {
		return mention{}, false
	}
	if end < len(r.tokens) && n.unit == "" {
		n, end = r.withMultiplier(n, end)
	}
	n.value, end = r.hemisphere(n, end)
	number, stop := r.withUnit(n, end)
	number.value, stop = r.hemisphere(number, stop)
	return mention{kind: kindNumber, start: i, end: stop, text: r.between(i, end), number: number}, true
}

// hemisphere gives a coordinate its sign: "119.5 W" and "33.9 degrees south" are negative.
func (r reading) hemisphere(n number, end int) (float64, int) {
	if end >= len(r.tokens) || !r.geographic() {
		return n.value, end
	}
	switch t := r.tokens[end]; {
	case t.text == "S", t.text == "W", t.is("south", "west") && unitOf(n.unit) == "degree":
		return -math.Abs(n.value), end + 1
	case t.text == "N", t.text == "E", t.is("north", "east") && unitOf(n.unit) == "degree":
		return n.value, end + 1
	}
	return n.value, end
}

// geographic reports whether a question speaks of coordinates: else "5 W" is a power.
func (r reading) geographic() bool {
	return slices.ContainsFunc(r.tokens, func(t token) bool {
		return t.is("latitude", "longitude", "lat", "lon", "lng", "coordinates", "coordinate")
	})
}

// digitsAt reads a token such as 1,250.5, -3, $20, 15%, 72km, 3rd or 10-year.
func (r reading) digitsAt(i int) (number, int, bool) {
	var n number
	s := r.tokens[i].text
	sign := 1.0
	for s != "" {
		c := []rune(s)[0]
		if cur, ok := currencySigns[c]; ok && n.currency == "" {
			n.currency = cur
			s = s[len(string(c)):]
			continue
		}
		if (c == '-' || c == '+') && len(s) > 1 {
			if c == '-' {
				sign = -1
			}
			s = s[1:]
			continue
		}
		break
	}
	j := 0
	for j < len(s) && (s[j] >= '0' && s[j] <= '9' || (s[j] == ',' || s[j] == '.') && digitAt(s, j+1)) {
		j++
	}
	if j == 0 || j > 30 {
		return n, 0, false
	}
	digits := strings.ReplaceAll(s[:j], ",", "")
	rest := s[j:]
	if len(rest) > 2 && (rest[0] == 'e' || rest[0] == 'E') {
		if v, err := strconv.ParseFloat(digits+rest, 64); err == nil {
			n.value = sign * v
			return n, i + 1, true
		}
	}
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return n, 0, false
	}
	n.value = sign * v
	switch tail := strings.ToLower(strings.TrimLeft(rest, "-")); {
	case tail == "":
	case tail == "%":
		n.percent = true
	case tail == "st" || tail == "nd" || tail == "rd" || tail == "th":
		n.ordinal = true
	case strings.HasPrefix(tail, "/") && allDigits(tail[1:]):
		d, _ := strconv.ParseFloat(tail[1:], 64)
		if d == 0 {
			return n, 0, false
		}
		n.value /= d
	case multipliers[tail] > 0 && len(tail) <= 2 && (n.currency != "" || rest == "k" || tail == "bn"):
		n.value *= multipliers[tail]
	case currencySigns[[]rune(tail)[0]] != "":
		n.currency = currencySigns[[]rune(tail)[0]]
	case unitOf(tail) != "":
		n.unit = tail
	case len(tail) <= 12 && isWord(tail) && rest[0] == '-':
		n.unit = tail
	case len(tail) <= 2 && !unicode.IsDigit(rune(tail[0])) && isWord(tail):
		n.unit = tail
	default:
		return n, 0, false
	}
	return n, i + 1, true
}

func allDigits(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

func isWord(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && r != '-' && r != '°' }) < 0
}

// spelledAt reads number words: "twenty-five", "three hundred", "a dozen".
func (r reading) spelledAt(i int) (number, int, bool) {
	total, current := 0.0, 0.0
	j := i
	for ; j < len(r.tokens) && j < i+8; j++ {
		w := r.tokens[j].lower
		if w == "and" && j > i && j+1 < len(r.tokens) && current >= 100 && smallNumber(r.tokens[j+1].lower) > 0 {
			continue
		}
		if v := smallNumber(w); v >= 0 {
			current += v
		} else if m := multipliers[w]; m > 0 && len(w) > 2 && j > i {
			current = max(current, 1) * m
			if m >= 1000 {
				total += current
				current = 0
			}
		} else {
			break
		}
	}
	if j == i {
		if first, rest, ok := strings.Cut(r.tokens[i].lower, "-"); ok && smallNumber(first) > 0 && isWord(rest) {
			return number{value: smallNumber(first), unit: rest, spelled: true}, i + 1, true
		}
		return number{}, 0, false
	}
	if j == i+1 && r.tokens[i].is("one", "half", "quarter") && !r.unitFollows(j) {
		return number{}, 0, false
	}
	return number{value: total + current, spelled: true}, j, true
}

// frequencies are how often a year an adverb means.
var frequencies = map[string]float64{"yearly": 1, "annually": 1, "semiannually": 2, "quarterly": 4, "monthly": 12, "weekly": 52, "daily": 365}

// impliedAt reads quantities that are not counted out: "next month", "past decade", "every hour",
// "compounded monthly".
func (r reading) impliedAt(i int) (number, int, bool) {
	t := r.tokens[i]
	if v := frequencies[t.lower]; v > 0 && i > 0 && strings.HasSuffix(r.tokens[i-1].lower, "ed") {
		return number{value: v, unit: "times", spelled: true}, i + 1, true
	}
	if !t.is("next", "past", "last", "every", "coming", "previous") || i+1 >= len(r.tokens) {
		return number{}, 0, false
	}
	switch unit := r.tokens[i+1]; unit.lower {
	case "decade":
		return number{value: 10, unit: "years", spelled: true}, i + 2, true
	case "hour", "day", "week", "month", "year":
		return number{value: 1, unit: unit.lower, spelled: true}, i + 2, true
	}
	return number{}, 0, false
}

// unitFollows reports whether token j names what was counted.
func (r reading) unitFollows(j int) bool {
	return j < len(r.tokens) && !r.tokens[j].stop()
}

// smallNumber is the value of a number word below a hundred, or -1.
func smallNumber(w string) float64 {
	if v, ok := smallNumbers[w]; ok {
		return v
	}
	if tens, ones, ok := strings.Cut(w, "-"); ok {
		t, ok1 := smallNumbers[tens]
		o, ok2 := smallNumbers[ones]
		if ok1 && ok2 && t >= 20 && o < 10 {
			return t + o
		}
	}
	return -1
}

func (r reading) withMultiplier(n number, end int) (number, int) {
	w := r.tokens[end].lower
	if m := multipliers[w]; m > 0 && len(w) > 2 && !n.percent && !n.spelled {
		n.value *= m
		return n, end + 1
	}
	return n, end
}

// withUnit attaches the unit, per cent sign or currency that follows a number and returns the token
// after what belongs to the number.
func (r reading) withUnit(n number, end int) (number, int) {
	if end >= len(r.tokens) || n.unit != "" || n.percent {
		return n, end
	}
	t := r.tokens[end]
	switch {
	case t.is("percent", "percentage", "%") || t.is("per") && end+1 < len(r.tokens) && r.tokens[end+1].is("cent"):
		n.percent = true
		return n, end + 1
	case currencies[t.lower] != "" && n.currency == "":
		n.currency = currencies[t.lower]
		return n, end
	case unitOf(t.lower) != "":
		n.unit = t.lower
		return n, end + 1
	case !t.stop():
		n.unit = t.lower
	}
	return n, end
}

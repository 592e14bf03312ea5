package values

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"sync"
)

// maxDigits bounds the numbers that are read; longer ones are identifiers.
const maxDigits = 18

func rat(s string) *big.Rat {
	if n, ok := new(big.Rat).SetString(s); ok {
		return n
	}
	return new(big.Rat)
}

func times(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }

// decimal writes a number exactly, or with 12 digits after the point if it has no end or too many.
func decimal(n *big.Rat) json.Number {
	digits, exact := n.FloatPrec()
	if !exact || digits > 2*maxDigits {
		digits = 12
	}
	text := n.FloatString(digits)
	if digits > 0 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return json.Number(text)
}

// A numeral is digits, with marks between thousands and before decimals.
const numeral = `^(?:\d{1,3}(?:(?:,\d{3})+|(?:\.\d{3})+|(?:['’\x{a0}\x{202f}%s]\d{3})+)|\d+)(?:[.,]\d+)?` +
	`(?:[eE][+-]?\d{1,2})?`

var (
	numerals = map[bool]func() *regexp.Regexp{false: longest(""), true: longest(" ")} // whether spaces separate thousands
	fraction = Lazy(`^\d{1,4}/\d{1,4}`)
	spaced   = Lazy(`^\d{1,3}(?: \d{3})+,\d+`)
	marks    = strings.NewReplacer(".", "", ",", "")
	spacing  = strings.NewReplacer("'", "", "’", "", " ", "", "\u00a0", "", "\u202f", "")
)

func longest(space string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp {
		form := regexp.MustCompile(fmt.Sprintf(numeral, space))
		form.Longest()
		return form
	})
}

// shape matches a pattern at token i and returns the token after it, 0 if it ends inside of one.
func (r *scanner) shape(i int, form func() *regexp.Regexp) (text string, next int) {
	start := r.tok(i).start
	text = form().FindString(r.text[start:min(start+4*maxDigits, len(r.text))])
	for next = i; r.tok(next).start < start+len(text); next++ {
	}
	if text == "" || r.tok(next-1).end != start+len(text) {
		return "", 0
	}
	return text, next
}

// digits reads a number in digits. The other reading is nil if there is one only.
func (r *figures) digits(i int) (n, other *big.Rat, next int) {
	word := r.tok(i-1).kind == 'w' && !(r.is(i-1, "unit") && r.tight(i-1, 'w')) // not 2h30
	clock := r.mark(i-1, ":") && r.tok(i-2).kind == 'd'
	if t := r.tok(i); t.kind != 'd' || t.size() > maxDigits || !t.gap && (word || clock) {
		return nil, nil, 0
	}
	if text, next := r.shape(i, fraction); next > 0 && r.ends(next) {
		if n := rat(text); n.Cmp(rat("1")) < 0 {
			return n, nil, next
		}
	}
	_, spaces := r.shape(i, spaced)
	text, next := r.shape(i, numerals[r.Language == "fr" || spaces > 0])
	if next == 0 || len(text) > 2*maxDigits || r.mark(next, ".'") && r.tight(next+1, 'd') && !r.tok(next).gap {
		return nil, nil, 0 // a version, an address
	}
	bracket := strings.LastIndexAny(r.text[:r.tok(i).start], "[(") > strings.LastIndexAny(r.text[:r.tok(i).start], "])")
	list := (r.Language == "en" || bracket) && spacing.Replace(text) == text
	grouping := !bracket
	text = spacing.Replace(text)
	last := strings.LastIndexAny(text, ".,")
	if last < 0 {
		return rat(text), nil, next
	}
	before, after, mark := text[:last], text[last+1:], text[last:last+1]
	whole, broken := rat(marks.Replace(text)), rat(marks.Replace(before)+"."+after)
	several, grouped := strings.Contains(before, mark), grouping && len(after) == 3 && len(before) <= 3 && before != "0"
	money := r.is(i-1, "currency") || r.is(next, "currency")
	switch {
	case several && grouping && len(after) == 3:
		return whole, nil, next
	case mark == "." && several:
		return nil, nil, 0
	case mark == "," && (several || list && !grouped && !money && !strings.Contains(before, ".")): // a list
		return rat(r.tok(i).fold), nil, i + 1
	case !grouped:
		return broken, nil, next
	case r.Language+mark == "en," || r.Language+mark == "de.":
		return whole, nil, next
	case r.Language+mark == "en." && !money:
		return broken, nil, next
	case mark == "." && r.Language != "en":
		return whole, broken, next
	}
	return broken, whole, next
}

// spelled reads a number in words, unless they stand for something else: "this one", "un fichier".
func (r *figures) spelled(i int) (*big.Rat, int) {
	var total, current, last int64
	end, j := i, i
	for words := 0; words < 12 && total < 1e15; words++ {
		if words > 0 {
			j = r.skip(end, "hyphen")
			if and := r.skip(j, "and"); last >= 100 || last >= 20 && r.Language != "en" {
				j = r.skip(and, "hyphen")
			}
		}
		parts, next := r.parts(j)
		room := int64(1)
		for ; room < 1000 && current%(10*room) == 0; room *= 10 {
		}
		if parts == nil {
			break
		}
		p := parts[0]
		follows := p >= 1000 && last < p || p == 100 && last < 100 ||
			p > 0 && p != 100 && (current == 0 || p < room && last >= 20)
		if words > 0 && (r.tok(j).stop || !follows) {
			break
		}
		for _, last = range parts {
			switch {
			case last >= 1000:
				total, current = total+max(current, 1)*last, 0
			case last == 100:
				current += max(current%100, 1)*100 - current%100
			default:
				current += last
			}
		}
		end = next
	}
	article := r.is(i, "one") && !r.unitAt(i+1) || r.tok(i).fold == "one" && r.is(i-1, "article", "other")
	if end == i || end == i+1 && article {
		return nil, 0
	}
	return new(big.Rat).SetInt64(total + current), end
}

// parts returns the numbers that a word is made of: fünf, und, zwanzig.
func (r *figures) parts(i int) (out []int64, next int) {
	for _, class := range []string{"number", "scale"} {
		if means, next := r.match(i, class); next > 0 {
			return []int64{int64(atoi(means))}, next
		}
	}
	for rest := r.tok(i).fold; rest != ""; {
		end := min(len(rest), 12)
		for ; end > 0; end-- {
			if p := r.words["morpheme"][rest[:end]]; p != nil {
				out = append(out, int64(atoi(p[0].means)))
				break
			}
		}
		if end == 0 {
			return nil, 0
		}
		rest = rest[end:]
	}
	if len(out) < 2 {
		return nil, 0
	}
	return out, i + 1
}

// number reads a number in digits or words with its sign and what multiplies it, once for each token.
func (r *figures) number(i int, c *capture) int {
	known, ok := r.numbers[i]
	if !ok {
		known.next = r.readNumber(i, &known)
		r.numbers[i] = known
	}
	c.n, c.other = known.n, known.other
	return known.next
}

func (r *figures) readNumber(i int, c *capture) (next int) {
	j, factor := i, rat("1")
	signed := r.mark(i, "-−") && r.tight(i+1, 'd') && (r.tok(i).gap || r.mark(i-1, "=:([,") || r.is(i-1, "currency"))
	if signed || r.is(i, "minus") && r.tok(i-1).kind != 'd' && !r.is(i-1, "number") {
		j, factor = i+1, rat("-1")
	}
	if c.n, c.other, next = r.digits(j); c.n == nil {
		c.n, next = r.spelled(j)
	}
	if means, after := r.match(j, "half"); c.n == nil && after > 0 { // half an hour, half a million
		if after = r.skip(after, "one"); r.unitAt(after) || r.is(after, "scale") {
			c.n, next = rat(means), after
		}
	} else if k := r.skip(j, "one"); c.n == nil && k > j { // an hour, a dozen, a quarter hour
		means, after := r.match(k, "half")
		if after = r.skip(after, "dash"); r.is(k, "scale") {
			c.n, next = r.spelled(k)
		} else if r.unitAt(k) || r.is(k, "short") {
			c.n, next = rat("1"), k
		} else if r.unitAt(after) && after > 0 {
			c.n, next = rat(means), after
		}
	}
	if c.n == nil {
		return 0
	}
	if half, after := r.match(next, "andhalf"); after > 0 && !r.is(next, "minutes") {
		c.n, next = new(big.Rat).Add(c.n, rat(half)), after
	}
	short := r.tok(next)
	if means, after := r.match(next, "scale"); after > 0 {
		factor, next = times(factor, rat(means)), after
	} else if means, after := r.match(next, "short"); after > 0 && (!short.gap || len(short.fold) > 1) {
		if short.upper && means == "1000" && !r.is(i-1, "currency") { // 298K may be kelvin
			c.other = times(c.n, rat("1/1000"))
		}
		factor, next = times(factor, rat(means)), after
		if r.mark(next, ".") && (!r.tok(next+1).stop || r.is(next+1, "currency")) {
			next++ // 3 Mio. Euro
		}
	} else if means, after := r.match(next, "zeros"); after > 0 && r.is(i-1, "currency") && r.ends(after) {
		factor, next = times(factor, rat(means)), after
	}
	if c.n = times(c.n, factor); c.other != nil {
		c.other = times(c.other, factor)
	}
	return next
}

// unitAt reports whether a unit in full stands at token i.
func (r *figures) unitAt(i int) bool { return r.is(i, "unit") && len(r.tok(i).fold) > 1 }

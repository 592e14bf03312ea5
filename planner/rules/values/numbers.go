package values

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
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

// decimal writes a number with up to 12 digits after the point.
func decimal(n *big.Rat) json.Number {
	if n.IsInt() {
		return json.Number(n.Num().String())
	}
	return json.Number(strings.TrimRight(strings.TrimRight(n.FloatString(12), "0"), "."))
}

// digits reads a number in digits. The other reading is nil if there is one only.
func (r *reader) digits(i int) (n, other *big.Rat, next int) {
	inside := r.tok(i-1).kind == 'w' && !r.is(i-1, "p", "pt") && !(r.is(i-1, "unit") && r.tight(i-1, 'w')) || r.mark(i-1, ":") && r.tok(i-2).kind == 'd' // but P1D, 2h30
	if t := r.tok(i); t.kind != 'd' || t.end-t.start > maxDigits || !t.gap && inside {
		return nil, nil, 0
	}
	groups, marks, next := r.groups(i)
	last := len(groups) - 1
	if len(strings.Join(groups, "")) > 2*maxDigits {
		return nil, nil, 0
	}
	whole := rat(strings.Join(groups, ""))
	switch mark := marks[max(last-1, 0)]; {
	case last == 0:
		n = whole
		if r.mark(next, "/") && !r.tok(next).gap && r.tight(next+1, 'd') && r.tok(next+1).end-r.tok(next+1).start <= 4 && r.ends(next+2) {
			if d := rat(r.tok(next + 1).fold); d.Cmp(n) > 0 {
				return new(big.Rat).Quo(n, d), nil, next + 2
			}
		}
	case thousands(groups, marks):
		if n = whole; last == 1 && (mark == "." || mark == ",") {
			n, other = r.single(groups, mark, r.is(i-1, "currency") || r.is(next, "currency"))
		}
	case (mark == "." || mark == ",") && thousands(groups[:last], marks) && (last == 1 || mark != marks[0]):
		if last == 1 && mark == "," && r.Language == "en" && !r.is(i-1, "currency") && !r.is(next, "currency") {
			return rat(groups[0]), nil, i + 1 // a list
		}
		n = rat(strings.Join(groups[:last], "") + "." + groups[last])
	case mark == "." || mark == "'":
		return nil, nil, 0 // a version, an address
	default:
		return rat(groups[0]), nil, i + 1
	}
	if e := r.tok(next); e.fold == "e" && !e.gap {
		j := next + 1
		if r.mark(j, "+-") {
			j++
		}
		if power := r.tok(j); r.tight(j, 'd') && power.end-power.start < 3 {
			return times(n, rat("1"+r.text[e.start:power.end])), nil, j + 1
		}
	}
	return n, other, next
}

// groups reads digits that points, commas, apostrophes or single spaces separate. There is a mark after each group.
func (r *reader) groups(i int) (groups, marks []string, next int) {
	for next = i; len(groups) < 8; {
		groups = append(groups, r.tok(next).fold)
		mark, space := r.tok(next+1), r.text[r.tok(next).end:r.tok(next+1).start]
		switch {
		case r.mark(next+1, ".,'") && !mark.gap && r.tight(next+2, 'd'):
			marks, next = append(marks, mark.fold), next+2
			continue
		case mark.kind == 'd' && mark.end-mark.start == 3 && len(groups[0]) <= 3 &&
			(space == "\u00a0" || space == "\u202f" || space == " " && (r.Language == "fr" || r.mark(next+2, ",") && r.tight(next+3, 'd'))):
			marks, next = append(marks, " "), next+1
			continue
		}
		break
	}
	return groups, append(marks, ""), next + 1
}

// thousands reports whether one mark groups digits by three.
func thousands(groups, marks []string) bool {
	for i, group := range groups[1:] {
		if marks[i] != marks[0] || len(group) != 3 {
			return false
		}
	}
	return len(groups) == 1 || len(groups[0]) <= 3 && groups[0] != "0"
}

// single reads a number with one mark before three digits.
func (r *reader) single(groups []string, mark string, money bool) (n, other *big.Rat) {
	whole, broken := rat(groups[0]+groups[1]), rat(groups[0]+"."+groups[1])
	switch r.Language + mark {
	case "en,", "de.":
		return whole, nil
	case "en.":
		if money {
			return broken, whole
		}
		return broken, nil
	case "fr.", "es.":
		return whole, broken
	}
	return broken, whole
}

// spelled reads a number in words, unless they stand for something else: "this one", "un fichier".
func (r *reader) spelled(i int) (*big.Rat, int) {
	var total, current, last int64
	next := i
	for words, j := 0, i; words < 12 && total < 1e15; words++ {
		if words > 0 {
			if r.mark(j, "-") {
				j++
			}
			if and := r.skip(j, "and"); and > j && (last >= 100 || last >= 20 && r.Language != "en") {
				j = and
				if r.mark(j, "-") {
					j++
				}
			}
		}
		parts := r.parts(j)
		if parts == nil || words > 0 && (r.tok(j).stop || !r.follows(current, last, parts[0])) {
			break
		}
		for _, p := range parts {
			switch {
			case p >= 1000:
				total, current = total+max(current, 1)*p, 0
			case p == 100 || p == 20 && current%100 == 4 && r.Language == "fr":
				current += max(current%100, 1)*p - current%100
			default:
				current += p
			}
			last = p
		}
		j++
		next = j
	}
	if next == i || next == i+1 && (r.is(i, "one") && !r.unitAt(i+1) || r.tok(i).fold == "one" && r.is(i-1, "article", "other")) {
		return nil, 0
	}
	return new(big.Rat).SetInt64(total + current), next
}

// follows reports whether a number word continues a number: "hundred five" and "twenty five", not "five twenty".
func (r *reader) follows(current, last, part int64) bool {
	room := int64(1)
	for _, unit := range []int64{10, 100, 1000} {
		if current%unit == 0 {
			room = unit
		}
	}
	switch {
	case part >= 1000:
		return last < part
	case part == 100:
		return last < 100
	case r.Language == "fr" && (last == 60 || last == 20 && current%100 == 80 || part == 20 && current%100 == 4):
		return part <= 20
	case r.Language == "fr" && last == 10:
		return part >= 7 && part <= 9
	}
	return part > 0 && (current == 0 || part < room && last >= 20)
}

// parts returns the numbers that a word is made of: fünf, und, zwanzig.
func (r *reader) parts(i int) []int64 {
	t := r.tok(i)
	if n, ok := r.part(t.fold, "number", "scale"); ok && t.kind == 'w' {
		return []int64{n}
	}
	var out []int64
	for rest := t.fold; rest != ""; {
		end := min(len(rest), 12)
		for ; end > 0; end-- {
			if n, ok := r.part(rest[:end], "number", "scale", "morpheme"); ok {
				out = append(out, n)
				break
			}
		}
		if end == 0 {
			return nil
		}
		rest = rest[end:]
	}
	if len(out) < 2 {
		return nil
	}
	return out
}

func (r *reader) part(word string, classes ...string) (int64, bool) {
	for _, class := range classes {
		for _, p := range r.words[class][word] {
			n, err := strconv.ParseInt(p.means, 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// number reads a number in digits or words with its sign and what multiplies it, once for each token.
func (r *reader) number(i int, c *capture) int {
	known, ok := r.numbers[i]
	if !ok {
		known.next = r.readNumber(i, &known)
		r.numbers[i] = known
	}
	c.n, c.other = known.n, known.other
	return known.next
}

func (r *reader) readNumber(i int, c *capture) (next int) {
	j, factor := i, rat("1")
	if r.mark(i, "-−") && r.tight(i+1, 'd') && (r.tok(i).gap || r.is(i-1, "currency")) || r.is(i, "minus") && r.tok(i-1).kind != 'd' && r.parts(i-1) == nil {
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
		if factor, next = times(factor, rat(means)), after; r.mark(next, ".") && (!r.tok(next+1).stop || r.is(next+1, "currency")) {
			next++ // 3 Mio. Euro
		}
	} else if zeros := map[string]string{"m": "1e6", "b": "1e9"}[short.fold]; zeros != "" && r.is(i-1, "currency") && r.ends(next+1) {
		factor, next = times(factor, rat(zeros)), next+1
	}
	if c.n = times(c.n, factor); c.other != nil {
		c.other = times(c.other, factor)
	}
	return next
}

// unitAt reports whether a unit in full stands at token i.
func (r *reader) unitAt(i int) bool { return r.is(i, "unit") && len(r.tok(i).fold) > 1 }

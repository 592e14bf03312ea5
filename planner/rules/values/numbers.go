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
	n, ok := new(big.Rat).SetString(s)
	if !ok {
		return new(big.Rat)
	}
	return n
}

// decimal writes a number with up to 12 digits after the point.
func decimal(n *big.Rat) json.Number {
	if n.IsInt() {
		return json.Number(n.Num().String())
	}
	return json.Number(strings.TrimRight(n.FloatString(12), "0"))
}

// digits reads a number in digits. The other reading is nil if there is one only.
func (r *reader) digits(i int) (n, other *big.Rat, next int) {
	first := r.tok(i)
	if before := r.tok(i - 1); first.kind != 'd' || first.end-first.start > maxDigits || !first.gap && before.kind == 'w' {
		return nil, nil, 0
	}
	groups, marks, next := r.groups(i)
	for _, g := range groups {
		if len(g) > maxDigits {
			return nil, nil, 0
		}
	}
	last := len(marks) - 1
	whole := rat(strings.Join(groups, ""))
	switch {
	case last < 0:
		n = whole
		if over := r.tok(next + 1); r.tok(next).fold == "/" && !r.tok(next).gap && over.kind == 'd' && !over.gap && over.end-over.start <= 4 {
			if d := rat(over.fold); d.Cmp(n) > 0 && r.ends(next+2) {
				return new(big.Rat).Quo(n, d), nil, next + 2
			}
		}
	case thousands(groups, marks):
		if n = whole; last == 0 && (marks[0] == "." || marks[0] == ",") {
			n, other = r.single(groups, marks[0])
		}
	case (marks[last] == "." || marks[last] == ",") && (last == 0 || marks[last] != marks[0] && thousands(groups[:last+1], marks[:last])):
		if last == 0 && marks[0] == "," && r.Language == "en" && !r.priced(i, next) {
			return rat(groups[0]), nil, i + 1 // a list
		}
		n = rat(strings.Join(groups[:last+1], "") + "." + groups[last+1])
	case marks[0] == "." || marks[0] == "'":
		return nil, nil, 0 // a version, an address
	default:
		return rat(groups[0]), nil, i + 1
	}
	if e := r.tok(next); e.fold == "e" && !e.gap {
		j := r.skipMark(next+1, "-+")
		if power := r.tok(j); power.kind == 'd' && !power.gap && power.end-power.start < 3 {
			return rat(n.RatString()+"").Mul(n, rat("1"+r.text[e.start:power.end])), nil, j + 1
		}
	}
	return n, other, next
}

// groups reads digits that points, commas, apostrophes or single spaces separate.
func (r *reader) groups(i int) (groups, marks []string, next int) {
	groups, next = []string{r.tok(i).fold}, i+1
	for len(groups) < 8 {
		mark, after := r.tok(next), r.tok(next+1)
		space := r.text[r.tok(next-1).end:mark.start]
		switch {
		case mark.kind == 'p' && strings.Contains(".,'", mark.fold) && !mark.gap && after.kind == 'd' && !after.gap:
			groups, marks, next = append(groups, after.fold), append(marks, mark.fold), next+2
		case mark.kind == 'd' && mark.end-mark.start == 3 && len(groups[0]) <= 3 &&
			(space == "\u00a0" || space == "\u202f" || space == " " && r.Language == "fr"):
			groups, marks, next = append(groups, mark.fold), append(marks, " "), next+1
		default:
			return groups, marks, next
		}
	}
	return groups, marks, next
}

// thousands reports whether marks group digits by three.
func thousands(groups, marks []string) bool {
	for i, mark := range marks {
		if mark != marks[0] || len(groups[i+1]) != 3 {
			return false
		}
	}
	return len(groups[0]) <= 3 && groups[0] != "0"
}

// single reads a number with one mark before three digits.
func (r *reader) single(groups []string, mark string) (n, other *big.Rat) {
	whole, broken := rat(groups[0]+groups[1]), rat(groups[0]+"."+groups[1])
	switch r.Language + mark {
	case "en,", "de.":
		return whole, nil
	case "en.":
		return broken, nil
	case "fr.", "es.":
		return whole, broken
	}
	return broken, whole
}

// priced reports whether a currency stands at the tokens [i,next).
func (r *reader) priced(i, next int) bool { return r.is(i-1, "currency") || r.is(next, "currency") }

// spelled reads a number in words.
func (r *reader) spelled(i int) (*big.Rat, int) {
	var total, current, last int64
	next, words := i, 0
	for j := i; words < 12; words++ {
		k := j
		if words > 0 {
			k = r.skipMark(j, "-")
			if and := r.skip(k, "and"); and > k && (last >= 100 || last >= 20 && r.Language != "en") {
				k = r.skipMark(and, "-")
			}
		}
		parts := r.parts(k)
		if parts == nil || words > 0 && r.tok(k).stop || words > 0 && !r.follows(current, last, parts[0]) {
			break
		}
		for _, p := range parts {
			switch {
			case p >= 1000:
				total, current = total+max(current, 1)*p, 0
			case p == 100 || p == 12 && r.is(k, "scale") || p == 20 && current%100 == 4 && r.Language == "fr":
				current += max(current%100, 1)*p - current%100
			default:
				current += p
			}
			last = p
		}
		if total > 1e15 {
			break
		}
		j, next = k+1, k+1
	}
	if next == i {
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
	case part == 100 || part == 12:
		return last < 100 || part == 12 && r.Language == "fr" && current%20 == 0
	case r.Language == "fr" && (last == 60 || current%100 == 80):
		return part < 20
	case r.Language == "fr" && part == 20:
		return current%100 == 4
	}
	return last > 0 && part > 0 && (current == 0 || part < room && last >= 20)
}

// parts returns the numbers that a word is made of: fünf, und, zwanzig.
func (r *reader) parts(i int) []int64 {
	t := r.tok(i)
	if t.kind != 'w' || len(t.fold) > 60 {
		return nil
	}
	if n, ok := r.part(t.fold, false); ok {
		return []int64{n}
	}
	var out []int64
	for rest := t.fold; rest != ""; {
		end := min(len(rest), 12)
		for ; end > 1; end-- {
			if n, ok := r.part(rest[:end], true); ok {
				out = append(out, n)
				break
			}
		}
		if end <= 1 {
			return nil
		}
		rest = rest[end:]
	}
	return out
}

func (r *reader) part(word string, inside bool) (int64, bool) {
	classes := []string{"number", "scale", "morpheme"}
	if !inside {
		classes = classes[:2]
	}
	for _, class := range classes {
		for _, p := range r.words[class][word] {
			if len(p.rest) == 0 {
				n, _ := strconv.ParseInt(p.means, 10, 64)
				return n, true
			}
		}
	}
	return 0, false
}

// number reads a number in digits or words with its sign and what multiplies it.
func (r *reader) number(i int) (n, other *big.Rat, next int) {
	j, sign := i, int64(1)
	if t := r.tok(i); t.fold == "-" && (t.gap || r.is(i-1, "currency")) && r.tok(i+1).kind == 'd' && !r.tok(i+1).gap {
		j, sign = i+1, -1
	} else if k := r.skip(i, "minus"); k > i {
		j, sign = k, -1
	}
	if n, other, next = r.digits(j); n == nil {
		n, next = r.spelled(j)
	}
	if n == nil && r.is(j, "half") && (r.unitAt(r.skip(j+1, "one", "article")) || r.is(r.skip(j+1, "one"), "scale")) {
		means, after := r.match(j, "half")
		n, next = rat(means), r.skip(after, "one")
	} else if k := r.skip(j, "one"); n == nil && k > j {
		if half, after := r.match(k, "half"); after > 0 && r.unitAt(after) {
			n, next = rat(half), after
		} else if r.unitAt(k) || r.is(k, "scale") {
			n, next = rat("1"), k
		}
	}
	if n == nil {
		return nil, nil, 0
	}
	factor := rat("1")
	if half, after := r.match(next, "andhalf"); after > 0 && !r.is(next, "minutes") {
		n, next = new(big.Rat).Add(n, rat(half)), after
	}
	means, after := r.match(next, "scale")
	if short := r.tok(next); after == 0 && (!short.gap || len(short.fold) > 1) {
		if means, after = r.match(next, "short"); after > 0 {
			after = r.skipMark(after, ".")
		} else if (short.fold == "m" || short.fold == "b") && r.is(i-1, "currency") && r.ends(next+1) {
			means, after = map[string]string{"m": "1000000", "b": "1000000000"}[short.fold], next+1
		}
	}
	if after > 0 {
		factor, next = rat(means), after
	}
	factor.Mul(factor, new(big.Rat).SetInt64(sign))
	if other != nil {
		other = new(big.Rat).Mul(other, factor)
	}
	return new(big.Rat).Mul(n, factor), other, next
}

// unitAt reports whether a unit of time or another one in full stands at token i.
func (r *reader) unitAt(i int) bool { return r.is(i, "unit") && len(r.tok(i).fold) > 1 }

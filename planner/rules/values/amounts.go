package values

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"
)

// amounts reads a number with what it counts.
func (r *reader) amounts(i int) int {
	if v, ok := r.amount(i); ok {
		return r.add(v)
	}
	if means, next := r.match(i, "currency"); next > 0 && r.ends(next) && (r.tok(i).upper || r.tok(i).fold != strings.ToLower(means)) {
		v := r.value(Money, i, next) // in Canadian dollars
		v.Unit = means
		return r.add(v)
	}
	means, next := r.match(i, "ordinal")
	if next == 0 {
		return 0
	}
	v := r.value(Ordinal, i, next)
	v.Number = json.Number(means)
	return r.add(v)
}

func (r *figures) amount(i int) (v Value, ok bool) {
	start := i
	if r.mark(i, "-−") && r.tok(i).gap && r.is(i+1, "currency") {
		start++
	}
	got, next := r.rule("amount", start)
	if next == 0 {
		return v, false
	}
	number := got.get("n")
	if start > i || got.num("hemisphere") < 0 {
		number.n = times(number.n, rat("-1"))
	}
	kind, unit := Number, ""
	for _, k := range []struct {
		name string
		Kind
	}{
		{"suffix", Ordinal}, {"percent", Percent}, {"currency", Money}, {"unit", Quantity},
	} {
		if c := got.get(k.name); c.name != "" {
			kind, unit = k.Kind, c.means
		}
	}
	if kind == Ordinal || kind == Percent {
		unit = ""
	} else if m := factors()[unit].measure; m == "time" || m == "calendar" {
		kind = Duration
		number.n, unit, next = r.chain(number.n, unit, next)
	}
	short := r.tight(next+1, 'd') && r.tok(i).size() <= 3 && r.tok(next+1).size() <= 3
	if !r.ends(next) && !(kind == Number && r.mark(next, "-") && short && next == i+1 && r.ends(next+2)) {
		return v, false // but 3-5 is a range
	}
	v = r.value(kind, i, next)
	v.Number, v.Unit = decimal(number.n), unit
	if number.other != nil {
		w := v
		w.Number = decimal(number.other)
		if strings.HasSuffix(v.Text, "K") {
			w.Kind, w.Unit = Quantity, "K"
		}
		v.Alternatives = []Value{w}
	}
	if unit == "lb" && !strings.HasPrefix(r.tok(next-1).fold, "lb") {
		w := v
		w.Kind, w.Unit = Money, "GBP"
		v.Alternatives = append(v.Alternatives, w)
	}
	return v, true
}

// unit reads a unit after a number, also after a hyphen.
func (r *figures) unit(i int, c *capture) (next int) {
	if r.mark(i, "-") && !r.tok(i).gap && !r.tok(i+1).gap {
		i++
	}
	c.means, next = r.match(i, "unit")
	next = r.skip(next, "aged")
	t := r.tok(i)
	small := t.kind == 'w' && t.size() == 1 && !t.upper && strings.ContainsAny(c.means, "CFKWV") // 20 C, not 20 c
	if next == 0 || small || !r.ends(next) && r.tok(next).kind != 'd' {
		return 0
	}
	return next
}

// chain adds the smaller units that follow: 1 hour and 30 minutes, 2h30, an hour and a half.
func (r *figures) chain(n *big.Rat, unit string, next int) (*big.Rat, string, int) {
	if half, after := r.match(next, "andhalf"); after > 0 {
		return new(big.Rat).Add(n, rat(half)), unit, after
	}
	for range 4 {
		var more, smaller capture
		after := r.number(r.skip(next, "and"), &more)
		end := r.unit(after, &smaller)
		if unit == "hour" && (end == 0 && r.tight(next, 'd') || smaller.means == "m") {
			smaller.means, end = "minute", max(end, after)
		}
		size := convert(rat("1"), unit, smaller.means)
		if after == 0 || end == 0 || more.n.Sign() < 0 || size == nil || size.Cmp(rat("1")) <= 0 {
			break
		}
		n, unit, next = new(big.Rat).Add(times(n, size), more.n), smaller.means, end
	}
	return n, unit, next
}

// convert writes a quantity in another unit of the same measure, nil if there is no such way.
func convert(n *big.Rat, from, to string) *big.Rat {
	f, t := factors()[from], factors()[to]
	if from == to {
		return n
	} else if f.measure != t.measure || f.measure == "" {
		return nil
	}
	out := times(n, rat(f.times))
	if f.measure == "temperature" {
		absolute := map[string]string{"°C": "273.15", "K": "0", "°F": "45967/180"}
		out.Add(out, rat(absolute[from])).Sub(out, rat(absolute[to]))
	}
	return out.Quo(out, rat(t.times))
}

// tight are the operators after which a product needs brackets.
var tight = []string{" - ", " * ", " / ", " ^ "}

// maxExpression bounds the tokens of a calculation.
const maxExpression = 60

// expression reads a calculation: numbers, operators in signs or words, brackets, functions, a percentage of something.
func (r *figures) expression(i int) (Value, bool) {
	if i < r.calculated || !r.tok(i).gap && !r.mark(i-1, "(:=,?") && r.tok(i-1).kind != 'q' {
		return Value{}, false
	}
	if r.mark(i-1, ",") && !r.tok(i).gap && r.tok(i-2).kind == 'd' { // 3,5 plus 2: is that 3.5?
		return Value{}, false
	}
	var parts []string
	operand, certain, opened, end, length, j := true, false, 0, 0, 0, i
loop:
	for j < i+maxExpression && !(j > i && r.tok(j).stop && r.tok(j).gap) {
		function := r.is(j, "function") && r.mark(j+1, "(")
		part, behind := r.share(j)
		number, next := r.operand(j)
		sign, after := r.match(j, "op")
		weak, loose := r.match(j, "weak")
		power, above := r.match(j, "power")
		switch {
		case operand && function:
			parts, certain, opened, j = append(parts, r.tok(j).fold+"("), true, opened+1, j+2
		case operand && r.mark(j, "("):
			parts, opened, j = append(parts, "("), opened+1, j+1
		case operand && behind > 0:
			operand = strings.HasSuffix(part, "(")
			if n := len(parts); n > 0 && strings.Contains(part, " * ") && slices.Contains(tight, parts[n-1]) {
				switch {
				case !operand && !r.raised(behind):
					part = "(" + part + ")"
				case parts[n-1] == " / " || parts[n-1] == " ^ ": // the end of the product is not known
					break loop
				}
			}
			if operand {
				opened++
			}
			parts, certain, j = append(parts, part), true, behind
		case operand && next > 0:
			parts, operand, j = append(parts, number), false, next
		case !operand && above > 0:
			parts, certain, j = append(parts, " ^ "+power), true, above
		case !operand && r.mark(j, ")") && opened > 0:
			parts, opened, j = append(parts, ")"), opened-1, j+1
		case !operand && after > 0:
			parts, operand, certain, j = append(parts, " "+sign+" "), true, true, after
		case !operand && loose > 0: // surely an operator between spaces or beside brackets
			certain = certain || r.tok(j).gap && r.tok(loose).gap || r.mark(j-1, ")") || r.mark(loose, "(")
			parts, operand, j = append(parts, " "+weak+" "), true, loose
		default:
			break loop
		}
		if !operand && opened == 0 && certain && r.ends(j) {
			end, length = j, len(parts)
		}
	}
	text := strings.Join(parts[:length], "")
	if v, ok := r.amount(j); operand && ok && v.Kind == Percent { // 50 + 2 - 10%: of what?
		return Value{}, false
	}
	if end == 0 {
		text, end = r.arithmetic(i)
	}
	if end == 0 {
		return Value{}, false
	}
	v := r.value(Expression, i, end)
	v.Text = text
	return v, true
}

// operand reads a number or a variable of a calculation: 4, x, 2x.
func (r *figures) operand(i int) (text string, next int) {
	var c capture
	if r.variable(i) {
		return r.tok(i).fold, i + 1
	}
	if j := r.skip(i, "currency"); r.tok(j).kind == 'd' {
		i = j
	}
	if next = r.number(i, &c); next == 0 || r.is(i, "one") || c.other != nil || r.is(next, "percent") {
		return "", 0
	}
	if text = string(decimal(c.n)); r.variable(next) && !r.tok(next).gap {
		return text + r.tok(next).fold, next + 1
	}
	return text, r.skip(next, "currency")
}

func (r *figures) variable(i int) bool {
	t := r.tok(i)
	return len(t.fold) == 1 && strings.Contains("xyz", t.fold) && (r.ends(i+1) || r.mark(i+1, "^*+-/)"))
}

// arithmetic reads "add 3, 4 and 5", "divide 10 by 4" and "subtract 4 from 10".
func (r *figures) arithmetic(i int) (text string, next int) {
	sign, j := r.match(i, "arithmetic")
	if j == 0 {
		return "", 0
	}
	operands := []string{}
	for most := j + maxExpression; j < most; {
		number, after := r.operand(j)
		if after == 0 {
			return "", 0
		}
		operands = append(operands, number)
		how, behind := r.match(after, "operand")
		switch {
		case behind > 0 && how == "2" && sign == "-" && len(operands) == 1: // 4 from 10
			second, end := r.operand(behind)
			return second + " - " + number, end
		case behind > 0 && how == "1":
			j = behind
		case r.mark(after, ","):
			j = after + 1
			if _, behind = r.match(j, "operand"); behind > 0 {
				j = behind
			}
		case len(operands) > 1 && r.ends(after):
			return strings.Join(operands, " "+sign+" "), after
		default:
			return "", 0
		}
	}
	return "", 0
}

// share reads "15% of 2500", "20% off 50" and "square root of 144". Before a bracket it ends behind the bracket, which
// is the end of its text, too.
func (r *figures) share(i int) (text string, next int) {
	if j := r.skip(i, "root"); j > i {
		if r.mark(j, "(") {
			return "sqrt(", j + 1
		}
		of, next := r.operand(j)
		return "sqrt(" + of + ")", next
	}
	v, ok := r.amount(i)
	if r.tok(i).kind == 'q' { // "15%" of 2500
		inner := newReader(r.unquoted(i), nil, r.Options)
		v, ok = inner.amount(0)
		ok = ok && v.next == len(inner.tokens)
		v.next = i + 1
	}
	if !ok || v.Kind != Percent {
		return "", 0
	}
	factor, after := new(big.Rat).Quo(rat(string(v.Number)), rat("100")), r.skip(v.next, "of")
	if off := r.skip(v.next, "off"); off > v.next {
		factor, after = factor.Sub(rat("1"), factor), r.skip(off, "of")
	}
	whole := r.skip(after, "article")
	of, next := r.operand(whole)
	if after > v.next && r.mark(whole, "(") {
		return string(decimal(factor)) + " * (", whole + 1
	}
	if after == v.next || next == 0 {
		return "", 0
	}
	if r.raised(next) {
		return string(decimal(factor)) + " * " + of, next
	}
	return of + " * " + string(decimal(factor)), next
}

// raised reports whether a power of what is before a token follows: squared, ^.
func (r *figures) raised(i int) bool {
	_, power := r.match(i, "power")
	sign, _ := r.match(i, "op")
	return power > 0 || sign == "^"
}

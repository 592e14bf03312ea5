package values

import (
	"encoding/json"
	"math/big"
	"strings"
)

// amounts reads a number with what it counts.
func (r *reader) amounts(i int) int {
	if v, ok := r.amount(i); ok {
		return r.add(v)
	}
	if means, next := r.match(i, "ordinal"); next > 0 {
		v := r.value(Ordinal, i, next)
		v.Number = json.Number(means)
		return r.add(v)
	}
	return 0
}

func (r *reader) amount(i int) (Value, bool) {
	var none Value
	currency, j := r.match(i, "currency")
	if r.tok(i).fold == "-" && r.tok(i).gap {
		currency, j = r.match(i+1, "currency")
	}
	if j > 0 && r.tok(j).kind != 'd' && r.tok(j).fold != "-" {
		return none, false
	}
	j = max(i, j)
	n, other, next := r.number(j)
	if n == nil || next == j+1 && r.tok(j).kind == 'w' && r.pronoun(j) {
		return none, false
	}
	if j > i && r.tok(i).fold == "-" {
		n = new(big.Rat).Neg(n)
	}
	kind, unit := Number, ""
	if _, after := r.match(next, "suffix"); r.tok(j).kind == 'd' && next == j+1 && after > 0 && !r.tok(next).gap && r.ends(after) {
		kind, next = Ordinal, after
	} else if after := r.skip(next, "percent"); after > next && r.ends(after) {
		kind, next = Percent, after
	} else if code, after := r.match(next, "currency"); currency != "" || after > 0 && r.ends(after) {
		kind, unit = Money, currency
		if after > 0 && (currency == "" || code == currency) {
			unit, next = code, after
		}
	} else if symbol, after := r.unit(next); after > 0 {
		kind, unit = Quantity, symbol
		next = after
	}
	if factors[unit].measure == "time" || factors[unit].measure == "calendar" {
		kind = Duration
		n, unit, next = r.chain(n, unit, next)
	}
	digits := r.tok(next + 1)
	ranged := r.tok(next).fold == "-" && next == j+1 && digits.kind == 'd' && digits.end-digits.start <= 3 && r.ends(next+2) && r.tok(j).end-r.tok(j).start <= 3
	if !r.ends(next) && !ranged {
		return none, false
	}
	v := r.value(kind, i, next)
	v.Number, v.Unit = decimal(n), unit
	if kind == Number && r.word(next) && !r.tok(next).stop {
		v.Noun = r.tok(next).fold
	}
	if kind == Money && other == nil && r.Language == "en" && strings.Count(v.Text, ".") == 1 && len(v.Text)-strings.Index(v.Text, ".") > 3 && n.Denom().Cmp(big.NewInt(100)) > 0 {
		other = new(big.Rat).Mul(n, rat("1000")) // 1.250 EUR
	}
	if other != nil {
		second := v
		second.Number = decimal(other)
		v.Alternatives = []Value{second}
	}
	if last := r.tok(next - 1).fold; unit == "lb" && !strings.HasPrefix(last, "lb") {
		pounds := v
		pounds.Kind, pounds.Unit = Money, "GBP"
		v.Alternatives = append(v.Alternatives, pounds)
	}
	return v, true
}

// pronoun reports whether a number word stands for something else: "this one", "un fichier".
func (r *reader) pronoun(i int) bool {
	return r.is(i, "one") && !r.unitAt(i+1) || r.tok(i).fold == "one" && (r.is(i-1, "article") || r.is(i-1, "other"))
}

// unit reads a unit after a number, also after a hyphen.
func (r *reader) unit(i int) (symbol string, next int) {
	if t := r.tok(i); t.fold == "-" && !t.gap && !r.tok(i+1).gap {
		i++
	}
	symbol, next = r.match(i, "unit")
	upper := strings.ContainsAny(symbol, "CFKWV") // 20 C, not 20 c
	if t := r.tok(i); next == 0 || len(t.fold) == 1 && t.kind == 'w' && upper && !t.upper || !r.ends(next) && r.tok(next).kind != 'd' {
		return "", 0
	}
	return symbol, next
}

// chain adds the smaller units that follow: 1 hour and 30 minutes, 2h30, an hour and a half.
func (r *reader) chain(n *big.Rat, unit string, next int) (*big.Rat, string, int) {
	if half, after := r.match(next, "andhalf"); after > 0 {
		return new(big.Rat).Add(n, rat(half)), unit, after
	}
	for range 4 {
		j := r.skip(r.skipMark(next, ","), "and")
		more, _, after := r.number(j)
		if more == nil || more.Sign() < 0 {
			break
		}
		smaller, end := r.unit(after)
		if end == 0 && unit == "hour" && j == next && !r.tok(j).gap {
			smaller, end = "minute", after
		}
		from, to := factors[unit], factors[smaller]
		if end == 0 || from.measure != to.measure || rat(to.factor).Cmp(rat(from.factor)) >= 0 {
			break
		}
		n = new(big.Rat).Add(convert(n, unit, smaller), more)
		unit, next = smaller, end
	}
	return n, unit, next
}

// convert writes a quantity in another unit of the same measure, nil if there is no such way.
func convert(n *big.Rat, from, to string) *big.Rat {
	f, t := factors[from], factors[to]
	if from == to {
		return n
	}
	if f.measure != t.measure || f.measure == "" {
		return nil
	}
	zero := map[string]string{"°C": "273.15", "K": "0", "°F": "45967/180"} // absolute
	out := new(big.Rat).Mul(n, rat(f.factor))
	if f.measure == "temperature" {
		out.Add(out, rat(zero[from])).Sub(out, rat(zero[to]))
	}
	return out.Quo(out, rat(t.factor))
}

// maxExpression bounds the tokens of a calculation.
const maxExpression = 60

var functions = " sqrt sin cos tan log ln abs exp "

// expression reads a calculation: numbers, operators in signs or words, brackets, functions, a percentage of something.
func (r *reader) expression(i int) (Value, bool) {
	if !r.tok(i).gap && r.tok(i-1).kind != 'q' && !strings.Contains("(:=,?", r.tok(i-1).fold) || len(r.out) > 0 && r.out[len(r.out)-1].Kind == Expression && r.out[len(r.out)-1].next > i {
		return Value{}, false
	}
	if v, ok := r.share(i); ok {
		return v, true
	}
	var parts []string
	var opened []int // brackets
	operand, strong, operators, best, bestParts := true, false, 0, 0, 0
	for j := i; j < i+maxExpression; {
		t := r.tok(j)
		if operand {
			n, next := r.operand(j)
			switch {
			case n != "":
				parts, j, operand = append(parts, n), next, false
			case t.fold == "(":
				parts, opened, j = append(parts, "("), append(opened, j), j+1
				continue
			case t.kind == 'w' && strings.Contains(functions, " "+t.fold+" ") && r.tok(j+1).fold == "(":
				parts, opened, strong, operators, j = append(parts, t.fold+"("), append(opened, j), true, operators+1, j+2
				continue
			}
			if n == "" {
				break
			}
		} else if t.fold == ")" && len(opened) > 0 {
			parts, opened, j = append(parts, ")"), opened[:len(opened)-1], j+1
		} else {
			sign, next, firm := r.operator(j)
			if sign == "" {
				break
			}
			parts, j, operand, operators, strong = append(parts, " "+sign+" "), next, true, operators+1, strong || firm
			continue
		}
		if len(opened) == 0 && operators > 0 && strong && r.ends(j) {
			best, bestParts = j, len(parts)
		}
	}
	if best == 0 {
		return Value{}, false
	}
	v := r.value(Expression, i, best)
	v.Text = strings.Join(parts[:bestParts], "")
	return v, true
}

// operand reads a number of a calculation.
func (r *reader) operand(i int) (string, int) {
	j := i
	if _, next := r.match(i, "currency"); next > 0 && r.tok(next).kind == 'd' {
		j = next
	}
	n, other, next := r.number(j)
	if n == nil || other != nil || r.is(next, "percent") {
		return "", 0
	}
	if r.is(next, "currency") {
		next = r.skip(next, "currency")
	}
	return string(decimal(n)), next
}

// operator reads an operator. A hyphen or a slash is surely one between spaces or beside brackets.
func (r *reader) operator(i int) (sign string, next int, firm bool) {
	t := r.tok(i)
	switch t.fold {
	case "+", "*", "^":
		return t.fold, i + 1, true
	case "×":
		return "*", i + 1, true
	case "x":
		return "*", i + 1, t.gap && r.tok(i+1).gap
	case "÷":
		return "/", i + 1, true
	case "-", "/", "−", "–":
		return map[bool]string{true: "/", false: "-"}[t.fold == "/"], i + 1, t.gap && r.tok(i+1).gap || r.tok(i+1).fold == "(" || r.tok(i-1).fold == ")"
	}
	sign, next = r.match(i, "op")
	return sign, next, true
}

// share reads "15% of 2500" and "20% off 50".
func (r *reader) share(i int) (Value, bool) {
	n, other, j := r.number(i)
	k := r.skip(j, "percent")
	if n == nil || other != nil || k == j {
		return Value{}, false
	}
	factor := new(big.Rat).Quo(n, rat("100"))
	after := r.skip(k, "of")
	if off := r.skip(k, "off"); off > k {
		factor, after = factor.Sub(rat("1"), factor), r.skip(off, "of")
	} else if after == k {
		return Value{}, false
	}
	of, next := r.operand(r.skip(after, "article"))
	if of == "" || !r.ends(next) {
		return Value{}, false
	}
	v := r.value(Expression, i, next)
	v.Text = of + " * " + string(decimal(factor))
	return v, true
}

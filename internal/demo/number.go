package demo

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

const (
	maxBits      = 4096    // of a numerator or denominator; beyond it a value is rounded to a float64
	maxPowerBits = 1 << 18 // of a power before it is rounded
)

var (
	errNotFinite    = errors.New("a value is too large or not defined")
	errZeroDivision = errors.New("division by zero")
)

// function computes with rational numbers and never changes its operands. It takes min to max operands;
// max -1 means any number.
type function struct {
	min, max int
	apply    func(x []*big.Rat) (*big.Rat, error)
}

// arithmetic holds the functions by name and the operators by their sign. It never changes.
var arithmetic = map[string]function{
	"+":       binary(func(a, b *big.Rat) *big.Rat { return new(big.Rat).Add(a, b) }),
	"-":       binary(func(a, b *big.Rat) *big.Rat { return new(big.Rat).Sub(a, b) }),
	"*":       binary(func(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }),
	"/":       {2, 2, func(x []*big.Rat) (*big.Rat, error) { return divide(x[0], x[1]) }},
	"%":       {2, 2, func(x []*big.Rat) (*big.Rat, error) { return remainder(x[0], x[1]) }},
	"^":       {2, 2, func(x []*big.Rat) (*big.Rat, error) { return power(x[0], x[1]) }},
	"**":      {2, 2, func(x []*big.Rat) (*big.Rat, error) { return power(x[0], x[1]) }},
	"unary -": unary(func(x *big.Rat) *big.Rat { return new(big.Rat).Neg(x) }),
	"unary +": unary(func(x *big.Rat) *big.Rat { return x }),

	"abs":   unary(func(x *big.Rat) *big.Rat { return new(big.Rat).Abs(x) }),
	"floor": unary(floor),
	"ceil":  unary(func(x *big.Rat) *big.Rat { return new(big.Rat).Neg(floor(new(big.Rat).Neg(x))) }),
	"trunc": unary(truncate),
	"round": {1, 2, round},
	"pow":   {2, 2, func(x []*big.Rat) (*big.Rat, error) { return power(x[0], x[1]) }},
	"mod":   {2, 2, func(x []*big.Rat) (*big.Rat, error) { return remainder(x[0], x[1]) }},
	"min":   {1, -1, func(x []*big.Rat) (*big.Rat, error) { return slices.MinFunc(x, (*big.Rat).Cmp), nil }},
	"max":   {1, -1, func(x []*big.Rat) (*big.Rat, error) { return slices.MaxFunc(x, (*big.Rat).Cmp), nil }},
	"sum":   {1, -1, func(x []*big.Rat) (*big.Rat, error) { return sum(x), nil }},
	"avg":   {1, -1, func(x []*big.Rat) (*big.Rat, error) { return divide(sum(x), new(big.Rat).SetInt64(int64(len(x)))) }},
	"sqrt":  real1(math.Sqrt),
	"cbrt":  real1(math.Cbrt),
	"exp":   real1(math.Exp),
	"ln":    real1(math.Log),
	"log10": real1(math.Log10),
	"log2":  real1(math.Log2),
	"sin":   real1(math.Sin),
	"cos":   real1(math.Cos),
	"tan":   real1(math.Tan),
}

// constants holds the names that stand for a number. It never changes.
var constants = map[string]float64{"pi": math.Pi, "e": math.E}

// functionNames lists the available functions.
func functionNames() string {
	var names []string
	for name := range arithmetic {
		if name[0] >= 'a' && !strings.Contains(name, " ") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// call adapts f to the expression library.
func (f function) call(name string) func(...any) (any, error) {
	return func(params ...any) (any, error) {
		if len(params) < f.min || f.max >= 0 && len(params) > f.max {
			return nil, fmt.Errorf("%s does not take %d values", name, len(params))
		}
		x := make([]*big.Rat, len(params))
		for i, p := range params {
			value, ok := p.(*big.Rat)
			if !ok {
				return nil, fmt.Errorf("%s takes numbers only", name)
			}
			x[i] = value
		}
		result, err := f.apply(x)
		if err != nil {
			return nil, err
		}
		return bounded(result)
	}
}

func unary(f func(x *big.Rat) *big.Rat) function {
	return function{1, 1, func(x []*big.Rat) (*big.Rat, error) { return f(x[0]), nil }}
}

func binary(f func(a, b *big.Rat) *big.Rat) function {
	return function{2, 2, func(x []*big.Rat) (*big.Rat, error) { return f(x[0], x[1]), nil }}
}

// real1 is for functions whose values are irrational: they compute in float64.
func real1(f func(float64) float64) function {
	return function{1, 1, func(x []*big.Rat) (*big.Rat, error) {
		value, _ := x[0].Float64()
		return fromFloat(f(value))
	}}
}

func divide(a, b *big.Rat) (*big.Rat, error) {
	if b.Sign() == 0 {
		return nil, errZeroDivision
	}
	return new(big.Rat).Quo(a, b), nil
}

// remainder has the sign of a, as in Go.
func remainder(a, b *big.Rat) (*big.Rat, error) {
	quotient, err := divide(a, b)
	if err != nil {
		return nil, err
	}
	whole := truncate(quotient)
	return whole.Sub(a, whole.Mul(whole, b)), nil
}

// power is exact for whole exponents as long as the result fits in maxPowerBits.
func power(base, exponent *big.Rat) (*big.Rat, error) {
	if base.Sign() == 0 && exponent.Sign() < 0 {
		return nil, errZeroDivision
	}
	if exponent.IsInt() && exponent.Num().IsInt64() {
		n := exponent.Num().Int64()
		size := int64(max(base.Num().BitLen(), base.Denom().BitLen()))
		if steps := max(n, -n); steps >= 0 && steps <= maxPowerBits && steps*size <= maxPowerBits {
			e := big.NewInt(steps)
			num, denom := new(big.Int).Exp(base.Num(), e, nil), new(big.Int).Exp(base.Denom(), e, nil)
			if n < 0 {
				num, denom = denom, num
			}
			return new(big.Rat).SetFrac(num, denom), nil
		}
	}
	b, _ := base.Float64()
	e, _ := exponent.Float64()
	return fromFloat(math.Pow(b, e))
}

func sum(x []*big.Rat) *big.Rat {
	total := new(big.Rat)
	for _, value := range x {
		total.Add(total, value)
	}
	return total
}

func floor(x *big.Rat) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Div(x.Num(), x.Denom())) // Euclidean: the denominator is positive
}

func truncate(x *big.Rat) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Quo(x.Num(), x.Denom()))
}

// round rounds halves away from zero, to the given number of decimals or to a whole number.
func round(x []*big.Rat) (*big.Rat, error) {
	scale := big.NewRat(1, 1)
	if len(x) == 2 {
		if !x[1].IsInt() || x[1].Sign() < 0 || x[1].Cmp(big.NewRat(100, 1)) > 0 {
			return nil, errors.New("round takes 0 to 100 decimals")
		}
		scale.SetInt(new(big.Int).Exp(big.NewInt(10), x[1].Num(), nil))
	}
	half := big.NewRat(int64(x[0].Sign()), 2)
	scaled := new(big.Rat).Mul(x[0], scale)
	return scaled.Quo(truncate(scaled.Add(scaled, half)), scale), nil
}

// fromFloat returns the shortest decimal fraction that rounds to f, so that 0.15 is 15/100.
func fromFloat(f float64) (*big.Rat, error) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, errNotFinite
	}
	r, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	if !ok {
		return nil, errNotFinite
	}
	return r, nil
}

func bounded(r *big.Rat) (*big.Rat, error) {
	if r.Num().BitLen() <= maxBits && r.Denom().BitLen() <= maxBits {
		return r, nil
	}
	f, _ := r.Float64()
	return fromFloat(f)
}

// format writes r as a JSON number: integers in full, others with 15 significant digits.
func format(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	if math.IsInf(f, 0) {
		return r.FloatString(0)
	}
	return strconv.FormatFloat(f, 'g', 15, 64)
}

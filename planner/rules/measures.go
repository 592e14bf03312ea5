package rules

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/search"
)

// inUnit weighs a unit against a parameter and converts the value to the unit the parameter names.
func (p param) inUnit(v float64, unit string) (float64, float64) {
	u := unitOf(strings.ToLower(unit))
	if u == "" {
		stem := search.Stem(strings.ToLower(unit))
		switch {
		case slices.ContainsFunc(p.nameStems, func(n string) bool { return n == stem || abbreviates(n, stem) || abbreviates(stem, n) }):
			return v, 2.5
		case p.descStems[stem]:
			return v, 1
		}
		return v, -0.3
	}
	for _, other := range convertible {
		if other != u && p.mentions(search.Stem(other)) && !p.mentions(search.Stem(u)) {
			if c, ok := convert(v, u, other); ok {
				return c, 1.5
			}
		}
	}
	named := slices.Contains(p.nameStems, search.Stem(u)) || slices.Contains(p.nameStems, search.Stem(strings.ToLower(unit)))
	if named || p.descStems[search.Stem(u)] {
		if named {
			return v, 2.5
		}
		return v, 1.8
	}
	for _, d := range dimensions[u] {
		if slices.Contains(p.nameStems, d) {
			return v, 1.8
		}
		if p.descStems[d] {
			return v, 1
		}
	}
	return v, -0.7
}

// convertible are the units that quantities are converted to where a parameter names them.
var convertible = []string{
	"second", "millisecond", "minute", "hour", "day", "week", "month", "year", "meter", "centimeter", "millimeter", "kilometer", "mile", "foot",
	"inch", "gram", "kilogram",
}

// dimensions maps canonical units to the stems of what they measure.
var dimensions = map[string][]string{
	"second": {"time", "durat", "timeout", "second", "interv"}, "minute": {"time", "durat", "minut"}, "hour": {"time", "durat", "hour"},
	"day": {"day", "dai", "durat", "period", "time", "stai"}, "week": {"week", "durat", "period"}, "month": {"month", "durat", "period", "term"},
	"year": {"year", "durat", "period", "term", "time", "ag"}, "meter": {"distanc", "length", "height", "width", "radiu", "depth", "heigh"},
	"kilometer": {"distanc", "length", "radiu"}, "mile": {"distanc", "radiu", "length"}, "foot": {"height", "length", "distanc"},
	"centimeter": {"length", "height", "radiu", "width"}, "kilogram": {"mass", "weight"}, "gram": {"mass", "weight", "dose"},
	"pound": {"weight", "mass"}, "celsius": {"temperatur", "temp"}, "fahrenheit": {"temperatur", "temp"}, "kelvin": {"temperatur", "temp"},
	"degree": {"angl", "temperatur"}, "speed": {"speed", "veloc"}, "acceleration": {"acceler", "graviti"}, "density": {"densiti"},
	"area": {"area"}, "volume": {"volum"}, "liter": {"volum"}, "hertz": {"frequenc"}, "volt": {"voltag"}, "ampere": {"current"},
	"ohm": {"resist"}, "watt": {"power"}, "joule": {"energi", "heat"}, "newton": {"forc"}, "pascal": {"pressur"}, "atmosphere": {"pressur"},
	"kilopascal": {"pressur"}, "milligram": {"dose", "dosag", "mass"}, "calorie": {"calori"},
}

package values

import (
	"embed"
	"slices"
	"strconv"
	"strings"
)

// The phrases of a language are in a file; all.txt has what every language writes alike. Each line is a class with its
// phrases. A comma separates phrases of one meaning and a low line the tokens of a phrase. What a phrase means follows
// "="; without it, it is its position in the line, counted from the last number.
//
//go:embed lexicon/*.txt
var files embed.FS

// phrase is a phrase of a language with what it means.
type phrase struct {
	rest  []string // the tokens after the first
	means string
}

// lexicon has the phrases of a language by class and first token, longest first.
type lexicon map[string]map[string][]phrase

// lexicons has the languages by their codes.
var lexicons = func() map[string]lexicon {
	out := map[string]lexicon{}
	common, _ := files.ReadFile("lexicon/all.txt")
	for _, language := range []string{"en", "de", "fr", "es"} {
		own, _ := files.ReadFile("lexicon/" + language + ".txt")
		out[language] = readLexicon(string(common) + string(own))
	}
	return out
}()

func readLexicon(lines string) lexicon {
	out := lexicon{}
	for line := range strings.Lines(lines) {
		fields := strings.Fields(line)
		position := -1
		for _, field := range fields[min(1, len(fields)):] {
			position++
			written, means, given := strings.Cut(field, "=")
			if n, err := strconv.Atoi(means); given && err == nil {
				position = n
			} else if !given {
				means = strconv.Itoa(position)
			}
			for written := range strings.SplitSeq(written, ",") {
				words := strings.Split(written, "_")
				if out[fields[0]] == nil {
					out[fields[0]] = map[string][]phrase{}
				}
				list := append(out[fields[0]][words[0]], phrase{words[1:], means})
				slices.SortStableFunc(list, func(a, b phrase) int { return len(b.rest) - len(a.rest) })
				out[fields[0]][words[0]] = list
			}
		}
	}
	return out
}

// factors are units as multiples of the base unit of what they measure.
var factors = map[string]struct{ measure, factor string }{
	"millisecond": {"time", "0.001"}, "second": {"time", "1"}, "minute": {"time", "60"}, "hour": {"time", "3600"},
	"day": {"time", "86400"}, "week": {"time", "604800"}, "fortnight": {"time", "1209600"},
	"month": {"calendar", "1"}, "quarter": {"calendar", "3"}, "year": {"calendar", "12"}, "decade": {"calendar", "120"},
	"mm": {"length", "0.001"}, "cm": {"length", "0.01"}, "m": {"length", "1"}, "km": {"length", "1000"}, "inch": {"length", "0.0254"},
	"ft": {"length", "0.3048"}, "yd": {"length", "0.9144"}, "mi": {"length", "1609.344"},
	"mg": {"mass", "0.001"}, "g": {"mass", "1"}, "kg": {"mass", "1000"}, "t": {"mass", "1000000"}, "lb": {"mass", "453.59237"}, "oz": {"mass", "28.349523125"},
	"ml": {"volume", "0.001"}, "l": {"volume", "1"}, "gallon": {"volume", "3.785411784"},
	"B": {"size", "1"}, "KB": {"size", "1000"}, "MB": {"size", "1000000"}, "GB": {"size", "1000000000"}, "TB": {"size", "1000000000000"},
	"KiB": {"size", "1024"}, "MiB": {"size", "1048576"}, "GiB": {"size", "1073741824"},
	"m/s": {"speed", "1"}, "km/h": {"speed", "5/18"}, "mph": {"speed", "0.44704"},
	"W": {"power", "1"}, "kW": {"power", "1000"}, "Hz": {"frequency", "1"}, "MHz": {"frequency", "1000000"}, "GHz": {"frequency", "1000000000"},
	"°C": {"temperature", "1"}, "°F": {"temperature", "5/9"}, "K": {"temperature", "1"},
}

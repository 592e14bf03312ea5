package rules

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
)

//go:embed places.txt
var placesText string

// regionOf maps large cities, in lower case, to the postal code of their state or the name of their country; regionCode
// maps the names of states to their codes. A name that is both a city and a region is a city.
var regionOf, regionCode = readPlaces(placesText)

func readPlaces(text string) (cities, regions map[string]string) {
	cities, regions = map[string]string{}, map[string]string{}
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), ": ")
		if len(f) != 3 || strings.HasPrefix(line, "#") {
			continue
		}
		for name := range strings.SplitSeq(f[1], ", ") {
			regions[name] = f[0]
		}
		for city := range strings.SplitSeq(f[2], ", ") {
			if cities[city] == "" && city != "-" {
				cities[city] = f[0]
			}
		}
	}
	return cities, regions
}

// wantsPair is how descriptions ask for a city together with its state or country.
var wantsPair = regexp.MustCompile(`(?i:city,? (?:and |& |or )?(?:the )?(?:state|country|st\b))|[A-Z][a-z]+, [A-Z][A-Z]\b`)

// wantsCode is how descriptions ask for a state by its postal code.
var wantsCode = regexp.MustCompile(`(?i)abbrev|code|'(?-i:[A-Z]{2})'`)

// place writes a place as a parameter wants it: a large city with its state or country, and a state by its code after it.
func (q param) place(text string) string {
	city, region, pair := strings.Cut(text, ", ")
	code := regionCode[strings.ToLower(text)]
	switch {
	case slices.Contains(q.stems, "state") && pair && regionCode[strings.ToLower(region)] != "":
		return q.place(region)
	case slices.Contains(q.stems, "state") && len(code) == 2 && wantsCode.MatchString(q.Description):
		return code
	case !wantsPair.MatchString(q.Description) || slices.Contains(q.stems, "state") || slices.Contains(q.stems, "countri"):
		return text
	case pair && len(regionCode[strings.ToLower(region)]) == 2:
		return city + ", " + regionCode[strings.ToLower(region)]
	case !pair && regionOf[strings.ToLower(city)] != "":
		return city + ", " + regionOf[strings.ToLower(city)]
	}
	return text
}

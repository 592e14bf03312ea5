package rules

import (
	"cmp"
	"strings"
)

var (
	// wantsPair is how descriptions ask for a city together with its state or country.
	wantsPair = lazy(`(?i:city,? (?:and |& |or )?(?:the )?(?:state|country|st\b))|[A-Z][a-z]+, [A-Z][A-Z]\b`)
	// wantsCode is how they ask for a state by its postal code.
	wantsCode = lazy(`(?i)abbrev|code|'(?-i:[A-Z]{2})'`)
)

// place writes a place as a parameter wants it: a large city with its state or country, and a state by its code.
func (q param) place(text string) string {
	city, region, pair := strings.Cut(text, ", ")
	code := table().regionCode[strings.ToLower(cmp.Or(region, city))]
	country := table().regionOf[strings.ToLower(city)]
	switch state := q.named("state"); {
	case state && len(code) == 2 && wantsCode().MatchString(q.Description):
		return code
	case state && pair && code != "":
		return region
	case state || q.named("countri") || !wantsPair().MatchString(q.Description):
		return text
	case pair && len(code) == 2:
		return city + ", " + code
	case !pair && country != "":
		return city + ", " + country
	}
	return text
}

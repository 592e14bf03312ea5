package rules

import "slices"

// How well a result's field fits a parameter by their names alone.
const (
	fitsExactly = 2.2
	fitsAsID    = 1.8
	fitsPartly  = 1.2
)

// fits compares a parameter's name with an output's: "location_id" takes "locationId", and "id" of
// a tool about locations.
func fits(q param, o output, producer *frame) float64 {
	if o.kind != "" && q.kind != "" && o.kind != q.kind && !(numeric(o.kind) && numeric(q.kind)) {
		return 0
	}
	if len(q.nameStems) == 0 || len(o.stems) == 0 {
		return 0
	}
	if slices.Equal(q.nameStems, o.stems) {
		if len(o.stems) == 1 && genericWords[o.stems[0]] && o.stems[0] != "id" {
			return fitsPartly
		}
		return fitsExactly
	}
	last, entity := q.nameStems[len(q.nameStems)-1], q.nameStems[:len(q.nameStems)-1]
	if last == "id" && o.stems[len(o.stems)-1] == "id" {
		rest := o.stems[:len(o.stems)-1]
		if within(entity, rest) || within(rest, entity) && within(entity, producer.name) {
			return fitsAsID
		}
		return 0
	}
	if distinctive(q.nameStems) && distinctive(o.stems) && (within(q.nameStems, o.stems) || within(o.stems, q.nameStems)) {
		return fitsPartly
	}
	return 0
}

func numeric(kind string) bool { return kind == "number" || kind == "integer" }

func within(some, all []string) bool {
	for _, s := range some {
		if !slices.Contains(all, s) {
			return false
		}
	}
	return true
}

// distinctive reports whether one of the stems says more than "name" or "value".
func distinctive(stems []string) bool {
	return slices.ContainsFunc(stems, func(s string) bool { return !genericWords[s] && s != "id" })
}

package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Aspect is something that may explain why two runs differ, as far as their lines tell.
type Aspect struct {
	Name    string `json:"name"`
	A       string `json:"a"`
	B       string `json:"b"`
	Differs bool   `json:"differs"`
}

const (
	maxShownName  = 40 // of a model or tool, in bytes
	maxShownHash  = 12
	maxShownNames = 8
)

// aspects compares the circumstances of two runs. Lines have no catalog, version or settings, only the fingerprint of
// them together.
func aspects(a, b *Batch, pairs []*pair) []Aspect {
	all := []Aspect{aspect("fingerprint", names(a.Fingerprints, maxShownHash), names(b.Fingerprints, maxShownHash))}
	all[0].Differs = !slices.Equal(a.Fingerprints, b.Fingerprints)
	for i, name := range [...]string{"planner", "synthesizer"} {
		all = append(all, aspect(name, names(slices.Sorted(maps.Keys(a.models[i])), maxShownName),
			names(slices.Sorted(maps.Keys(b.models[i])), maxShownName)))
	}
	all = append(all, prices(a, b, pairs), cases(a, b))
	onlyA, onlyB := a.toolsWithout(b), b.toolsWithout(a)
	if len(onlyA)+len(onlyB) > 0 {
		const only = "only here: "
		all = append(all, Aspect{"tools called", only + names(onlyA, maxShownName), only + names(onlyB, maxShownName), true})
	}
	if !a.First.IsZero() && !b.First.IsZero() {
		all = append(all, Aspect{"time", a.span(), b.span(), a.Last.Before(b.First) || b.Last.Before(a.First)})
	}
	return all
}

func aspect(name, a, b string) Aspect { return Aspect{name, a, b, a != b} }

// names joins some of the names, each cut to so many bytes.
func names(all []string, most int) string {
	var some []string
	for _, name := range all[:min(len(all), maxShownNames)] {
		some = append(some, texts.Line(name, most))
	}
	if more := len(all) - len(some); more > 0 {
		some = append(some, fmt.Sprintf("%d more", more))
	}
	return orNone(strings.Join(some, ", "))
}

// prices compares the costs of pairs with the same models and tokens.
func prices(a, b *Batch, pairs []*pair) Aspect {
	priced := map[bool]string{true: "set", false: orNone("")}
	p := aspect("prices", priced[a.Priced], priced[b.Priced])
	for _, pair := range pairs {
		if x, y := pair.a, pair.b; x.Cost > 0 && y.Cost > 0 && x.Models == y.Models && x.Cost != y.Cost {
			p.B, p.Differs = "others: the same tokens cost otherwise", true
		}
	}
	return p
}

// cases compares the cases and their definitions.
func cases(a, b *Batch) Aspect {
	before := make(map[string]string, len(a.Cases))
	for i, name := range a.Cases {
		before[name] = a.Definitions[i]
	}
	common, changed := 0, 0
	for i, name := range b.Cases {
		if definition, also := before[name]; also {
			common++
			if definition != b.Definitions[i] {
				changed++
			}
		}
	}
	p := Aspect{"cases", fmt.Sprint(len(a.Cases)), fmt.Sprint(len(b.Cases)), common < max(len(a.Cases), len(b.Cases))}
	if changed > 0 {
		p.B, p.Differs = fmt.Sprintf("%s, of which %d have changed", p.B, changed), true
	}
	return p
}

// toolsWithout returns the tools that were called here and not in the other run.
func (b *Batch) toolsWithout(other *Batch) (only []string) {
	for _, name := range slices.Sorted(maps.Keys(b.groups[byTool])) {
		if other.groups[byTool][name] == nil {
			only = append(only, name)
		}
	}
	return only
}

// span tells when the questions began.
func (b *Batch) span() string {
	first, last := b.First.UTC(), b.Last.UTC().Format(time.DateTime)
	return first.Format(time.DateTime) + " to " + strings.TrimPrefix(last, first.Format(time.DateOnly+" ")) + " UTC"
}

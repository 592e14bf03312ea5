package search

import (
	"encoding/json"
	"maps"
	"slices"
	"sync/atomic"
	"unique"

	"github.com/agenticnexus/agenticnexus/internal/schema"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// The fields of a document. Weights are the value of one occurrence, pivots the normal length of a field in words, and
// slopes the discount of longer fields.
const (
	fieldName = iota
	fieldServer
	fieldDescription
	fieldParams
	fieldLabels
	fieldInstructions
	fieldCount
)

type fieldRule struct{ weight, pivot, slope float64 }

var fieldRules = [fieldCount]fieldRule{
	fieldName:        {3, 3, 0.3},
	fieldServer:      {3, 2, 0},
	fieldDescription: {0.6, 15, 0.5},
	fieldParams:      {0.6, 4, 0.5},
	fieldLabels:      {0.45, 20, 0.7},
	// All tools of a server share its instructions, so they weigh little.
	fieldInstructions: {0.15, 20, 0.7},
}

// Limits of the indexed text: words per field, and bytes of a server's instructions.
const (
	maxFieldWords   = 1000
	maxInstructions = 500
)

// weighted is a weighted stem of a tool.
type weighted struct {
	stem   stem
	weight float32 // field-weighted, length-normalised frequency
}

// document is an analysed tool. It never changes, except for its vector.
type document struct {
	tool   Tool
	words  []weighted // the name's first; those only in the server's instructions last
	named  int        // number of words in the name
	own    int        // number of words not only in the instructions
	text   textKey    // identifies its text for embeddings
	vector atomic.Pointer[vector]
}

// analyze returns a tool with its weighted stems.
func analyze(t Tool) *document {
	text := readSchema(t.InputSchema)
	weights, shared := map[string]float64{}, map[string]float64{}
	weigh(weights, fieldName, t.Name, t.Title)
	weigh(weights, fieldServer, t.Server)
	weigh(weights, fieldDescription, t.Description)
	weigh(weights, fieldParams, text.names...)
	weigh(weights, fieldLabels, text.labels...)
	weigh(shared, fieldInstructions, texts.Prefix(t.Instructions, maxInstructions))
	maps.DeleteFunc(shared, func(stem string, _ float64) bool { return weights[stem] > 0 })
	for _, s := range []string{t.Server, t.Name, t.Title} {
		for _, w := range joined(texts.Words(s)) {
			shared[compound+Stem(w)] = fieldRules[fieldName].weight
		}
	}
	own := len(weights)
	words := take(weights, t.Name)
	named := len(words)
	words = append(append(words, sorted(weights)...), sorted(shared)...)
	return &document{tool: t, words: words, named: named, own: own, text: keyOf(t.text(text.names))}
}

// compound begins the stem of two adjacent words of a name in one piece: "boxplot" for box_plot.
const compound = "+"

// joined returns each pair of adjacent words in one piece.
func joined(words []string) (pairs []string) {
	for i := 1; i < len(words); i++ {
		pairs = append(pairs, words[i-1]+words[i])
	}
	return pairs
}

// take removes the stems of a name from weights and returns them.
func take(weights map[string]float64, name string) (taken []weighted) {
	for _, w := range texts.Words(name) {
		s := Stem(w)
		if weight, ok := weights[s]; ok && !IsStopWord(w) {
			taken = append(taken, weighted{unique.Make(s), float32(weight)})
			delete(weights, s)
		}
	}
	return taken
}

// weigh adds the stems of one field to weights.
func weigh(weights map[string]float64, field int, values ...string) {
	rule := fieldRules[field]
	counts, n := map[string]float64{}, 0
	for _, s := range values {
		for _, w := range texts.Words(s) {
			if n >= maxFieldWords {
				break
			}
			if len(w) == 1 || field > fieldServer && IsStopWord(w) {
				continue
			}
			n++
			counts[Stem(w)]++
			for _, c := range ideographs(w) {
				counts[c] += hanWeight
			}
		}
	}
	norm := 1 - rule.slope + rule.slope*float64(n)/rule.pivot
	for stem, c := range counts {
		weights[stem] += rule.weight * c / norm
	}
}

func sorted(weights map[string]float64) []weighted {
	bag := make([]weighted, 0, len(weights))
	for _, s := range slices.Sorted(maps.Keys(weights)) {
		bag = append(bag, weighted{unique.Make(s), float32(weights[s])})
	}
	return bag
}

// schemaText holds the words of a JSON Schema to index.
type schemaText struct {
	names  []string // property names
	labels []string // titles, descriptions and enums of properties
}

// maxDepth limits the depth of indexed words in a schema.
const maxDepth = 6

func readSchema(raw json.RawMessage) (t schemaText) {
	if s, err := schema.Read(raw); err == nil {
		t.inside(s, 1)
	}
	return t
}

func (t *schemaText) inside(s *schema.Schema, depth int) {
	for _, p := range s.Properties {
		t.names = append(t.names, p.Name)
		t.label(p.Schema, depth)
	}
	for _, list := range [][]*schema.Schema{{s.Items, s.Additional}, s.PrefixItems, s.Alternatives} {
		for _, inner := range list {
			t.label(inner, depth)
		}
	}
}

func (t *schemaText) label(s *schema.Schema, depth int) {
	const maxChoices = 20
	if s == nil || depth > maxDepth {
		return
	}
	for _, text := range []string{s.Title, s.Description} {
		if text != "" {
			t.labels = append(t.labels, text)
		}
	}
	for _, v := range s.Enum[:min(len(s.Enum), maxChoices)] {
		var text string
		if json.Unmarshal(v, &text) == nil && text != "" {
			t.labels = append(t.labels, text)
		}
	}
	t.inside(s, depth+1)
}

package synth

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agenticnexus/agenticnexus/internal/llm"
)

// Bounds of the results in the prompt, in bytes.
const (
	maxResults = 32 << 10 // of all together, and so of a single one
	maxHead    = 1 << 10  // of the beginning of one that is cut; less if there are many
	maxWhole   = 64 << 10 // of a value that is reformatted before it is measured
	maxLooked  = 2 << 20  // of all together that are searched for passages
)

// excerpts returns the excerpt of each value for the model: the whole value if there is room, otherwise the passages
// that match the question, with … for omissions. Encoded data is omitted, too. It takes time linear in the searched
// bytes.
func excerpts(question string, values []json.RawMessage) []string {
	sizes := make([]int, len(values))
	for i, v := range values {
		sizes[i] = len(v)
	}
	look := share(sizes, maxLooked)
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = readable(v, look)
		sizes[i] = len(texts[i])
	}
	room := share(sizes, maxResults)
	var long []int
	left := maxResults
	for i, text := range texts {
		if len(text) <= room && len(values[i]) <= look {
			left -= len(text)
		} else {
			long = append(long, i)
		}
	}
	if len(long) == 0 {
		return texts
	}
	t := termsOf(question)
	head := min(maxHead, left/(2*len(long)))
	passages := make([][]passage, len(long))
	for i, l := range long {
		passages[i] = split(texts[l], head, t)
	}
	for i, chosen := range choose(passages, left) {
		l := long[i]
		texts[l] = joined(texts[l], chosen, max(len(texts[l]), len(values[l])))
	}
	return texts
}

// share returns the largest size per value at which all values fit into room. Small values leave their rest to others.
func share(sizes []int, room int) int {
	sorted := slices.Sorted(slices.Values(sizes))
	left := room
	for i, size := range sorted {
		if each := left / (len(sorted) - i); size > each {
			return each
		}
		left -= size
	}
	return room
}

// readable returns a value for a model: a string as its text, anything else as compact JSON. A long value is cut to
// limit bytes.
func readable(value json.RawMessage, limit int) string {
	if len(value) <= min(limit, maxWhole) {
		return llm.Excerpt(value, maxWhole)
	}
	if limit < len(value) {
		for limit > 0 && !utf8.RuneStart(value[limit]) {
			limit--
		}
		value = value[:limit]
	}
	if value[0] == '"' {
		text, _ := appendUnescaped(make([]byte, 0, len(value)), value[1:], true)
		return llm.WithoutBinary(strings.TrimSuffix(string(text), `"`))
	}
	return llm.WithoutBinary(string(value))
}

// joined joins passages and marks the omissions before, between and after them.
func joined(text string, passages []passage, total int) string {
	var out strings.Builder
	at := 0
	for _, p := range passages {
		if p.begin > at {
			gap(&out, text, at)
		}
		out.WriteString(text[p.begin:p.end])
		at = p.end
	}
	shown := out.Len()
	if at < len(text) || len(text) < total {
		gap(&out, text, at)
	}
	fmt.Fprintf(&out, " [cut: %d of %d bytes shown]", shown, total)
	return out.String()
}

// gap marks an omission, on its own line between lines.
func gap(out *strings.Builder, text string, at int) {
	out.WriteString("…")
	if at > 0 && text[at-1] == '\n' {
		out.WriteByte('\n')
	}
}

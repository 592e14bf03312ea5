package pins

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Field is a part of a definition that has changed, word by word.
type Field struct {
	Name  string `json:"name"` // of the part, such as description
	Words []Word `json:"words"`
}

// Word is a piece of text: common to both versions, or of one alone.
type Word struct {
	Change string `json:"change,omitempty"` // "", Removed or Added
	Text   string `json:"text"`             // hidden characters are written as <U+200B>
}

// Changes of a Word.
const (
	Removed = "removed"
	Added   = "added"
)

// String returns the words in one line: removed ones as [-text-], added ones as {+text+}.
func (f Field) String() string {
	var out strings.Builder
	out.WriteString(f.Name + ": ")
	for _, w := range f.Words {
		text := strings.ReplaceAll(w.Text, "\n", `\n`)
		switch w.Change {
		case Removed:
			text = "[-" + text + "-]"
		case Added:
			text = "{+" + text + "+}"
		}
		out.WriteString(text)
	}
	return out.String()
}

// Fields returns the parts that have changed, in a fixed order. There are none if a definition was not kept.
func (c *Change) Fields() []Field {
	if len(c.Latest.Definition) == 0 || len(c.Approved.Definition) == 0 && !c.Added() {
		return nil
	}
	before, after := parts(c.Approved.Definition), parts(c.Latest.Definition)
	var fields []Field
	others := maps.Clone(before) // variants of the names
	maps.Copy(others, after)
	for _, name := range members {
		delete(others, name)
	}
	for _, name := range slices.Concat(members, slices.Sorted(maps.Keys(others))) {
		if a, b := before[name], after[name]; a != b {
			fields = append(fields, Field{name, compare(words(a), words(b))})
		}
	}
	return fields
}

// parts returns the members of a definition as text.
func parts(definition json.RawMessage) map[string]string {
	out := map[string]string{}
	jsonrpc.Members(definition, func(name []byte, value jsonrpc.Span) bool {
		text := string(value.Of(definition))
		if text[0] == '"' {
			text = jsonrpc.Text([]byte(text))
		}
		out[texts.Reveal(string(name))] = texts.Reveal(text)
		return true
	})
	return out
}

// words splits text into words, spaces and single other characters.
func words(text string) []string {
	var out []string
	start, last := 0, 0
	for i, r := range text {
		kind := 3
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
			kind = 1
		case unicode.IsSpace(r):
			kind = 2
		}
		if i > start && (kind != last || kind == 3) {
			out = append(out, text[start:i])
			start = i
		}
		last = kind
	}
	if start < len(text) {
		out = append(out, text[start:])
	}
	return out
}

// maxCells bounds the work of a comparison. Beyond it, everything between the common ends counts as replaced.
const maxCells = 1 << 18

// compare returns the words of both texts, with as many as possible in common.
func compare(a, b []string) []Word {
	var out []Word
	add := func(change string, words ...string) {
		text := strings.Join(words, "")
		switch {
		case text == "":
		case len(out) > 0 && out[len(out)-1].Change == change:
			out[len(out)-1].Text += text
		default:
			out = append(out, Word{change, text})
		}
	}
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	add("", a[:head]...)
	a, b = a[head:], b[head:]
	tail := 0
	for tail < min(len(a), len(b)) && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	end := a[len(a)-tail:]
	a, b = a[:len(a)-tail], b[:len(b)-tail]
	if (len(a)+1)*(len(b)+1) > maxCells {
		add(Removed, a...)
		add(Added, b...)
		add("", end...)
		return out
	}
	// common[i][j] is the length of the longest common subsequence of a[i:] and b[j:].
	common := make([][]int32, len(a)+1)
	for i := range common {
		common[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			add("", a[i])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			add(Removed, a[i])
			i++
		default:
			add(Added, b[j])
			j++
		}
	}
	add("", end...)
	return out
}

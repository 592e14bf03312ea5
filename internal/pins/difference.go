package pins

import (
	"maps"
	"regexp"
	"slices"
	"strings"

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

// Fields returns the parts that have changed, in order of their names. There are none if a definition was not kept.
func (c *Change) Fields() (fields []Field) {
	if len(c.Latest.Definition) == 0 || len(c.Approved.Definition) == 0 && !c.Added() {
		return nil
	}
	before, after := parts(c.Approved.Definition), parts(c.Latest.Definition)
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if a, b := before[name], after[name]; a != b {
			fields = append(fields, Field{name, compare(words.FindAllString(a, -1), words.FindAllString(b, -1))})
		}
	}
	return fields
}

// parts returns the members of a definition as text.
func parts(definition []byte) map[string]string {
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

// words matches the words of a text, its spaces, and its other characters one by one.
var words = regexp.MustCompile(`[\pL\p{Nd}_]+|\s+|(?s:.)`)

// maxCells bounds the work of a comparison. Beyond it, everything between the common ends counts as replaced.
const maxCells = 1 << 18

// compare returns the words of both texts, with as many as possible in common.
func compare(a, b []string) (out []Word) {
	add := func(change string, words ...string) {
		text := strings.Join(words, "")
		switch last := len(out) - 1; {
		case text == "":
		case last >= 0 && out[last].Change == change:
			out[last].Text += text
		default:
			out = append(out, Word{change, text})
		}
	}
	head, tail := 0, 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	add("", a[:head]...)
	a, b = a[head:], b[head:]
	for tail < min(len(a), len(b)) && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	end := a[len(a)-tail:]
	a, b = a[:len(a)-tail], b[:len(b)-tail]
	if len(a)*len(b) <= maxCells {
		// common[i][j] is the length of the longest common subsequence of a[i:] and b[j:].
		common := make([][]int32, len(a)+1)
		for i := range common {
			common[i] = make([]int32, len(b)+1)
		}
		for i, x := range slices.Backward(a) {
			for j, y := range slices.Backward(b) {
				if x == y {
					common[i][j] = common[i+1][j+1] + 1
				} else {
					common[i][j] = max(common[i+1][j], common[i][j+1])
				}
			}
		}
		for i, j := 0, 0; len(a) > 0 && len(b) > 0; {
			switch {
			case a[0] == b[0]:
				add("", a[0])
				a, b, i, j = a[1:], b[1:], i+1, j+1
			case common[i+1][j] >= common[i][j+1]:
				add(Removed, a[0])
				a, i = a[1:], i+1
			default:
				add(Added, b[0])
				b, j = b[1:], j+1
			}
		}
	}
	add(Removed, a...)
	add(Added, b...)
	add("", end...)
	return out
}

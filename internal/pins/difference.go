package pins

import (
	"maps"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/pattern"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Field is a part of a definition that has changed, word by word.
type Field struct {
	Name  string        `json:"name"`  // of the part, such as description
	Words []texts.Piece `json:"words"` // hidden characters are written as <U+200B>
}

// String returns the words in one line: removed ones as [-text-], added ones as {+text+}.
func (f Field) String() string {
	var out strings.Builder
	out.WriteString(f.Name + ": ")
	for _, w := range f.Words {
		text := strings.ReplaceAll(w.Text, "\n", `\n`)
		switch w.Change {
		case texts.Removed:
			text = "[-" + text + "-]"
		case texts.Added:
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
			fields = append(fields, Field{name, texts.Compare(words().FindAllString(a, -1), words().FindAllString(b, -1))})
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
var words = pattern.New(`[\pL\p{Nd}_]+|\s+|(?s:.)`)

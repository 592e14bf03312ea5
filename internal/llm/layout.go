package llm

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/pattern"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// maxLayout is how deep values are laid out.
const maxLayout = 12

// Names of members with the text or the value of an object, the best first.
var (
	TextKeys  = []string{"snippet", "summary", "description", "text", "content", "body"}
	ValueKeys = []string{"result", "answer", "value", "output"}
)

// Layout returns a value for a model, without encoded binary data and secrets: a text as it is, also one that is alone
// in an object, anything else and JSON in such a text as compact JSON, in which texts of several lines stand as lines.
// Of a value of more than limit bytes it is the beginning. mask removes secrets.
func Layout(value json.RawMessage, limit int, mask func(string) string) string {
	value = unwrapped(value)
	if len(value) > limit {
		return mask(Beginning(value, limit))
	}
	var text string
	if bytes.HasPrefix(value, []byte(`"`)) && json.Unmarshal(value, &text) == nil {
		value = bytes.TrimSpace([]byte(text))
		if kind := jsontext.Value(value).Kind(); kind != '{' && kind != '[' || !json.Valid(value) {
			return mask(WithoutBinary(text))
		}
	}
	clean := jsontext.Value(mask(WithoutBinary(compact(value))))
	return mask(layout(clean, 0)) // once more, because lines are without the escapes of JSON
}

// LayoutExcerpt returns the [Layout] of a value like [Excerpt]: cut to limit bytes, and marked as cut.
func LayoutExcerpt(value json.RawMessage, limit int, mask func(string) string) string {
	look := max(8*limit, minMasked)
	text := Layout(value, look, mask)
	total := len(text)
	if len(value) > look {
		total = max(total+1, len(value))
	}
	return cut(text, total, limit)
}

// Beginning returns the first limit bytes of a value, of a string those of its text, without encoded binary data.
func Beginning(value json.RawMessage, limit int) string {
	text := texts.Prefix(string(value[:min(len(value), limit+1)]), limit)
	if strings.HasPrefix(text, `"`) {
		text = Unescaped(strings.TrimSuffix(text[1:], `"`))
	}
	return WithoutBinary(text)
}

var escapes = pattern.New(`(?:\\u[0-9A-Fa-f]{4})+|\\["\\/bfnrt]`)

// Unescaped replaces the escapes of JSON by their characters.
func Unescaped(text string) string {
	return escapes().ReplaceAllStringFunc(text, func(escape string) (chars string) {
		if i := strings.IndexByte("bfnrt", escape[1]); i >= 0 {
			return "\b\f\n\r\t"[i : i+1]
		}
		if escape[1] != 'u' {
			return escape[1:]
		}
		_ = json.Unmarshal([]byte(`"`+escape+`"`), &chars) // the pattern matches only valid escapes
		return chars
	})
}

// layout writes a value for a model: as compact JSON, but texts of several lines as lines, and what contains them as
// YAML does:
//
//	path: "a.txt"
//	content: |
//	  first line
//	  second line
func layout(value jsontext.Value, depth int) string {
	if depth == maxLayout || !bytes.Contains(value, []byte(`\n`)) {
		return string(value)
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(value), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if kind := d.PeekKind(); kind != '{' && kind != '[' {
		return string(value)
	}
	var out strings.Builder
	for _, _ = d.ReadToken(); d.PeekKind() != '}' && d.PeekKind() != ']'; {
		head := "-"
		if value[0] == '{' {
			name, err := d.ReadValue()
			if err != nil {
				return string(value)
			}
			if head = string(name) + ":"; plainName().Match(name) {
				head = string(name[1:len(name)-1]) + ":"
			}
		}
		item, err := d.ReadValue()
		if err != nil {
			return string(value)
		}
		if out.Len() > 0 {
			out.WriteByte('\n')
		}
		out.WriteString(head)
		text, several := severalLines(item)
		if several {
			out.WriteString(" |")
		} else if text = layout(item, depth+1); head != "-" {
			several = strings.Contains(text, "\n")
		}
		if several {
			text = "\n" + text
		} else {
			out.WriteByte(' ')
		}
		out.WriteString(strings.ReplaceAll(text, "\n", "\n  "))
	}
	return out.String()
}

// plainName matches the names of members that need no quotation marks.
var plainName = pattern.New(`^"[\w.-]+"$`)

// severalLines returns the text of a value that is a text of several lines.
func severalLines(value jsontext.Value) (text string, ok bool) {
	if value.Kind() != '"' || json.Unmarshal(value, &text) != nil {
		return "", false
	}
	text = strings.TrimRight(Lines(text), "\n")
	return text, strings.Contains(text, "\n")
}

// unwrapped returns the text in an object that only wraps it, such as the content of a file; otherwise the value.
func unwrapped(value json.RawMessage) json.RawMessage {
	for _, key := range slices.Concat(TextKeys, ValueKeys) {
		rest, ok := bytes.CutPrefix(value, []byte(`{"`+key+`":`))
		if !ok {
			continue
		}
		d := jsontext.NewDecoder(bytes.NewBuffer(rest))
		if text, err := d.ReadValue(); err == nil && text.Kind() == '"' && string(rest[d.InputOffset():]) == "}" {
			return json.RawMessage(text)
		}
	}
	return value
}

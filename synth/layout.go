package synth

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/llm"
)

// layout writes a value for a model: as compact JSON, but texts of several lines as lines, and what contains them as
// YAML does:
//
//	path: "a.txt"
//	content: |
//	  first line
//	  second line
func layout(value jsontext.Value, depth int) string {
	if depth == maxDepth || !bytes.Contains(value, []byte(`\n`)) {
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
			if head = string(name) + ":"; plainName.Match(name) {
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
var plainName = regexp.MustCompile(`^"[\w.-]+"$`)

// severalLines returns the text of a value that is a text of several lines.
func severalLines(value jsontext.Value) (text string, ok bool) {
	if value.Kind() != '"' || json.Unmarshal(value, &text) != nil {
		return "", false
	}
	text = strings.TrimRight(llm.Lines(text), "\n")
	return text, strings.Contains(text, "\n")
}

// unwrapped returns the text in an object that only wraps it, such as the content of a file; otherwise the value.
func unwrapped(value json.RawMessage) json.RawMessage {
	for _, key := range slices.Concat(textKeys, valueKeys) {
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

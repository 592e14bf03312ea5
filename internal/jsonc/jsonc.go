// Package jsonc edits JSON files of people: with comments, trailing commas and any formatting. [Set] and [Remove]
// change one member and keep every other byte; Remove undoes a Set that has added a member to an object with members.
// [Members] reads an object. A path names members from the root downward. All functions leave their input as it is.
package jsonc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// Error is a mistake in a text.
type Error struct {
	Line, Column int // from 1; the column in characters
	Message      string
}

func (e *Error) Error() string { return e.Message }

// Member is a member of an object.
type Member struct {
	Name  string
	Value any // what encoding/json encodes; json.RawMessage in a Member that was read
}

// Object is a JSON object whose members keep their order.
type Object []Member

// MarshalJSON implements json.Marshaler.
func (o Object) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			out = append(out, ',')
		}
		for j, v := range []any{m.Name, m.Value} {
			if j > 0 {
				out = append(out, ':')
			}
			raw, err := encode(v, "", "")
			if err != nil {
				return nil, err
			}
			out = append(out, raw...)
		}
	}
	return append(out, '}'), nil
}

// encode returns a value as JSON, on one line if indent is empty. It escapes no more characters than JSON needs.
func encode(v any, prefix, indent string) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, indent)
	err := e.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// Standardize returns a text as JSON without comments and trailing commas. Offsets stay the same.
func Standardize(text []byte) ([]byte, error) {
	plain, err := hujson.Standardize(lenient(text)) // it overwrites its input
	if err != nil {
		return nil, syntax(text, err)
	}
	return plain[:len(text)], nil
}

// bom may begin a text.
var bom = []byte("\ufeff")

// lenient returns a copy of a text without what the parser does not take: a byte order mark, and a comment that ends
// with the text. Offsets stay the same.
func lenient(text []byte) []byte {
	text = append(bytes.Clone(text), '\n')
	if bytes.HasPrefix(text, bom) {
		copy(text, "   ")
	}
	return text
}

// syntax returns an error of the parser as an Error.
func syntax(text []byte, err error) error {
	message := "invalid JSON: " + err.Error()[strings.LastIndex(err.Error(), ": ")+2:]
	line, column := 0, 0
	_, _ = fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column)
	at := 0
	for range line - 1 {
		next := bytes.IndexByte(text[at:], '\n') + 1
		if next == 0 {
			return mistake(text, len(text), "%s", message) // in the line that the parser was given
		}
		at += next
	}
	return mistake(text, min(at+max(column-1, 0), len(text)), "%s", message)
}

// mistake returns an Error at an offset.
func mistake(text []byte, at int, format string, args ...any) error {
	before := text[:at]
	begin := bytes.LastIndexByte(before, '\n') + 1
	return &Error{bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[begin:]) + 1, fmt.Sprintf(format, args...)}
}

// parse returns the root of a text, which is an object. An empty text is an empty object.
func parse(text []byte) (_ []byte, root *hujson.Value, err error) {
	if len(bytes.TrimSpace(bytes.TrimPrefix(text, bom))) == 0 {
		text = append(text[:len(text):len(text)], "{}\n"...)
	}
	v, err := hujson.Parse(lenient(text))
	if err != nil {
		return nil, nil, syntax(text, err)
	}
	return text, &v, nil
}

// object returns the object that v is. name is for the error.
func object(text []byte, v *hujson.Value, name string) (*hujson.Object, error) {
	if o, ok := v.Value.(*hujson.Object); ok {
		return o, nil
	}
	return nil, mistake(text, v.StartOffset, "%s is not an object", name)
}

// find follows a path as far as it exists. It returns the last object on it, the number of the member there, -1 if
// there is none, and how many names it has used before.
func find(text []byte, root *hujson.Value, path []string) (at *hujson.Value, member, depth int, err error) {
	at, name := root, "the file"
	for depth = range path {
		o, err := object(text, at, name)
		if err != nil {
			return nil, 0, 0, err
		}
		member = -1
		for i, m := range o.Members {
			if m.Name.Value.(hujson.Literal).String() != path[depth] {
				continue
			}
			if member >= 0 {
				return nil, 0, 0, mistake(text, m.Name.StartOffset, "%q is there twice; keep one", path[depth])
			}
			member = i
		}
		if member < 0 || depth == len(path)-1 {
			break
		}
		at, name = &o.Members[member].Value, path[depth]
	}
	return at, member, depth, nil
}

// Members returns the members of the object at a path, none if it is not there. Without a path it is the whole text.
func Members(text []byte, path ...string) (Object, error) {
	text, root, err := parse(text)
	if err != nil {
		return nil, err
	}
	at, member, _, err := find(text, root, path)
	if err != nil || member < 0 {
		return nil, err
	}
	name := "the file"
	if len(path) > 0 {
		at, name = &at.Value.(*hujson.Object).Members[member].Value, path[len(path)-1]
	}
	o, err := object(text, at, name)
	if err != nil {
		return nil, err
	}
	var all Object
	for _, m := range o.Members {
		raw := m.Value.Clone()
		raw.Standardize()
		all = append(all, Member{m.Name.Value.(hujson.Literal).String(), json.RawMessage(bytes.TrimSpace(raw.Pack()))})
	}
	return all, nil
}

// Set sets the member at a path, and makes the objects above it that are not there. Text that has that value already,
// in any formatting, is returned as it is.
func Set(text []byte, value any, path ...string) ([]byte, error) {
	text, root, err := parse(text)
	if err != nil {
		return nil, err
	}
	at, member, depth, err := find(text, root, path)
	if err != nil {
		return nil, err
	}
	s := styleOf(text, root)
	if member >= 0 {
		old := at.Value.(*hujson.Object).Members[member].Value
		raw, err := s.encode(value, s.indent(old.StartOffset))
		if err != nil {
			return nil, err
		}
		was := old.Clone()
		was.Standardize()
		if equal(was.Pack(), raw) {
			return text, nil
		}
		return splice(text, old.StartOffset, old.EndOffset, string(raw)), nil
	}
	for _, name := range slices.Backward(path[depth+1:]) {
		value = Object{{name, value}}
	}
	return s.insert(at, path[depth], value)
}

// equal reports whether two JSON texts mean the same.
func equal(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// splice replaces text[from:to].
func splice(text []byte, from, to int, by string) []byte {
	return slices.Concat(text[:from], []byte(by), text[to:])
}

const space = " \t\r\n"

// Remove removes the member at a path, if it is there, with the space and the comma that belong to it. Comments stay.
func Remove(whole []byte, path ...string) ([]byte, error) {
	text, root, err := parse(whole)
	if err != nil {
		return nil, err
	}
	at, i, depth, err := find(text, root, path)
	if err != nil || i < 0 || depth < len(path)-1 {
		return whole, err
	}
	members := at.Value.(*hujson.Object).Members
	name, value := members[i].Name.StartOffset, members[i].Value
	from := len(bytes.TrimRight(text[:name], space))
	to := value.EndOffset + len(value.AfterExtra) // of the comma, or of the end of the object
	switch {
	case text[to] == ',':
		to++
		rest := bytes.TrimLeft(text[to:], " \t")
		ends := slices.ContainsFunc([]string{"\n", "\r\n", "//"}, func(end string) bool {
			return bytes.HasPrefix(rest, []byte(end))
		})
		if begins := bytes.IndexByte(text[from:name], '\n') >= 0; !ends && (begins || i == 0) {
			from, to = name, len(text)-len(rest) // the next member takes its place
		}
		text = splice(text, from, to, "")
	case i > 0:
		before := members[i-1].Value
		comma := before.EndOffset + len(before.AfterExtra)
		text = splice(splice(text, from, value.EndOffset, ""), comma, comma+1, "")
	default:
		text = splice(text, from, value.EndOffset, "")
	}
	if len(members) > 1 {
		return text, nil
	}
	open := at.StartOffset + 1
	if inner := len(text[open:]) - len(bytes.TrimLeft(text[open:], space)); text[open+inner] == '}' {
		text = splice(text, open, open+inner, "")
	}
	return text, nil
}

// style is how a text is written.
type style struct {
	text    []byte
	unit    string // of indentation
	newline string
	compact bool // on one line
}

func styleOf(text []byte, root *hujson.Value) style {
	s := style{text, "  ", "\n", false}
	if bytes.Contains(text, []byte("\r\n")) {
		s.newline = "\r\n"
	}
	o, ok := root.Value.(*hujson.Object)
	if !ok || len(o.Members) == 0 {
		return s
	}
	s.compact = !bytes.Contains(text[root.StartOffset:root.EndOffset], []byte("\n"))
	if unit := s.indent(o.Members[0].Name.StartOffset); unit != "" {
		s.unit = unit
	}
	return s
}

// indent returns the indentation of the line of an offset.
func (s style) indent(at int) string {
	line := s.text[bytes.LastIndexByte(s.text[:at], '\n')+1 : at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// encode returns a value as the text writes it, in a line with an indentation.
func (s style) encode(value any, indent string) ([]byte, error) {
	if s.compact {
		return encode(value, "", "")
	}
	raw, err := encode(value, indent, s.unit)
	return bytes.ReplaceAll(raw, []byte("\n"), []byte(s.newline)), err
}

// insert adds a member at the end of an object.
func (s style) insert(at *hujson.Value, name string, value any) ([]byte, error) {
	o, err := object(s.text, at, "the value")
	if err != nil {
		return nil, err
	}
	outer := s.indent(at.StartOffset)
	inner := outer + s.unit
	colon, before, after := ": ", s.newline+inner, s.newline+outer
	if len(o.Members) > 0 {
		if own := s.indent(o.Members[0].Name.StartOffset); len(own) > len(outer) {
			inner, before = own, s.newline+own
		}
	}
	if s.compact {
		colon, before, after = ":", "", ""
		if bytes.Contains(s.text, []byte(`": `)) {
			colon, before = ": ", " "
		}
	}
	raw, err := s.encode(value, inner)
	if err != nil {
		return nil, err
	}
	quoted, err := encode(name, "", "")
	if err != nil {
		return nil, err
	}
	end := at.EndOffset - 1 // of the brace
	from := len(bytes.TrimRight(s.text[:end], space))
	member := before + string(quoted) + colon + string(raw)
	if len(o.Members) == 0 {
		if s.compact {
			member = strings.TrimPrefix(member, " ")
		}
		return splice(s.text, from, end, member+after), nil
	}
	last := o.Members[len(o.Members)-1].Value
	comma := last.EndOffset + len(last.AfterExtra)
	trailing := s.text[comma] == ','
	if trailing {
		member += ","
	}
	if !s.compact && !bytes.Contains(s.text[from:end], []byte("\n")) {
		member += after
	}
	text := splice(s.text, from, from, member)
	if !trailing {
		text = splice(text, last.EndOffset, last.EndOffset, ",")
	}
	return text, nil
}

// At returns an error with its file and, of a mistake, the place there: "file:line:column: message".
func At(file string, err error) error {
	wrong := (*Error)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return fmt.Errorf("%s:%d:%d: %w", file, wrong.Line, wrong.Column, err)
	}
	return fmt.Errorf("%s: %w", file, err)
}

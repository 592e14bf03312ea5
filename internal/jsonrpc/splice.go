package jsonrpc

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Span is the position of a value in a raw text: raw[Start:End]. The zero Span means not found.
type Span struct{ Start, End int }

// Found reports whether the value was found.
func (s Span) Found() bool { return s.End > 0 }

// Of returns the bytes of the value in raw; nil if it was not found.
func (s Span) Of(raw []byte) []byte {
	if !s.Found() {
		return nil
	}
	return raw[s.Start:s.End]
}

// Members calls visit with the decoded name and the position of each member of a valid raw object, in order, until
// visit returns false. Values other than objects have no members.
func Members(object []byte, visit func(name []byte, value Span) bool) {
	i := skipSpace(object, 0)
	if i >= len(object) || object[i] != '{' {
		return
	}
	i = skipSpace(object, i+1)
	for i < len(object) && object[i] == '"' {
		length := stringEnd(object[i:])
		name := unquoteKey(object[i : i+length])
		i = skipSpace(object, i+length)
		i = skipSpace(object, i+1) // the colon
		end := valueEnd(object, i)
		if !visit(name, Span{i, end}) {
			return
		}
		i = skipSpace(object, end)
		if i < len(object) && object[i] == ',' {
			i = skipSpace(object, i+1)
		}
	}
}

// Elements returns the raw elements of a valid raw array; nil for anything else.
func Elements(array []byte) [][]byte {
	i := skipSpace(array, 0)
	if i >= len(array) || array[i] != '[' {
		return nil
	}
	var out [][]byte
	i = skipSpace(array, i+1)
	for i < len(array) && array[i] != ']' {
		end := valueEnd(array, i)
		out = append(out, array[i:end])
		i = skipSpace(array, end)
		if i < len(array) && array[i] == ',' {
			i = skipSpace(array, i+1)
		}
	}
	return out
}

// Find returns the position of the named member of a valid raw object. ambiguous reports whether it occurs twice or
// also in another case: parsers may disagree about such a member, so it must not be used for routing.
func Find(object []byte, name string) (value Span, ambiguous bool) {
	Members(object, func(n []byte, v Span) bool {
		switch {
		case string(n) == name:
			ambiguous = ambiguous || value.Found()
			value = v
		case len(n) >= len(name) && strings.EqualFold(string(n), name):
			ambiguous = true
		}
		return true
	})
	return value, ambiguous
}

// Get returns the raw value at a path of member names in a valid raw object; nil if there is none. If a name occurs
// twice, the last one counts, as in encoding/json.
func Get(object []byte, path ...string) []byte {
	for _, name := range path {
		value, _ := Find(object, name)
		if object = value.Of(object); object == nil {
			return nil
		}
	}
	return object
}

// Edit replaces raw[Start:End] by With.
type Edit struct {
	Span
	With []byte
}

// Splice returns raw with the edits applied. The edits must be in order and must not overlap.
func Splice(raw []byte, edits ...Edit) []byte {
	n := len(raw)
	for _, e := range edits {
		n += len(e.With) - (e.End - e.Start)
	}
	out := make([]byte, 0, n)
	at := 0
	for _, e := range edits {
		out = append(out, raw[at:e.Start]...)
		out = append(out, e.With...)
		at = e.End
	}
	return append(out, raw[at:]...)
}

// Set returns a valid raw object with the named member set to a raw value: replaced in place, or prepended if
// missing. A nil object counts as {}.
func Set(object []byte, name string, value []byte) []byte {
	if span, _ := Find(object, name); span.Found() {
		return Splice(object, Edit{span, value})
	}
	member, _ := jsontext.AppendQuote(nil, name)
	member = append(append(member, ':'), value...)
	open := bytes.IndexByte(object, '{')
	if open < 0 {
		return append(append([]byte{'{'}, member...), '}')
	}
	if next := skipSpace(object, open+1); next < len(object) && object[next] == '"' {
		member = append(member, ',')
	}
	return Splice(object, Edit{Span{open + 1, open + 1}, member})
}

// Remove returns a valid raw object without the members of a name.
func Remove(object []byte, name string) []byte {
	return Map(object, func(n, value []byte) []byte {
		if string(n) == name {
			return nil
		}
		return value
	})
}

// Map returns a valid raw object with the raw values that f returns for its members, without those for which f returns
// nil. It returns object itself, in which values other than objects have no members, if f changes nothing.
func Map(object []byte, f func(name, value []byte) []byte) []byte {
	out, changed := []byte{'{'}, false
	Members(object, func(name []byte, v Span) bool {
		value := f(name, v.Of(object))
		if changed = changed || !bytes.Equal(value, v.Of(object)); value == nil {
			return true
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out, _ = jsontext.AppendQuote(out, name)
		out = append(append(out, ':'), value...)
		return true
	})
	if !changed {
		return object
	}
	return append(out, '}')
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// stringEnd returns the index after the string that starts at b[0]. A quote ends it unless an odd number of
// backslashes precedes it. b must be valid.
func stringEnd(b []byte) int {
	for i := 1; ; i++ {
		quote := bytes.IndexByte(b[i:], '"')
		if quote < 0 {
			return len(b)
		}
		i += quote
		slashes := 0
		for b[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
}

// valueEnd returns the index after the value that starts at b[i]. b must be valid.
func valueEnd(b []byte, i int) int {
	if i >= len(b) {
		return i
	}
	switch b[i] {
	case '"':
		return i + stringEnd(b[i:])
	case '{', '[':
		depth := 0
		for i < len(b) {
			switch b[i] {
			case '"':
				i += stringEnd(b[i:])
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return i
	}
	for i < len(b) {
		switch b[i] {
		case ',', '}', ']', ' ', '\n', '\t', '\r':
			return i
		}
		i++
	}
	return i
}

// At returns the position of part in raw, of which it is a slice.
func At(raw, part []byte) Span {
	start := cap(raw) - cap(part)
	return Span{start, start + len(part)}
}

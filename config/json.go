package config

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// parseJSON reads a JSON file. Comments and trailing commas are ignored.
func parseJSON(file string, data []byte) (*node, error) {
	data = blankComments(data)
	r := &jsonReader{data: data, here: position{file, 1, 1}}
	if len(bytes.TrimSpace(data)) == 0 {
		return &node{at: r.at(0)}, nil
	}
	r.dec = jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))
	root, err := r.read()
	if err == nil {
		if rest := data[r.dec.InputOffset():]; len(bytes.TrimSpace(rest)) > 0 {
			return nil, r.fail(r.start(), "unexpected text after the JSON value")
		}
		return root, nil
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return nil, r.fail(int(syntax.ByteOffset), "invalid JSON: %v", syntax.Err)
	}
	if listed := (*Error)(nil); errors.As(err, &listed) || errors.Is(err, errTooMany) {
		return nil, err
	}
	return nil, r.fail(len(data), "invalid JSON: %v", err)
}

// jsonReader turns JSON tokens into nodes.
type jsonReader struct {
	data   []byte
	dec    *jsontext.Decoder
	here   position // of offset
	offset int
}

// at returns the position of an offset, its column in characters. Offsets never go back.
func (r *jsonReader) at(offset int) position {
	passed := r.data[r.offset:max(min(offset, len(r.data)), r.offset)]
	r.offset += len(passed)
	if n := bytes.Count(passed, []byte("\n")); n > 0 {
		r.here.line += n
		r.here.column = 1
		passed = passed[bytes.LastIndexByte(passed, '\n')+1:]
	}
	r.here.column += utf8.RuneCount(passed)
	return r.here
}

func (r *jsonReader) fail(offset int, format string, args ...any) error {
	return problemAt(r.at(offset), format, args...)
}

// start returns the offset of the next token.
func (r *jsonReader) start() int {
	offset := int(r.dec.InputOffset())
	rest := bytes.TrimLeft(r.data[offset:], " \t\r\n,:")
	return len(r.data) - len(rest)
}

func (r *jsonReader) read() (*node, error) {
	n := &node{at: r.at(r.start())}
	token, err := r.dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch k := token.Kind(); k {
	case jsontext.KindNull:
	case jsontext.KindTrue, jsontext.KindFalse:
		n.kind, n.text = boolean, token.String()
	case jsontext.KindNumber:
		n.kind, n.text = number, token.String()
	case jsontext.KindString:
		n.kind, n.text = text, token.String()
	case jsontext.KindBeginArray:
		n.kind = list
		for r.dec.PeekKind() != jsontext.KindEndArray {
			item, err := r.read()
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
		_, err = r.dec.ReadToken()
	case jsontext.KindBeginObject:
		n.kind = mapping
		for r.dec.PeekKind() != jsontext.KindEndObject {
			at := r.at(r.start())
			key, err := r.dec.ReadToken()
			if err != nil {
				return nil, err
			}
			name := key.String()
			value, err := r.read()
			if err != nil {
				return nil, err
			}
			n.members = append(n.members, member{name, at, value})
		}
		_, err = r.dec.ReadToken()
	default:
		return nil, fmt.Errorf("unexpected %v", k)
	}
	if err != nil {
		return nil, err
	}
	return n, n.countNodes()
}

// blankComments returns data with // and /* */ comments and commas before a closing bracket replaced by blanks. Offsets
// stay the same.
func blankComments(data []byte) []byte {
	out := bytes.Clone(data)
	comma := -1 // of the last comma, if only blanks follow
	for i := 0; i < len(out); {
		switch c := out[i]; {
		case c == '"':
			comma = -1
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
			i++
		case c == '/' && i+1 < len(out) && (out[i+1] == '/' || out[i+1] == '*'):
			end := len(out)
			if out[i+1] == '/' {
				if n := bytes.IndexByte(out[i:], '\n'); n >= 0 {
					end = i + n
				}
			} else if n := bytes.Index(out[i+2:], []byte("*/")); n >= 0 {
				end = i + 2 + n + 2
			}
			for ; i < end; i++ {
				if out[i] != '\n' {
					out[i] = ' '
				}
			}
		default:
			switch c {
			case ',':
				comma = i
			case ']', '}':
				if comma >= 0 {
					out[comma] = ' '
				}
				comma = -1
			case ' ', '\t', '\r', '\n':
			default:
				comma = -1
			}
			i++
		}
	}
	return out
}

package plan

import (
	"bytes"
	"errors"
	"iter"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/short"
)

var (
	errUnfinished = errors.New("the text ends inside a JSON value")
	errTooDeep    = errors.New("nested deeper than 64 levels")
)

// newDecoder returns a decoder that allows repeated names. It uses the memory of value.
func newDecoder(value []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(value), jsontext.AllowDuplicateNames(true))
}

// memberSeq yields the members of an object. It ends early if the value is not an object or is broken. A value is valid
// until the next one is yielded.
func memberSeq(object jsontext.Value) iter.Seq2[string, jsontext.Value] {
	return func(yield func(string, jsontext.Value) bool) {
		d := newDecoder(object)
		if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
			return
		}
		for d.PeekKind() == '"' {
			t, err := d.ReadToken()
			if err != nil {
				return
			}
			name := t.String()
			value, err := d.ReadValue()
			if err != nil || !yield(name, value) {
				return
			}
		}
	}
}

// elements returns the elements of an array, false if the value is not an array or is broken.
func elements(array jsontext.Value) ([]jsontext.Value, bool) {
	d := newDecoder(array)
	if t, err := d.ReadToken(); err != nil || t.Kind() != '[' {
		return nil, false
	}
	var list []jsontext.Value
	for d.PeekKind() != ']' {
		value, err := d.ReadValue()
		if err != nil {
			return nil, false
		}
		list = append(list, value.Clone())
	}
	return list, true
}

// unquote returns the text of a valid JSON string.
func unquote(value []byte) string {
	text, _ := jsontext.AppendUnquote(nil, value)
	return string(text)
}

// appendQuoted appends text as a JSON string; invalid UTF-8 becomes U+FFFD.
func appendQuoted(dst []byte, text string) []byte {
	dst, _ = jsontext.AppendQuote(dst, text)
	return dst
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "boolean"
	case '"':
		return "string"
	case '0':
		return "number"
	case '[':
		return "array"
	case '{':
		return "object"
	}
	return "nothing"
}

// quoteShort quotes untrusted text for a message.
func quoteShort(text string) string { return strconv.Quote(short.Text(text, 100)) }

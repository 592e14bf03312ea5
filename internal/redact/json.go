package redact

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// JSON redacts JSON values: it replaces the texts, numbers, lists and objects in members with credential names, but
// not the schemas of such members. It passes all other texts through text. Unchanged bytes stay the same. The error
// reports invalid syntax.
func JSON(raw []byte, text func(string) string) ([]byte, error) { return walkJSON(raw, text, false) }

// mapTexts passes all texts of a JSON value, also member names, through text; invalid JSON as a whole.
func mapTexts(raw []byte, text func(string) string) []byte {
	out, err := walkJSON(raw, text, true)
	if err != nil {
		return []byte(text(string(raw)))
	}
	return out
}

// walkJSON implements JSON; nameless means that names have no meaning.
func walkJSON(raw []byte, text func(string) string, nameless bool) ([]byte, error) {
	lenient := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
	w := walk{raw: raw, in: jsontext.NewDecoder(bytes.NewBuffer(raw), lenient...), frames: []frame{{}}, nameless: nameless}
	for {
		err := w.next(text)
		switch {
		case errors.Is(err, io.EOF):
			return append(w.out, raw[w.copied:]...), nil
		case err != nil:
			return nil, err
		}
	}
}

// walk traverses JSON values.
type walk struct {
	raw    []byte
	in     *jsontext.Decoder
	out    []byte
	copied int // bytes of raw already written to out
	frames []frame

	nameless bool // names have no meaning
}

// frame is an open object or list.
type frame struct {
	object  bool
	valued  bool // object: a value comes next, not a name
	schemas bool // object: its members are JSON Schemas
	name    string
	kind    kind // kind of the next value
	list    kind // list: kind of its values
	paired  bool // object: its member "name" is a credential name
}

// next reads a name, a value, or the start or end of an object or list.
func (w *walk) next(text func(string) string) error {
	f := &w.frames[len(w.frames)-1]
	if w.nameless {
		f.kind = open
	}
	kind := w.in.PeekKind()
	if f.hides(kind) {
		value, err := w.in.ReadValue()
		if err != nil {
			return err
		}
		w.put(len(value), Mark)
		f.done("")
		return nil
	}
	begin := w.in.InputOffset()
	token, err := w.in.ReadToken()
	if err != nil {
		return err
	}
	switch kind {
	case '{':
		w.frames = append(w.frames, frame{object: true, schemas: f.valued && slices.Contains(schemas, f.name)})
	case '[':
		list := frame{}
		if f.kind == tokens {
			list.kind, list.list = tokens, tokens
		}
		w.frames = append(w.frames, list)
	case '}', ']':
		w.frames = w.frames[:len(w.frames)-1]
		w.frames[len(w.frames)-1].done("")
	case '"':
		value := token.String()
		clean := text(value)
		if f.kind == tokens && !isNumber(value) {
			clean = Mark
		}
		if clean != value {
			w.put(len(bytes.TrimLeft(w.raw[begin:w.in.InputOffset()], " \t\r\n,:")), clean)
		}
		if f.object && !f.valued {
			f.named(value)
		} else {
			f.done(value)
		}
	default:
		f.done("")
	}
	return nil
}

// put replaces the last size bytes read by a text.
func (w *walk) put(size int, text string) {
	end := int(w.in.InputOffset())
	w.out = append(w.out, w.raw[w.copied:end-size]...)
	w.out, _ = jsontext.AppendQuote(w.out, text) // invalid UTF-8 is replaced
	w.copied = end
}

// schemas are members whose values map names to schemas of values with these names.
var schemas = []string{"properties", "patternProperties", "$defs", "definitions"}

// hides reports whether the next value must be replaced as a whole.
func (f *frame) hides(kind jsontext.Kind) bool {
	switch kind {
	case '"', '0', '[':
		return f.kind == secret
	case '{':
		return f.kind == secret && !f.schemas
	}
	return false
}

// named records the name of the next value.
func (f *frame) named(name string) {
	f.valued, f.name, f.kind = true, name, kindOf(name, 0)
	if f.paired && (name == "value" || name == "values") {
		f.kind = secret
	}
}

// done records the end of a value and its text.
func (f *frame) done(text string) {
	if f.object {
		f.paired = f.paired || (f.name == "name" || f.name == "key") && Name(text)
		f.valued, f.kind = false, open
		return
	}
	f.kind = f.list
	if flag := strings.TrimLeft(text, "-"); flag != text && Name(flag) {
		f.kind = secret // the next element is its value
	}
}

// isNumber reports whether a text is a number.
func isNumber(text string) bool { return strings.Trim(text, "0123456789.,_+- ") == "" }

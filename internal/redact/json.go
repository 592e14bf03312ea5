package redact

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// JSON returns JSON values without what members with names of credentials hold: texts, numbers, lists and objects, but
// not the schemas of such members. All other texts are cleaned by text. What does not change stays byte for byte. The
// error is about the syntax.
func JSON(raw []byte, text func(string) string) ([]byte, error) {
	lenient := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
	w := walk{raw: raw, in: jsontext.NewDecoder(bytes.NewBuffer(raw), lenient...), frames: []frame{{}}}
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

// walk goes through JSON values.
type walk struct {
	raw    []byte
	in     *jsontext.Decoder
	out    []byte
	copied int // bytes of raw that are in out, changed or not
	frames []frame
}

// frame is an object or a list that the walk is in.
type frame struct {
	object  bool
	valued  bool // object: the next is a value, not a name
	schemas bool // object: its members are JSON Schemas
	name    string
	kind    kind // of the next value
	list    kind // list: of its values
	paired  bool // object: its member "name" has the name of a credential
}

// next reads a name, a value, or the beginning or the end of an object or a list.
func (w *walk) next(text func(string) string) error {
	f := &w.frames[len(w.frames)-1]
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

// put writes a text in place of the last bytes that were read.
func (w *walk) put(size int, text string) {
	end := int(w.in.InputOffset())
	w.out = append(w.out, w.raw[w.copied:end-size]...)
	w.out, _ = jsontext.AppendQuote(w.out, text) // invalid UTF-8 is replaced
	w.copied = end
}

// schemas are members whose members are schemas, named like what they describe.
var schemas = []string{"properties", "patternProperties", "$defs", "definitions"}

// hides reports whether the next value is a credential whatever is in it.
func (f *frame) hides(kind jsontext.Kind) bool {
	switch kind {
	case '"', '0', '[':
		return f.kind == secret
	case '{':
		return f.kind == secret && !f.schemas
	}
	return false
}

// named notes the name of the next value.
func (f *frame) named(name string) {
	f.valued, f.name, f.kind = true, name, kindOf(name, 0)
	if f.paired && (name == "value" || name == "values") {
		f.kind = secret
	}
}

// done notes that a value ends, with its text.
func (f *frame) done(text string) {
	if f.object {
		f.paired = f.paired || (f.name == "name" || f.name == "key") && Name(text)
		f.valued, f.kind = false, open
		return
	}
	f.kind = f.list
	if flag := strings.TrimLeft(text, "-"); flag != text && Name(flag) {
		f.kind = secret // the next is its value
	}
}

// isNumber reports whether a text is an amount.
func isNumber(text string) bool { return strings.Trim(text, "0123456789.,_+- ") == "" }

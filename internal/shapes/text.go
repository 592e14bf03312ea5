package shapes

import (
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Bounds of the form of a text.
const (
	maxForm = 24  // bytes
	maxLine = 240 // bytes read of a line
)

// formMarks are the characters that a form keeps.
const formMarks = "[](){}<>:;,./|#*=-_+@&?% "

// Text is what is known of texts.
type Text struct {
	Form  string `json:"form,omitempty"`  // of each text, or of each line; see formOf
	Lines bool   `json:"lines,omitempty"` // some have several lines
	JSON  *Shape `json:"json,omitempty"`  // of what is in them, if all are JSON
}

// readText returns the shape of a text.
func readText(text string, depth int, room *int) Shape {
	s := Shape{Types: []string{"string"}}
	inner := jsontext.Value(strings.TrimSpace(text))
	if kind := inner.Kind(); (kind == '{' || kind == '[') && inner.IsValid(jsontext.AllowDuplicateNames(true)) {
		if in, err := read(newDecoder(inner), depth+1, room); err == nil {
			s.JSON = &in
			return s
		}
	}
	n := 0
	for line := range texts.Lines(text) {
		if n++; n > maxSample {
			break
		}
		if n == 1 {
			s.Form = formOf(line)
		} else if s.Lines = true; strings.TrimSpace(line) != "" {
			s.Form = common(s.Form, formOf(line))
		}
	}
	return s
}

// merge makes t what is known of the texts of both.
func (t *Text) merge(o Text) {
	t.Form, t.Lines = common(t.Form, o.Form), t.Lines || o.Lines
	if t.JSON == nil || o.JSON == nil {
		t.JSON = nil
		return
	}
	t.JSON.merge(*o.JSON)
}

// clean reports whether what a file says of texts could have been learned.
func (t *Text) clean(depth int) bool {
	return len(t.Form) <= maxForm+len("…") && strings.Trim(t.Form, "x0…"+formMarks) == "" && (t.JSON == nil || t.JSON.clean(depth+1))
}

// String writes the type of texts, such as string of lines like "[x] x.x".
func (t *Text) String() string {
	name := "string"
	switch {
	case t.JSON != nil:
		return name + " of JSON " + t.JSON.String()
	case t.Lines:
		name += " of lines"
	}
	if t.Form != "" {
		name += ` like "` + t.Form + `"`
	}
	return name
}

// formOf returns the form of a line: its marks, with x for words and 0 for numbers, such as [x] x.x. It has nothing
// else of the line, and is empty for plain words.
func formOf(line string) string {
	var form strings.Builder
	last := ' '
	for _, r := range texts.Prefix(line, maxLine) {
		switch {
		case unicode.IsDigit(r):
			r = '0'
		case unicode.IsSpace(r):
			r = ' '
		case !strings.ContainsRune(formMarks, r):
			r = 'x'
		}
		if r != last || !strings.ContainsRune("x0 ", r) {
			form.WriteRune(r)
		}
		last = r
	}
	return telling(texts.Cut(strings.TrimSpace(form.String()), maxForm))
}

// common returns what two forms begin with alike.
func common(a, b string) string {
	if a == b {
		return a
	}
	a, b = strings.TrimSuffix(a, "…"), strings.TrimSuffix(b, "…")
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return telling(a[:n] + "…")
}

// telling returns a form that has marks, else nothing.
func telling(form string) string {
	if strings.Trim(form, "x0 …") == "" {
		return ""
	}
	return form
}

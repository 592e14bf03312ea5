package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/plan/expression"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Limits of references and of the values that replace them.
const (
	MaxID        = 128       // bytes of a step's id
	maxReference = 1024      // bytes of a reference within a string
	maxArguments = 64 << 20  // bytes of arguments after substitution
	maxSearched  = 256 << 20 // bytes of values that the references of one step search
)

// References returns the ids of the steps that arguments refer to, each once, in order of appearance. A reference is
// a string value of the form "$s1" or "$s1.path.0.field" (items[0] means items.0), or "${s1.path}" within a string.
// "$x" is plain text if x is no step. Names of members are never references.
func References(arguments json.RawMessage, isStep func(id string) bool) []string {
	var found []string
	seen := make(map[string]bool)
	for _, s := range referring(arguments, isStep) {
		for _, r := range s.refs {
			if !seen[r.step] {
				seen[r.step] = true
				found = append(found, r.step)
			}
		}
	}
	return found
}

// Needs returns the ids of the steps that s waits for: those that its arguments, its list and its expressions refer to,
// then those of After, each once. After may name steps that do not exist.
func (s Step) Needs(isStep func(id string) bool) []string {
	needs := slices.Concat(References(s.Arguments, s.outside(isStep)), s.loopNeeds(isStep), s.After)
	seen := make(map[string]bool, len(needs))
	return slices.DeleteFunc(needs, func(id string) bool {
		again := seen[id]
		seen[id] = true
		return again
	})
}

// Substitute returns arguments with every reference replaced. A string that is one reference, "$s1.path", becomes the
// value. "${s1.path}" becomes text: a string itself, the JSON of any other value. All other bytes stay the same, and
// inserted values are not searched for references.
//
// A path may lead into the JSON of a text, and text.lines is the list of a text's lines. An object with nothing but a
// text named content or result is like that text, but where the object itself becomes the value.
//
// value returns the value of a finished step, and false if it has none. A reference to a missing part of a value, or to
// a value that is a short text "Error: …", gives reason.MissingReference; arguments of more than 64 MiB give
// reason.InvalidArguments.
func Substitute(
	arguments json.RawMessage, isStep func(id string) bool, value func(id string) (json.RawMessage, bool),
) (json.RawMessage, *Error) {
	strs := referring(arguments, isStep)
	if len(strs) == 0 {
		return arguments, nil
	}
	var out []byte
	done, searched := 0, 0
	for _, s := range strs {
		out = append(out, arguments[done:s.start]...)
		done = s.end
		var text []byte
		literal := 0
		for _, r := range s.refs {
			whole, ok := value(r.step)
			if !ok {
				return nil, missing(r, "the step has no value")
			}
			if r.step != itemName && IsErrorText(whole) {
				return nil, missing(r, "the result of the step is the text of an error: "+quoteShort(unquote(whole)))
			}
			if searched += len(whole); searched > maxSearched {
				return nil, &Error{reason.InvalidArguments, "arguments: references to too much data"}
			}
			v, err := r.find(whole)
			if err != nil {
				return nil, err
			}
			if s.whole {
				out = append(out, v...)
				continue
			}
			text = append(text, s.text[literal:r.start]...)
			if lone, ok := textOf(v); ok && len(r.path) == 0 {
				text = append(text, lone...)
			} else {
				text = appendText(text, v)
			}
			literal = r.end
			if len(text) > maxArguments {
				return nil, tooLarge()
			}
		}
		if !s.whole {
			out = appendQuoted(out, string(text)+s.text[literal:])
		}
		if len(out) > maxArguments {
			return nil, tooLarge()
		}
	}
	return append(out, arguments[done:]...), nil
}

// maxErrorText limits, in bytes, the values that are recognized as error texts.
const maxErrorText = 1000

// IsErrorText reports whether a value is a short text "Error: …", as returned by tools that fail without isError.
func IsErrorText(value []byte) bool {
	const mark = "error:"
	if len(value) > maxErrorText || len(value) < len(mark) || value[0] != '"' {
		return false
	}
	text := strings.TrimSpace(unquote(value))
	return len(text) >= len(mark) && strings.EqualFold(text[:len(mark)], mark)
}

// rename returns arguments with the references to the step from changed to references to the step to.
func rename(arguments json.RawMessage, isStep func(string) bool, from, to string) json.RawMessage {
	var out []byte
	done := 0
	for _, s := range referring(arguments, isStep) {
		text, kept := "", 0
		for _, r := range s.refs {
			if r.step != from {
				continue
			}
			at := r.start + strings.Index(r.written, from) // behind $ or ${
			text += s.text[kept:at] + to
			kept = at + len(from)
		}
		if kept > 0 {
			out = appendQuoted(append(out, arguments[done:s.start]...), text+s.text[kept:])
			done = s.end
		}
	}
	if done == 0 {
		return arguments
	}
	return append(out, arguments[done:]...)
}

// renameIn is rename for one string.
func renameIn(text string, isStep func(string) bool, from, to string) string {
	if text == "" {
		return ""
	}
	return unquote(rename(appendQuoted(nil, text), isStep, from, to))
}

func tooLarge() *Error {
	return &Error{reason.InvalidArguments, "arguments: larger than 64 MiB after substitution"}
}

func appendText(dst []byte, v jsontext.Value) []byte {
	if v.Kind() == '"' {
		return append(dst, unquote(v)...)
	}
	v = v.Clone()
	if v.Compact() != nil {
		return dst
	}
	return append(dst, v...)
}

// A stringValue is a string in arguments that holds references.
type stringValue struct {
	start, end int    // place of the literal in the arguments
	text       string // the unquoted string
	refs       []reference
	whole      bool // it is one reference and nothing else
	pointer    jsontext.Pointer
}

// A reference names a place in a step's value.
type reference struct {
	step       string
	path       []string
	written    string // as written in the plan
	start, end int    // place in the string's text
}

// referring returns the strings of arguments that hold references, in order.
func referring(arguments []byte, isStep func(string) bool) []stringValue {
	if bytes.IndexByte(arguments, '$') < 0 && !bytes.Contains(arguments, []byte(`\u`)) {
		return nil
	}
	var found []stringValue
	d := newDecoder(arguments)
	for {
		if d.PeekKind() != '"' {
			if _, err := d.ReadToken(); err != nil {
				return found
			}
			continue
		}
		kind, length := d.StackIndex(d.StackDepth())
		v, err := d.ReadValue()
		if err != nil {
			return found
		}
		if kind == '{' && length%2 == 0 {
			continue // a name
		}
		text := unquote(v)
		refs, whole := parseReferences(text, isStep)
		if len(refs) == 0 {
			continue
		}
		end := int(d.InputOffset())
		found = append(found, stringValue{
			start: end - len(v), end: end, text: text, refs: refs, whole: whole, pointer: d.StackPointer(),
		})
	}
}

// parseReferences returns the references in a string, and whether the string is one reference that becomes a value.
func parseReferences(text string, isStep func(string) bool) (refs []reference, whole bool) {
	if strings.HasPrefix(text, "$") && !strings.HasPrefix(text, "${") {
		if step, path, ok := splitReference(text[1:], isStep); ok {
			return []reference{{step: step, path: path, written: text, end: len(text)}}, true
		}
	}
	for at := 0; ; {
		n := strings.Index(text[at:], "${")
		if n < 0 {
			return refs, false
		}
		start := at + n
		at = start + 2
		n = strings.IndexByte(text[start:min(len(text), start+maxReference)], '}')
		if n < 0 {
			continue
		}
		end := start + n + 1
		if step, path, ok := splitReference(text[start+2:end-1], isStep); ok {
			refs = append(refs, reference{step: step, path: path, written: text[start:end], start: start, end: end})
			at = end
		}
	}
}

// splitReference splits s1.items[0].name into step and path. If it may begin with several ids, the longest counts.
func splitReference(body string, isStep func(string) bool) (step string, path []string, ok bool) {
	for end := min(len(body), MaxID); end > 0; end-- {
		if end < len(body) && body[end] != '.' && body[end] != '[' {
			continue
		}
		if !isStep(body[:end]) {
			continue
		}
		rest := body[end:]
		switch {
		case rest == "":
			return body[:end], nil, true
		case rest[0] == '.':
			return body[:end], parsePath(rest[1:]), true
		default:
			path, ok := indices(rest)
			if ok {
				return body[:end], path, true
			}
			if before, after, ok := strings.Cut(rest, "."); ok {
				if path, ok = indices(before); ok {
					return body[:end], append(path, parsePath(after)...), true
				}
			}
		}
	}
	return "", nil, false
}

func parsePath(text string) []string {
	var path []string
	for segment := range strings.SplitSeq(text, ".") {
		if n := strings.IndexByte(segment, '['); n > 0 {
			if more, ok := indices(segment[n:]); ok {
				path = append(append(path, segment[:n]), more...)
				continue
			}
		}
		path = append(path, segment)
	}
	return path
}

// indices reads "[0][1]".
func indices(text string) ([]string, bool) {
	var path []string
	for text != "" {
		n := strings.IndexByte(text, ']')
		if text[0] != '[' || n < 0 {
			return nil, false
		}
		if _, ok := index(text[1:n]); !ok {
			return nil, false
		}
		path = append(path, text[1:n])
		text = text[n+1:]
	}
	return path, true
}

func index(text string) (int, bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// find returns the part of a value that r refers to.
func (r reference) find(value json.RawMessage) (jsontext.Value, *Error) {
	v, n, err := follow(bytes.TrimSpace(value), r.path, maxTexts)
	switch {
	case err != nil:
		return nil, missing(r, "the value of the step is not JSON")
	case n < len(r.path):
		parent := "$" + strings.Join(append([]string{r.step}, r.path[:n]...), ".")
		return nil, missing(r, fmt.Sprintf("%s is not in %s, which is of type %s",
			quoteShort(r.path[n]), texts.Cut(parent, 100), kindName(v.Kind())))
	}
	return v, nil
}

// maxTexts limits the texts within texts that a path leads into, because each is copied.
const maxTexts = 3

// follow returns the part of a value at a path. If there is none, n is the length of the longest part of the path that
// there is, and v what is there. Where a value lacks a part, it is looked for in its text, and so on in at most
// within texts.
func follow(value jsontext.Value, path []string, within int) (v jsontext.Value, n int, err error) {
	d := newDecoder(value)
	for n < len(path) {
		found, err := descend(d, path[n])
		if err != nil {
			return nil, n, err
		}
		if !found {
			if v, _, err = follow(value, path[:n], 0); within == 0 {
				return v, n, err
			}
			for _, inner := range inside(v, path[n]) {
				if part, m, broken := follow(inner, path[n:], within-1); broken == nil && m == len(path)-n {
					return part, len(path), nil
				}
			}
			return v, n, err
		}
		n++
	}
	v, err = d.ReadValue()
	return v, n, err
}

// inside returns where a part that a value lacks may be: in the JSON of its text, or in the list of its lines.
func inside(v jsontext.Value, part string) (values []jsontext.Value) {
	text, ok := textOf(v)
	if !ok {
		return nil
	}
	if inner := jsontext.Value(textValue(text)); inner.Kind() == '{' || inner.Kind() == '[' {
		values = append(values, inner)
	}
	if part == expression.Lines {
		const head = `{"` + expression.Lines + `":[`
		list := []byte(head)
		for line := range texts.Lines(text) {
			if len(list) > len(head) {
				list = append(list, ',')
			}
			if list = appendQuoted(list, line); len(list) > maxArguments {
				break // too large for any use
			}
		}
		values = append(values, append(list, "]}"...))
	}
	return values
}

// IsText reports whether a value is a text, or an object that counts as the text in it.
func IsText(value json.RawMessage) bool {
	_, ok := textOf(jsontext.Value(value))
	return ok
}

// textOf returns a text, also one that is the only member of an object, see expression.IsTextName.
func textOf(v jsontext.Value) (text string, ok bool) {
	if v.Kind() == '"' {
		return unquote(v), true
	}
	for name, member := range memberSeq(v) {
		if ok || !expression.IsTextName(name) || member.Kind() != '"' {
			return "", false
		}
		text, ok = unquote(member), true
	}
	return text, ok
}

// descend moves d into the next object or array, to a member or an element. It reports false if there is none.
func descend(d *jsontext.Decoder, segment string) (bool, error) {
	switch d.PeekKind() {
	case '{':
		if _, err := d.ReadToken(); err != nil {
			return false, err
		}
		for d.PeekKind() == '"' {
			name, err := d.ReadToken()
			if err != nil {
				return false, err
			}
			if name.String() == segment {
				return true, nil
			}
			if err := d.SkipValue(); err != nil {
				return false, err
			}
		}
	case '[':
		n, ok := index(segment)
		if !ok {
			return false, nil
		}
		if _, err := d.ReadToken(); err != nil {
			return false, err
		}
		for ; d.PeekKind() != ']'; n-- {
			if n == 0 {
				return true, nil
			}
			if err := d.SkipValue(); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

func missing(r reference, why string) *Error {
	return &Error{reason.MissingReference, fmt.Sprintf("reference %s: %s", quoteShort(r.written), why)}
}

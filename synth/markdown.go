package synth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Names of members that represent a whole object, by kind, the most descriptive first.
var (
	titleKeys = []string{"name", "title", "headline", "subject", "label"}
	linkKeys  = []string{"url", "link", "href", "uri"}
)

// Bounds of what is written, in bytes, and of what is read.
const (
	maxInline  = 120 // of a value on one line
	maxSnippet = 300 // of a text within a list
	maxKey     = 80
	maxNodes   = 4000
	maxDepth   = 12
	maxWhole   = 64 << 10 // of a value that is reformatted before it is measured
)

// markdown writes a JSON value for people, in at most about limit bytes: text as it is, lists as bullets, objects as
// their members.
func markdown(value json.RawMessage, limit int) string {
	if len(value) == 0 {
		return ""
	}
	look := min(16*limit, maxWhole) // the output is rarely shorter than a sixteenth
	text := llm.Beginning(value, look)
	if len(value) <= look {
		text = llm.Excerpt(value, maxWhole, nil)
	}
	n := node{kind: '"', text: text}
	if value[0] != '"' {
		n = parse(text).unwrapped()
	}
	if n.scalar() && len(n.text) > limit {
		return texts.Cut(n.text, limit)
	}
	p := &page{limit: limit, cut: n.cut}
	p.value(n, 0)
	return p.String()
}

// page collects lines up to a limit.
type page struct {
	text  strings.Builder
	limit int
	left  int  // lines that did not fit
	cut   bool // the input has more that was not read
}

func (p *page) line(indent int, text string) {
	line := strings.Repeat("  ", indent) + text
	if p.left > 0 || p.text.Len()+len(line) > p.limit {
		p.left++
		return
	}
	p.text.WriteString(line + "\n")
}

func (p *page) String() string {
	text := strings.TrimRight(p.text.String(), "\n")
	switch {
	case p.cut:
		text += "\n… (and more)"
	case p.left > 0:
		text += fmt.Sprintf("\n… (%d more lines)", p.left)
	}
	return strings.TrimSpace(text)
}

func (p *page) value(n node, indent int) {
	switch {
	case n.empty() && !n.cut:
		p.line(indent, "(nothing)")
	case n.scalar():
		for line := range strings.Lines(n.text) {
			p.line(indent, strings.TrimRight(line, "\r\n"))
		}
	case n.flat():
		p.line(indent, n.inline())
	case n.kind == '[':
		for _, item := range n.items {
			p.bullet("", item, indent)
		}
	default:
		p.object(n, indent)
	}
}

// object writes the members. It skips members that only wrap another value.
func (p *page) object(n node, indent int) {
	if len(n.items) == 1 && !n.items[0].scalar() {
		p.value(n.items[0], indent)
		return
	}
	if line, ok := n.result(); ok {
		p.line(indent, line)
		return
	}
	if n.titled() {
		p.entry(n, indent)
		return
	}
	if list, rest, ok := n.wrapped(); ok {
		p.value(list, indent)
		if rest != "" {
			p.line(indent, "("+rest+")")
		}
		return
	}
	for i, item := range n.items {
		if !item.blank() {
			p.bullet(n.keys[i], item, indent)
		}
	}
}

// bullet writes an element of a list or a member of an object.
func (p *page) bullet(key string, n node, indent int) {
	head := "-"
	if key != "" {
		head = "- " + key + ":"
	}
	switch {
	case key == "" && n.titled():
		p.entry(n, indent)
	case n.scalar() || n.flat() || key == "" && n.kind == '{':
		p.line(indent, head+" "+n.inline())
	default:
		p.line(indent, head)
		p.value(n, indent+1)
	}
}

// entry writes an object with a title: the title with its link, the text below, the rest in brackets.
func (p *page) entry(n node, indent int) {
	title := n.member(titleKeys)
	link, text := n.member(linkKeys), n.member(llm.TextKeys)
	rest := node{kind: '{'}
	for i, item := range n.items {
		if i != title && i != link && i != text {
			rest.keys, rest.items = append(rest.keys, n.keys[i]), append(rest.items, item)
		}
	}
	line := "- **" + n.items[title].inline() + "**"
	if others := rest.inline(); others != "" {
		line += " (" + others + ")"
	}
	if link >= 0 {
		line += " " + n.items[link].inline()
	}
	p.line(indent, line)
	if text >= 0 {
		p.line(indent+1, n.items[text].inline())
	}
}

// node is a JSON value with its members in their order.
type node struct {
	kind  jsontext.Kind
	text  string // of a scalar; for a value beyond the bounds, its JSON
	keys  []string
	items []node // elements, or the values of keys
	cut   bool   // the value has more
}

func (n node) scalar() bool { return n.kind != '{' && n.kind != '[' }

// blank reports whether there is nothing to show.
func (n node) blank() bool {
	return n.kind == 'n' || n.kind == '"' && n.text == "" || !n.scalar() && len(n.items) == 0
}

// empty reports whether a value is null, or a list or an object without scalars.
func (n node) empty() bool {
	if n.scalar() {
		return n.kind == 'n'
	}
	return !slices.ContainsFunc(n.items, func(item node) bool { return item.scalar() || len(item.items) > 0 })
}

// member returns the index of the first of the keys that the object has with a text, -1 if there is none.
func (n node) member(keys []string) int {
	for _, key := range keys {
		if i := slices.Index(n.keys, key); i >= 0 && n.items[i].kind == '"' && n.items[i].text != "" {
			return i
		}
	}
	return -1
}

func (n node) titled() bool { return n.member(titleKeys) >= 0 }

// unwrapped returns the text in an object that only wraps it, such as the content of a file; otherwise n.
func (n node) unwrapped() node {
	if len(n.keys) == 1 && !n.cut && n.member(slices.Concat(llm.TextKeys, llm.ValueKeys)) == 0 {
		return n.items[0]
	}
	return n
}

// wrapped returns the list of an object that has one list of objects and otherwise a few scalars, such as the question
// and the number of results, and these scalars on one line.
func (n node) wrapped() (list node, rest string, ok bool) {
	others := node{kind: '{'}
	for i, item := range n.items {
		switch {
		case item.blank():
		case item.scalar():
			others.keys, others.items = append(others.keys, n.keys[i]), append(others.items, item)
		case ok || item.kind != '[' || item.items[0].kind != '{':
			return node{}, "", false
		default:
			list, ok = item, true
		}
	}
	return list, others.inline(), ok
}

// result writes an object with one main value: the value, and the other members in brackets.
func (n node) result() (string, bool) {
	main := slices.IndexFunc(n.keys, func(key string) bool { return slices.Contains(llm.ValueKeys, key) })
	scalars := !slices.ContainsFunc(n.items, func(item node) bool { return !item.scalar() })
	if main < 0 || len(n.keys) > 4 || !scalars || n.items[main].kind == 'n' || strings.Contains(n.items[main].text, "\n") {
		return "", false
	}
	text := n.items[main].text
	n.keys, n.items = slices.Delete(slices.Clone(n.keys), main, main+1), slices.Delete(slices.Clone(n.items), main, main+1)
	if others := n.inline(); others != "" {
		text += " (" + others + ")"
	}
	return text, true
}

// flat reports whether a list has only scalars that fit on one line, or an object only one.
func (n node) flat() bool {
	size, shown := 0, 0
	for _, item := range n.items {
		if item.blank() {
			continue
		}
		if !item.scalar() {
			return false
		}
		size += len(item.text) + len(", ")
		shown++
	}
	return !n.cut && (n.kind == '[' && size <= maxInline || n.kind == '{' && shown == 1)
}

// inline writes a value on one line: "red, blue" or "city: Oslo, wind: (speed: 7, unit: m/s)".
func (n node) inline() string {
	if n.scalar() {
		return texts.Line(n.text, maxSnippet)
	}
	var parts []string
	for i, size := 0, 0; i < len(n.items) && size <= maxSnippet; i++ {
		item := n.items[i]
		if item.blank() {
			continue
		}
		part := item.inline()
		if !item.scalar() {
			part = "(" + part + ")"
		}
		if n.kind == '{' {
			part = n.keys[i] + ": " + part
		}
		parts = append(parts, part)
		size += len(part)
	}
	return texts.Cut(strings.Join(parts, ", "), maxSnippet)
}

// parse reads JSON within bounds, as far as it is there. Other text becomes a string.
func parse(text string) node {
	d := jsontext.NewDecoder(bytes.NewBufferString(text), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	left := maxNodes
	n, ok := read(d, &left)
	if !ok {
		return node{kind: '"', text: text}
	}
	return n
}

// read reads the next value, of which left more may be read.
func read(d *jsontext.Decoder, left *int) (n node, ok bool) {
	*left--
	n.kind = d.PeekKind()
	if n.scalar() {
		token, err := d.ReadToken()
		if err == nil {
			n.text = token.String()
		}
		return n, err == nil
	}
	if d.StackDepth() >= maxDepth {
		raw, err := d.ReadValue()
		return node{kind: '"', text: string(raw)}, err == nil
	}
	_, _ = d.ReadToken() // the bracket
	for d.PeekKind() != '}' && d.PeekKind() != ']' {
		var key string
		if n.kind == '{' {
			name, err := d.ReadToken()
			if n.cut = err != nil; n.cut {
				return n, true
			}
			key = texts.Line(name.String(), maxKey)
		}
		item, ok := read(d, left)
		if n.cut = !ok || item.cut || *left <= 0; ok {
			n.keys, n.items = append(n.keys, key), append(n.items, item)
		}
		if n.cut {
			return n, true
		}
	}
	_, err := d.ReadToken()
	n.cut = err != nil
	return n, true
}

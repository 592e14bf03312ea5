package synth

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/short"
)

// Names of members that represent a whole object, by kind, the most descriptive first.
var (
	titleKeys = []string{"name", "title", "headline", "subject", "label"}
	linkKeys  = []string{"url", "link", "href", "uri"}
	textKeys  = []string{"snippet", "summary", "description", "text", "content", "body"}
	valueKeys = []string{"result", "answer", "value", "output"}
)

// Sizes above which a value is written in another form.
const (
	maxCell    = 40  // characters of a table's cell
	maxColumns = 6   // of a table
	maxRows    = 100 // of a table or list
	maxInline  = 120 // bytes of a list on one line
	maxSnippet = 300 // bytes of a text within a list
)

// markdown writes a JSON value for people, in at most about limit bytes: text as it is, lists as bullets or small
// tables, objects as their members.
func markdown(value json.RawMessage, limit int) string {
	if len(value) == 0 {
		return ""
	}
	p := &page{limit: limit}
	read := min(16*limit, maxWhole) // the output is rarely shorter than a sixteenth
	text := readable(value, read)
	n := node{kind: '"', text: text}
	if value[0] != '"' {
		n = parse(json.RawMessage(text), len(value) <= read).unwrapped()
	}
	if n.scalar() && len(n.text) > limit {
		return short.Text(n.text, limit)
	}
	p.value(n, 0)
	p.cut = n.cut
	return p.String()
}

func (p *page) value(n node, indent int) {
	switch {
	case n.kind == 'n' || !n.scalar() && n.empty() && !n.cut:
		p.line(indent, "(nothing)")
	case n.scalar():
		for line := range strings.Lines(n.text) {
			p.line(indent, "%s", strings.TrimRight(line, "\r\n"))
		}
	case n.kind == '[':
		p.list(n, indent)
	default:
		p.object(n, indent)
	}
}

// unwrapped returns the text in an object that only wraps it, such as the content of a file; otherwise n.
func (n node) unwrapped() node {
	if len(n.keys) != 1 || n.cut {
		return n
	}
	if _, text, ok := n.get(slices.Concat(textKeys, valueKeys)...); ok && text.kind == '"' && text.text != "" {
		return text
	}
	return n
}

// object writes the members, the short ones first on one line. It skips members that only wrap another value.
func (p *page) object(n node, indent int) {
	if len(n.items) == 1 && !n.items[0].scalar() {
		p.value(n.items[0], indent)
		return
	}
	if line, ok := n.result(); ok {
		p.line(indent, "%s", line)
		return
	}
	if i, ok := n.single(); ok {
		p.line(indent, "%s: %s", n.keys[i], short.Line(n.items[i].text, maxSnippet))
		return
	}
	if n.titled() {
		p.entry(n, indent)
		return
	}
	if list, rest, ok := n.wrapped(); ok {
		p.value(list, indent)
		if rest != "" {
			p.line(indent, "(%s)", rest)
		}
		return
	}
	for i, key := range n.keys {
		switch item := n.items[i]; {
		case item.blank():
		case item.scalar():
			p.line(indent, "- %s: %s", key, short.Line(item.text, maxSnippet))
		case item.flat() != "":
			p.line(indent, "- %s: %s", key, item.flat())
		default:
			p.line(indent, "- %s:", key)
			p.value(item, indent+1)
		}
	}
}

// single returns the index of the only member that is not blank, if it is a scalar.
func (n node) single() (place int, ok bool) {
	for i, item := range n.items {
		switch {
		case item.blank():
		case ok || !item.scalar():
			return 0, false
		default:
			place, ok = i, true
		}
	}
	return place, ok
}

// wrapped returns the list of an object that has one list of objects and otherwise a few scalars, such as the question
// and the number of results, and these scalars on one line.
func (n node) wrapped() (list node, rest string, ok bool) {
	var others []string
	for i, k := range n.keys {
		switch item := n.items[i]; {
		case item.blank():
		case item.scalar():
			others = append(others, k+": "+short.Line(item.text, maxInline))
		case ok || item.kind != '[' || item.items[0].kind != '{':
			return node{}, "", false
		default:
			list, ok = item, true
		}
	}
	return list, short.Text(strings.Join(others, ", "), maxSnippet), ok
}

// result writes an object with one main value: the value, and the other members in brackets.
func (n node) result() (string, bool) {
	key, value, ok := n.get(valueKeys...)
	if !ok || !value.scalar() || value.kind == 'n' || strings.Contains(value.text, "\n") || len(n.keys) > 4 {
		return "", false
	}
	var others []string
	for i, k := range n.keys {
		switch {
		case !n.items[i].scalar():
			return "", false
		case k != key && !n.items[i].blank():
			others = append(others, k+": "+short.Line(n.items[i].text, maxSnippet))
		}
	}
	if len(others) == 0 {
		return value.text, true
	}
	return value.text + " (" + strings.Join(others, ", ") + ")", true
}

// flat returns a short list of scalars on one line, or "".
func (n node) flat() string {
	if n.kind != '[' || n.cut {
		return ""
	}
	texts := make([]string, len(n.items))
	for i, item := range n.items {
		if !item.scalar() || len(item.text) > maxInline {
			return ""
		}
		texts[i] = short.Line(item.text, maxInline)
	}
	line := strings.Join(texts, ", ")
	if len(line) > maxInline {
		return ""
	}
	return line
}

func (p *page) list(n node, indent int) {
	if line := n.flat(); line != "" {
		p.line(indent, "%s", line)
		return
	}
	if n.table() {
		p.rows(n, indent)
		return
	}
	for _, item := range n.items {
		switch {
		case item.scalar():
			p.line(indent, "- %s", short.Line(item.text, maxSnippet))
		case item.titled():
			p.entry(item, indent)
		case item.kind == '{':
			p.line(indent, "- %s", item.members())
		case item.flat() != "":
			p.line(indent, "- %s", item.flat())
		default:
			p.line(indent, "-")
			p.value(item, indent+1)
		}
	}
}

// titled reports whether the object has a title.
func (n node) titled() bool {
	_, title, ok := n.get(titleKeys...)
	return n.kind == '{' && ok && title.kind == '"' && title.text != ""
}

// entry writes an object with a title: the title with its link, the text below, the rest in brackets.
func (p *page) entry(n node, indent int) {
	titleKey, title, _ := n.get(titleKeys...)
	linkKey, link, hasLink := n.get(linkKeys...)
	textKey, text, hasText := n.get(textKeys...)
	hasLink, hasText = hasLink && link.kind == '"', hasText && text.kind == '"'
	var rest []string
	for i, k := range n.keys {
		item := n.items[i]
		if k == titleKey || hasLink && k == linkKey || hasText && k == textKey || item.blank() {
			continue
		}
		rest = append(rest, item.inline(k))
	}
	line := "**" + short.Line(title.text, maxSnippet) + "**"
	if len(rest) > 0 {
		line += " (" + short.Text(strings.Join(rest, ", "), maxSnippet) + ")"
	}
	if hasLink && link.text != "" {
		line += " " + short.Line(link.text, maxSnippet)
	}
	p.line(indent, "- %s", line)
	if hasText && text.text != "" {
		p.line(indent+1, "%s", short.Line(text.text, maxSnippet))
	}
}

// members writes an object on one line.
func (n node) members() string {
	var texts []string
	for i, k := range n.keys {
		if item := n.items[i]; !item.blank() {
			texts = append(texts, item.inline(k))
		}
	}
	return short.Text(strings.Join(texts, ", "), maxSnippet)
}

// inline writes a value on one line behind the path of its keys: "tags: red, blue", "wind.speed: 7, wind.unit: m/s".
// The objects of a list stand in brackets.
func (n node) inline(path string) string {
	var parts []string
	size := 0
	n.walk(path, func(path, text string) bool {
		part := path + ": " + text
		parts = append(parts, part)
		size += len(part)
		return size <= maxInline
	})
	return short.Text(strings.Join(parts, ", "), maxInline+len(path))
}

// walk yields the values of an object with the paths of their keys until yield returns false.
func (n node) walk(path string, yield func(path, text string) bool) bool {
	switch {
	case n.scalar():
		return yield(path, short.Line(n.text, maxInline))
	case n.kind == '[':
		return yield(path, n.elements())
	}
	for i, key := range n.keys {
		if item := n.items[i]; !item.blank() && !item.walk(path+"."+key, yield) {
			return false
		}
	}
	return true
}

// elements writes the elements of a list on one line.
func (n node) elements() string {
	var texts []string
	size := 0
	for _, item := range n.items {
		text := ""
		switch {
		case item.blank():
			continue
		case item.scalar():
			text = short.Line(item.text, maxInline)
		case item.kind == '[':
			text = "(" + item.elements() + ")"
		default:
			text = "(" + item.members() + ")"
		}
		texts = append(texts, text)
		if size += len(text); size > maxInline {
			break
		}
	}
	return short.Text(strings.Join(texts, ", "), maxInline)
}

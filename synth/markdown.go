package synth

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

// Members that stand for a whole object, by what they hold, the telling ones first.
var (
	titleKeys = []string{"title", "name", "headline", "subject", "label"}
	linkKeys  = []string{"url", "link", "href", "uri"}
	textKeys  = []string{"snippet", "summary", "description", "text", "content", "body"}
	valueKeys = []string{"result", "answer", "value", "output"}
)

// Sizes from which a value is written another way.
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
	n := parse(json.RawMessage(llm.WithoutBinary(string(value)))).unwrapped()
	if n.scalar() && len(n.text) > limit {
		return short.Text(n.text, limit)
	}
	p.value(n, 0)
	if n.cut {
		p.left++
	}
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

// unwrapped returns the text that an object only wraps, such as the content of a file, and else n.
func (n node) unwrapped() node {
	if len(n.keys) != 1 || n.cut {
		return n
	}
	if _, text, ok := n.get(slices.Concat(textKeys, valueKeys)...); ok && text.kind == '"' && text.text != "" {
		return text
	}
	return n
}

// object writes the members, the short ones first on one line. What only wraps another value is left out.
func (p *page) object(n node, indent int) {
	if len(n.items) == 1 && !n.items[0].scalar() {
		p.value(n.items[0], indent)
		return
	}
	if line, ok := n.result(); ok {
		p.line(indent, "%s", line)
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

// wrapped returns the list of an object that has one list of objects and else a few scalars, such as the question and
// the number of results, and those scalars on one line.
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

// result writes an object that is little more than one value: the value, and in brackets what it is of.
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

// flat is a short list of scalars on one line, or "".
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

// titled reports whether the object has a title to be shown by.
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
		if item.scalar() {
			rest = append(rest, k+": "+short.Line(item.text, maxInline))
		} else if flat := item.flat(); flat != "" {
			rest = append(rest, k+": "+flat)
		} else {
			rest = append(rest, k+": "+item.json(maxInline))
		}
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
		switch item := n.items[i]; {
		case item.blank():
		case item.scalar():
			texts = append(texts, k+": "+short.Line(item.text, maxInline))
		default:
			texts = append(texts, k+": "+item.json(maxInline))
		}
	}
	return short.Text(strings.Join(texts, ", "), maxSnippet)
}

// table reports whether the list reads best as a table: objects of the same few short scalars and no title.
func (n node) table() bool {
	if len(n.items) < 2 || len(n.items) > maxRows || n.cut {
		return false
	}
	columns := n.items[0].keys
	if len(columns) < 2 || len(columns) > maxColumns {
		return false
	}
	for _, row := range n.items {
		if row.kind != '{' || !slices.Equal(row.keys, columns) {
			return false
		}
		for _, cell := range row.items {
			if !cell.scalar() || utf8.RuneCountInString(cell.text) > maxCell || strings.ContainsAny(cell.text, "\n|") {
				return false
			}
		}
	}
	return true
}

func (p *page) rows(n node, indent int) {
	columns := n.items[0].keys
	p.line(indent, "| %s |", strings.Join(columns, " | "))
	p.line(indent, "|%s", strings.Repeat(" --- |", len(columns)))
	for _, row := range n.items {
		cells := make([]string, len(row.items))
		for i, cell := range row.items {
			if cell.kind != 'n' {
				cells[i] = cell.text
			}
		}
		p.line(indent, "| %s |", strings.Join(cells, " | "))
	}
}

// json writes a nested value in compact form.
func (n node) json(limit int) string {
	var out strings.Builder
	n.write(&out, limit)
	return short.Text(out.String(), limit)
}

func (n node) write(out *strings.Builder, limit int) {
	if out.Len() > limit {
		return
	}
	if n.scalar() {
		out.WriteString(short.Line(n.text, limit))
		return
	}
	if n.kind == '[' {
		out.WriteByte('[')
	} else {
		out.WriteByte('{')
	}
	for i, item := range n.items {
		if i > 0 {
			out.WriteString(", ")
		}
		if n.kind == '{' {
			out.WriteString(n.keys[i] + ": ")
		}
		item.write(out, limit)
	}
	if n.kind == '[' {
		out.WriteByte(']')
	} else {
		out.WriteByte('}')
	}
}

// Package terminal lays out untrusted texts, such as the answers of models and the names of tools, for a terminal: it
// writes no escape sequence of theirs, only its own.
package terminal

import (
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/agenticnexus/agenticnexus/internal/pattern"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

const (
	readable = 100 // most columns of prose
	narrow   = 10  // columns that no prefix makes less
)

// Bounds of Markdown, because some nesting and rows without cells take time that grows with the square of the text.
const (
	maxMarkdown = 32 << 10 // bytes
	maxCells    = 32       // of a row
)

// newParser returns a parser of CommonMark with tables and bare links.
func newParser() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(append(parser.DefaultInlineParsers(),
			util.Prioritized(extension.NewLinkifyParser(), 999))...),
		parser.WithParagraphTransformers(append(parser.DefaultParagraphTransformers(),
			util.Prioritized(extension.NewTableParagraphTransformer(), 200))...),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)))
}

// Markdown lays out Markdown for a terminal that understands escape sequences and has so many columns. Line ends stay,
// and links show their addresses. An answer beyond the bounds is shown like a digest.
func Markdown(answer string, columns int) string {
	tooMany := func(row string) bool { return strings.Count(row, "|") > maxCells+1 }
	if len(answer) > maxMarkdown || slices.ContainsFunc(strings.Split(answer, "\n"), tooMany) {
		return Digest(answer, columns)
	}
	p := page{[]byte(texts.VisibleValue(answer))}
	return joined(p.blocks(newParser().Parse(text.NewReader(p.source)), max(columns, narrow)))
}

// The marks of a line of a digest: its indentation, that of a list, and a bold name.
var digestLine = pattern.New(`^( *)(- )?(?:\*\*([^*]+)\*\*)?(.*)$`)

// Digest is like Markdown for an answer that no model wrote: it mostly repeats results, which are shown as they are.
func Digest(answer string, columns int) string {
	var lines []line
	for l := range texts.Lines(texts.VisibleValue(answer)) {
		part := digestLine().FindStringSubmatch(strings.ReplaceAll(l, "\t", "    "))
		indentation := part[1][:min(len(part[1]), max(columns-narrow, 0))]
		prefix := styled(indentation+strings.ReplaceAll(part[2], "-", "•"), 0)
		text := slices.Concat(styled(part[3], bold), styled(part[4], 0))
		lines = append(lines, after(prefix, false, wrap(text, max(columns-prefix.columns(), narrow), false))...)
	}
	return joined(lines)
}

func joined(lines []line) string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = l.String()
	}
	return strings.Join(out, "\n")
}

// page lays out the Markdown of source.
type page struct{ source []byte }

// blocks lays out the blocks within a block, with the empty lines that the source has between them.
func (p page) blocks(parent ast.Node, columns int) (out []line) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		lines := p.block(n, columns)
		if len(lines) > 0 && len(out) > 0 && (n.HasBlankPreviousLines() || n.Kind() == tables.KindTable) {
			out = append(out, nil)
		}
		out = append(out, lines...)
	}
	return out
}

func (p page) block(n ast.Node, columns int) []line {
	prose := min(columns, readable)
	switch n := n.(type) {
	case *ast.Heading:
		st := bold
		if n.Level <= 2 {
			st |= underline
		}
		return wrap(p.inline(n, st), prose, false)
	case *ast.CodeBlock, *ast.FencedCodeBlock:
		return after(spaces(2), true, p.verbatim(cyan, n.Lines().Sliced(0, n.Lines().Len())...))
	case *ast.HTMLBlock:
		lines := n.Lines().Sliced(0, n.Lines().Len())
		if n.HasClosure() {
			lines = append(slices.Clone(lines), n.ClosureLine)
		}
		return p.verbatim(0, lines...)
	case *ast.LinkReferenceDefinition:
		return nil
	case *ast.ThematicBreak:
		return []line{styled(strings.Repeat("─", prose), dim)}
	case *ast.Blockquote:
		return p.within(n, styled("│ ", dim), true, columns)
	case *ast.List:
		return p.list(n, columns)
	case *tables.Table:
		return p.table(n, columns)
	}
	if child := n.FirstChild(); child != nil && child.Type() == ast.TypeBlock {
		return p.blocks(n, columns)
	}
	return wrap(p.inline(n, 0), prose, false)
}

// verbatim returns lines of the source.
func (p page) verbatim(st style, segments ...text.Segment) (lines []line) {
	for _, s := range segments {
		lines = append(lines, styled(strings.TrimRight(string(s.Value(p.source)), "\r\n"), st))
	}
	return lines
}

// within lays out the blocks within a block behind a prefix, see after. Deep in others there is no room for it.
func (p page) within(n ast.Node, prefix line, each bool, columns int) []line {
	left := columns - prefix.columns()
	if left < narrow {
		return p.blocks(n, columns)
	}
	return after(prefix, each, p.blocks(n, left))
}

func (p page) list(n *ast.List, columns int) (out []line) {
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if n.IsOrdered() {
			mark = fmt.Sprintf("%d. ", number)
		}
		number++
		if len(out) > 0 && item.HasBlankPreviousLines() {
			out = append(out, nil)
		}
		out = append(out, p.within(item, styled(mark, 0), false, columns)...)
	}
	return out
}

var (
	// A backslash escape, or an entity.
	escape    = pattern.New("\\\\[!-/:-@\\[-`{-~]|&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]*);")
	lineBreak = pattern.New(`(?i)^<br[\s/>]`)
)

// decoded returns the characters that an escape stands for, or itself if there is no such entity.
func decoded(escape string) string {
	if escape[0] == '\\' {
		return escape[1:]
	}
	chars := html.UnescapeString(escape)
	if len(chars) > 1 && strings.HasSuffix(chars, ";") { // it begins with one of the names that need no semicolon
		return escape
	}
	return chars
}

// inline returns the text of a block, or of a part of it, in a style. It may have line ends.
func (p page) inline(parent ast.Node, st style) (out line) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			plain := escape().ReplaceAllStringFunc(string(n.Segment.Value(p.source)), decoded)
			out = append(out, styled(texts.VisibleValue(plain), st)...)
			if n.SoftLineBreak() || n.HardLineBreak() {
				out = append(out, glyph{'\n', 0})
			}
		case *ast.CodeSpan:
			for part := n.FirstChild(); part != nil; part = part.NextSibling() {
				if t, ok := part.(*ast.Text); ok {
					out = append(out, styled(strings.ReplaceAll(string(t.Segment.Value(p.source)), "\n", " "), st|cyan)...)
				}
			}
		case *ast.Emphasis:
			out = append(out, p.inline(n, st|[]style{italic, bold}[n.Level-1])...)
		case *ast.Link:
			out = append(out, linked(p.inline(n, st|underline), string(n.Destination))...)
		case *ast.Image:
			out = append(out, linked(p.inline(n, st|underline), string(n.Destination))...)
		case *ast.RawHTML:
			tag := string(n.Segments.Value(p.source))
			if lineBreak().MatchString(tag) {
				tag = "\n" // models write it into the cells of tables
			}
			out = append(out, styled(tag, st)...)
		case *ast.AutoLink:
			out = append(out, linked(styled(string(n.Label(p.source)), st|underline), string(n.URL(p.source)))...)
		}
	}
	return out
}

// linked returns the text of a link with its address, unless the text is the address. The user of an address, which
// looks like its host, is left out.
func linked(label line, address string) line {
	if u, err := url.Parse(address); err == nil && u.User != nil {
		u.User = nil
		address = u.String()
	}
	_, bare, _ := strings.Cut(address, ":")
	if shown := label.text(); shown == address || shown == strings.TrimPrefix(bare, "//") {
		return label
	}
	return slices.Concat(label, styled(" ("+strings.ReplaceAll(address, "\n", " ")+")", dim))
}

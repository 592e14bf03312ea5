package synth

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/agenticnexus/agenticnexus/internal/pattern"
)

// WithoutImages turns the images in Markdown into links, because showing an image tells its server what the address
// holds. Every form of an image begins with "![", which becomes "[". HTML tags with addresses, other than links, become
// links to them. Code stays as it is where every reader shows it as code; doubtful code counts as text.
func WithoutImages(text string) string {
	if !strings.Contains(text, "![") && !strings.ContainsRune(text, '<') {
		return text
	}
	c := cleaning{text: strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)}
	for c.at < len(c.text) {
		if c.at == 0 || c.text[c.at-1] == '\n' {
			line, _, _ := strings.Cut(c.text[c.at:], "\n")
			if c.fenced(line) {
				c.copy(min(len(line)+1, len(c.text)-c.at))
				continue
			}
			c.begin(line)
		}
		c.next()
	}
	return c.out.String()
}

// cleaning is the state of WithoutImages. A fence that is not understood ends the exceptions for code, because all that
// follows may be text.
type cleaning struct {
	text string
	at   int // up to which the text is done
	out  strings.Builder

	fence  string // what begins the fenced code block, without its info; empty = none
	indent int    // of the fence
	unsure bool   // a fence was not understood
	tags   bool   // this may be an HTML block, which has no code
	open   bool   // a code span may continue from an earlier line
	spans  map[int]int
}

var (
	// fenceLine matches the begin of a fenced code block outside of lists and quotes.
	fenceLine = pattern.New("^( {0,3})(`{3,}|~{3,})([^`~]*)$")
	imageMark = pattern.New(`^!+\[`)
	backticks = pattern.New("`+")
	// autolink matches an address in angle brackets, which is a link.
	autolink = pattern.New("^<(?:[A-Za-z][A-Za-z0-9+.-]+:|[\\w.+-]+@)[^\\s<>\"'`]*>")
	address  = pattern.New(`(?i)(?:\b[a-z][a-z0-9+.-]*:)?//[^\s'"<>()\\,]+|\bdata:[^\s'"<>()\\]+`)
)

func (c *cleaning) copy(size int) {
	c.out.WriteString(c.text[c.at : c.at+size])
	c.at += size
}

func (c *cleaning) replace(size int, by string) {
	if by[0] == '[' && c.at > 0 && c.text[c.at-1] == '!' {
		c.out.WriteByte(' ') // "!" and a link are an image
	}
	c.out.WriteString(by)
	c.at += size
}

// fenced reports whether a line belongs to a fenced code block.
func (c *cleaning) fenced(line string) bool {
	if c.fence == "" {
		m := fenceLine().FindStringSubmatch(line)
		diagram := m != nil && strings.HasPrefix(strings.TrimSpace(m[3]), "mermaid") // is not shown as code
		if m == nil || c.tags || c.unsure || diagram {
			c.unsure = c.unsure || strings.Contains(line, "```") || strings.Contains(line, "~~~")
			return false
		}
		c.indent, c.fence, c.open = len(m[1]), m[2], false
		return true
	}
	own := strings.TrimLeft(line, " ")
	indent := len(line) - len(own)
	own = strings.TrimRight(own, " \t")
	switch {
	case own != "" && indent < c.indent: // the end of a list item also ends its code
		c.fence, c.unsure = "", true
		return false
	case indent <= 3 && strings.HasPrefix(own, c.fence) && strings.Trim(own, c.fence[:1]) == "":
		c.fence = ""
	}
	return true
}

// begin prepares a line outside of fenced code: it finds the code spans that begin and end in it.
func (c *cleaning) begin(line string) {
	if strings.TrimSpace(line) == "" {
		c.tags, c.open = false, false
	}
	c.spans = nil
	if c.open = c.open || strings.Contains(line, "\\`"); c.open || c.tags || c.unsure {
		return
	}
	runs := backticks().FindAllStringIndex(line, -1)
	for len(runs) > 0 {
		begin, size := runs[0][0], runs[0][1]-runs[0][0]
		end := slices.IndexFunc(runs[1:], func(r []int) bool { return r[1]-r[0] == size })
		if end < 0 {
			c.open, c.spans = true, nil
			return
		}
		if until := runs[end+1][1]; !strings.Contains(line[begin:until], "|") { // it may divide cells of a table
			if c.spans == nil {
				c.spans = map[int]int{}
			}
			c.spans[c.at+begin] = until - begin
		}
		runs = runs[end+2:]
	}
}

// next writes the text up to the next character that matters, or what begins with it.
func (c *cleaning) next() {
	rest := c.text[c.at:]
	switch {
	case imageMark().MatchString(rest):
		c.replace(len(imageMark().FindString(rest)), "[") // of a link
	case rest[0] == '<':
		c.tag(rest)
	case c.spans[c.at] > 0:
		c.copy(c.spans[c.at])
	default:
		size := strings.IndexAny(rest[1:], "!<`\n") + 1
		switch {
		case rest[0] == '\n':
			size = 1
		case size == 0:
			size = len(rest)
		case rest[size] == '\n':
			size++
		}
		c.copy(size)
	}
}

// tag writes an HTML tag, or the links that take its place.
func (c *cleaning) tag(rest string) {
	if link := autolink().FindString(rest); link != "" {
		c.copy(len(link))
		return
	}
	if name := strings.TrimPrefix(rest[1:], "/"); name == "" || !isLetter(name[0]) {
		if len(rest) > 1 && (rest[1] == '!' || rest[1] == '?') { // a comment, whose end readers see differently
			c.replace(1, "&lt;")
		} else {
			c.copy(1)
		}
		return
	}
	z := html.NewTokenizer(strings.NewReader(rest))
	kind := z.Next()
	raw, token := string(z.Raw()), z.Token()
	switch {
	case kind == html.ErrorToken || kind == html.TextToken || !strings.HasSuffix(raw, ">"):
		if strings.Contains(rest, "=") {
			c.replace(1, "&lt;")
		} else {
			c.copy(1)
		}
	case inert(token):
		if strings.ContainsAny(raw[1:], "<`\n") || strings.Contains(raw, "![") { // readers may not see a tag
			c.replace(1, "&lt;")
			return
		}
		c.tags, c.spans = true, nil
		c.copy(len(raw))
	default:
		if links := linksOf(token); links != "" {
			c.replace(len(raw), links)
		} else {
			c.replace(1, "&lt;")
		}
	}
}

func isLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

// inert reports whether a tag loads nothing: it has no address, other than that of a link, and its content is not
// special.
func inert(t html.Token) bool {
	switch t.Data {
	case "style", "script", "pre", "textarea", "xmp", "plaintext", "title", "svg", "math":
		return false
	}
	for _, a := range t.Attr {
		value := withoutBreaks(a.Val)
		switch {
		case a.Key == "href" && t.Data == "a":
		case a.Key == "style" && !strings.ContainsAny(value, `(@\/`):
		case strings.ContainsAny(value, `:(\`), strings.Contains(value, "//"):
			return false
		}
	}
	return true
}

// withoutBreaks removes the characters that browsers ignore in addresses.
func withoutBreaks(text string) string {
	return strings.NewReplacer("\t", "", "\n", "", "\f", "").Replace(text)
}

// linksOf returns Markdown links to the addresses in a tag, named by its description.
func linksOf(t html.Token) string {
	label := ""
	for _, a := range t.Attr {
		if a.Key == "alt" || a.Key == "title" && label == "" {
			label = strings.NewReplacer("[", "(", "]", ")", "<", "(", ">", ")", "`", "'", "\\", "", "\n", " ", "!", "").Replace(a.Val)
		}
	}
	label = cmp.Or(strings.TrimSpace(label), "image")
	var links []string
	for _, a := range t.Attr {
		if a.Key == "alt" || a.Key == "title" || strings.HasPrefix(a.Key, "xmlns") {
			continue
		}
		for _, target := range address().FindAllString(withoutBreaks(a.Val), -1) {
			links = append(links, "["+label+"]("+strings.NewReplacer("[", "%5B", "]", "%5D", "`", "%60").Replace(target)+")")
		}
	}
	return strings.Join(links, " ")
}

package redact

import (
	"slices"
	"strings"
)

// assigned replaces values assigned to credential names in a text: name=value, name: value, "name": value with lists
// and objects, <name>value</name>, --name value, and headers up to the end of their line. The text may be truncated.
func assigned(text string) string {
	var out strings.Builder
	copied := 0
	for i := 0; i < len(text); i++ {
		var n name
		switch text[i] {
		case '=', ':':
			n = nameBefore(text, copied, i)
		case '>':
			n = nameOfElement(text, copied, i)
		case '-':
			n = nameOfFlag(text, i)
		}
		if n.kind == open {
			continue
		}
		size, quote := n.credential(text[n.value:])
		if size == 0 {
			continue
		}
		out.WriteString(text[copied:n.value] + quote + Mark + quote)
		copied = n.value + size
		i = copied - 1
	}
	if copied == 0 {
		return text
	}
	out.WriteString(text[copied:])
	return out.String()
}

// name is a credential name found in a text.
type name struct {
	kind    kind
	quote   string // around the name, including backslashes
	header  bool   // the value takes the rest of the line
	element bool   // the value ends at the next element
	prose   bool   // it may be the end of a clause: "cannot get a token: the server is down"
	value   int    // start of the value
}

const (
	quotes = "\"'`"
	blank  = " \t"
)

func isOneOf(c byte, set string) bool { return strings.IndexByte(set, c) >= 0 }

// nameBefore returns the credential name before = or : at i, starting no earlier than from.
func nameBefore(text string, from, i int) (n name) {
	before := strings.TrimRight(text[from:i], blank)
	end := len(before)
	if end > 0 && isOneOf(before[end-1], quotes) {
		bare := strings.TrimRight(before[:end-1], `\`)
		n.quote = before[len(bare):]
		bare = bare[max(0, len(bare)-longestName):]
		before = bare[strings.LastIndexByte(bare, n.quote[len(n.quote)-1])+1:]
		n.kind = kindOf(before, 0)
	} else {
		before = strings.TrimRight(before, "]") // user[password]=
		begin := runBefore(before, len(before), "_-.%")
		word := begin
		if begin > 0 && before[begin-1] == ' ' {
			word = runBefore(before, begin-1, "") // "api key: …"
		}
		before = before[word:]
		n.kind = kindOf(before, begin-word)
	}
	if n.kind == open {
		return n
	}
	last := strings.ToLower(before)
	n.header = strings.HasSuffix(last, "authorization") || strings.HasSuffix(last, "cookie")
	n.value = i + 1
	space := blank
	if n.quote != "" {
		space += "\r\n"
	}
	for _, skipped := range []string{"=>", space} { // ==, => and :=
		n.value = len(text) - len(strings.TrimLeft(text[n.value:], skipped))
	}
	n.prose = n.quote == "" && strings.HasPrefix(text[i:], ": ") && slices.ContainsFunc(issuedKinds, func(kind string) bool {
		return strings.HasSuffix(last, kind)
	})
	return n
}

// runBefore returns the start of the run of letters, digits and others that ends at end.
func runBefore(text string, end int, others string) int {
	begin := end
	for begin > 0 && end-begin < longestName && (isLetter(text[begin-1]) || isOneOf(text[begin-1], others)) {
		begin--
	}
	return begin
}

// nameOfElement returns the credential name of an element whose start tag ends with > at i.
func nameOfElement(text string, from, i int) name {
	within := text[max(from, i-longestName):i]
	begin := strings.LastIndexByte(within, '<')
	if begin < 0 {
		return name{}
	}
	tag, _, _ := strings.Cut(within[begin+1:], " ")
	return name{kind: kindOf(tag, 0), element: true, value: i + 1}
}

// nameOfFlag returns the credential name of a flag that begins with - at i, if its value is the next argument.
func nameOfFlag(text string, i int) name {
	if i > 0 && !isOneOf(text[i-1], blank+"\r\n("+quotes) {
		return name{}
	}
	begin := i + len(text[i:]) - len(strings.TrimLeft(text[i:], "-"))
	end := begin
	for end < len(text) && end-begin < longestName && (isLetter(text[end]) || isOneOf(text[end], "_-")) {
		end++
	}
	value := len(text) - len(strings.TrimLeft(text[end:], blank))
	if value == end || value == len(text) || text[value] == '-' {
		return name{}
	}
	return name{kind: kindOf(text[begin:end], 0), value: value}
}

// literals are values that are not credentials.
var literals = []string{"true", "false", "null", "nil", "none"}

// credential returns the length of the credential at the start of a text and its quotes; 0 if there is none.
func (n *name) credential(text string) (size int, quote string) {
	marks := len(text) - len(strings.TrimLeft(text, `\`))
	switch {
	case n.element:
		size = untilAny(text, "<")
	case marks < len(text) && isOneOf(text[marks], quotes):
		size, quote = quoted(text, marks), text[:marks+1]
		if n.kind == tokens && isNumber(strings.Trim(text[:size], quotes+`\`)) {
			return 0, ""
		}
		return size, quote
	case strings.HasPrefix(text, Mark):
		size = len(Mark) + untilAny(text[len(Mark):], n.ends())
	case text != "" && isOneOf(text[0], "[{"):
		first := strings.TrimLeft(text[1:], blank+"\r\n\\")
		if n.kind == tokens && (first == "" || !isOneOf(first[0], quotes)) {
			return 0, ""
		}
		return balanced(text), n.quote
	default:
		size = untilAny(text, n.ends())
	}
	if n.prose && isWord(text[:size]) && size+1 < len(text) && text[size] == ' ' && isLetter(text[size+1]) {
		return 0, ""
	}
	isLiteral := func(l string) bool { return strings.EqualFold(l, text[:size]) }
	if n.kind == tokens || slices.ContainsFunc(literals, isLiteral) {
		return 0, ""
	}
	return size, n.quote
}

// issuedKinds are credentials that machines issue. They are no plain words, unlike the passwords of people.
var issuedKinds = []string{"token", "key", "credential", "credentials"}

// isWord reports whether a text is one word in lower case.
func isWord(text string) bool { return strings.Trim(text, "abcdefghijklmnopqrstuvwxyz") == "" }

// ends returns the characters that end an unquoted value.
func (n *name) ends() string {
	if n.header {
		return "\r\n\\" + quotes
	}
	return " \t\r\n\\&,;<>)}]" + quotes
}

// untilAny returns the length of a text up to the first of some characters.
func untilAny(text, ends string) int {
	if i := strings.IndexAny(text, ends); i >= 0 {
		return i
	}
	return len(text)
}

// quoted returns the length of a text that begins with a quote preceded by backslashes. Quotes inside it have more
// backslashes. A truncated text has no end.
func quoted(text string, backslashes int) int {
	run := 0
	for i := backslashes + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			run++
			continue
		case text[backslashes]:
			if run < backslashes {
				return i - run // it belongs to the surrounding text
			}
			if run%(2*backslashes+2) == backslashes {
				return i + 1
			}
		}
		run = 0
	}
	return len(text)
}

// balanced returns the length of a list or object; the whole length if it is truncated.
func balanced(text string) int {
	depth, run := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			run++
			continue
		case '"':
			i += quoted(text[i-run:], run) - run - 1
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		run = 0
	}
	return len(text)
}

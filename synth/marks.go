package synth

import (
	"strings"
	"unicode/utf8"
)

// Marks are bracketed references in a model's answer, to the sources of a statement and to failures:
//
//	[s1]  [s1, s2]  [s1: "words of the result"]  [s3 failed]  [n1 not done]
type mark struct {
	kind  markKind
	names string   // as written: "s1, s2"
	ids   []string // "s1", "s2"
	quote string
}

type markKind int

const (
	cites markKind = iota
	saysFailed
	saysNotDone
)

// Bounds of a mark.
const (
	maxMark  = 4 << 10 // bytes
	maxID    = 64      // bytes
	maxQuote = 400     // characters
)

// Results of reading a mark.
type reading int

const (
	isMark  reading = iota
	noMark          // not a mark, whatever follows
	perhaps         // a mark so far; incomplete
)

// readMark reads the mark at the beginning of a text and returns its size.
func readMark(text string) (m mark, size int, as reading) {
	r := reader{text: text[:min(len(text), maxMark)]}
	as = r.mark(&m)
	if as == perhaps && len(text) >= maxMark {
		as = noMark
	}
	return m, r.at, as
}

// reader reads a mark from left to right. The reading ends when a method returns anything but isMark.
type reader struct {
	text string
	at   int
}

func (r *reader) mark(m *mark) reading {
	r.at++ // the bracket
	begin := r.at
	for {
		id := r.span(isIDByte)
		if r.ended() {
			return perhaps
		}
		if id == "" || len(id) > maxID {
			return noMark
		}
		m.ids, m.names = append(m.ids, id), r.text[begin:r.at]
		space := r.span(isSpace)
		if r.ended() {
			return perhaps
		}
		switch c := r.text[r.at]; {
		case c == ']':
			r.at++
			return isMark
		case c == ':':
			r.at++
			return r.quote(m)
		case c == ',' || c == ';':
			r.at++
			r.span(isSpace)
		case space != "":
			return r.word(m)
		default:
			return noMark
		}
	}
}

// quote reads the quote after a colon.
func (r *reader) quote(m *mark) reading {
	r.span(isSpace)
	size := quotationMark(r.text[r.at:])
	if size <= 0 {
		return r.unless(size)
	}
	r.at += size
	begin, length := r.at, 0
	for {
		if r.ended() {
			return perhaps
		}
		size := quotationMark(r.text[r.at:])
		if size < 0 {
			return perhaps
		}
		if size > 0 {
			m.quote = r.text[begin:r.at]
			r.at += size
			break
		}
		c, n := utf8.DecodeRuneInString(r.text[r.at:])
		if length++; c == ']' || c == '\n' || length > maxQuote {
			return noMark
		}
		r.at += n
	}
	if r.ended() {
		return perhaps
	}
	if r.text[r.at] != ']' || m.quote == "" {
		return noMark
	}
	r.at++
	return isMark
}

// word reads the words after the ids of a mark.
func (r *reader) word(m *mark) reading {
	rest := r.text[r.at:]
	for _, w := range []struct {
		text string
		kind markKind
	}{{"failed]", saysFailed}, {"not done]", saysNotDone}} {
		switch {
		case strings.HasPrefix(rest, w.text):
			m.kind = w.kind
			r.at += len(w.text)
			return isMark
		case strings.HasPrefix(w.text, rest):
			return perhaps
		}
	}
	return noMark
}

func (r *reader) ended() bool { return r.at >= len(r.text) }

// unless returns perhaps if more text may still complete the expected word.
func (r *reader) unless(size int) reading {
	if size < 0 || r.ended() {
		return perhaps
	}
	return noMark
}

func (r *reader) span(in func(byte) bool) string {
	begin := r.at
	for !r.ended() && in(r.text[r.at]) {
		r.at++
	}
	return r.text[begin:r.at]
}

func isIDByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-'
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }

// quotationMark returns the size of the quotation mark at the beginning of a text, 0 if there is none, and -1 if the
// text is too short to tell.
func quotationMark(text string) int {
	for _, m := range []string{`"`, "“", "”"} {
		if strings.HasPrefix(text, m) {
			return len(m)
		}
	}
	if text == "" || strings.HasPrefix("“", text) || strings.HasPrefix("”", text) {
		return -1
	}
	return 0
}

package jsonrpc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// Valid checks that b is one JSON value of at most MaxDepth levels in valid UTF-8, in time linear in b.
func Valid(b []byte) error {
	s := scanner{b: b}
	s.space()
	if !s.value(1) {
		return s.failure()
	}
	s.space()
	if s.i != len(b) {
		s.fail("unexpected data after the value")
		return s.failure()
	}
	return s.text()
}

// errUTF8 is the error for well-formed JSON with invalid characters.
var errUTF8 = errors.New("the text is not valid UTF-8")

// highBits are the bits that are zero in eight bytes of ASCII text.
const highBits = 0x8080808080808080

// scanner checks the grammar of RFC 8259 without building anything.
type scanner struct {
	b      []byte
	i      int
	seen   uint64 // bitwise OR of all strings, eight bytes at a time
	reason string
	names  Names
}

func (s *scanner) fail(reason string) bool {
	if s.reason == "" {
		s.reason = reason
	}
	return false
}

// text checks the characters of well-formed JSON, which outside of strings are ASCII.
func (s *scanner) text() error {
	if s.seen&highBits != 0 && !utf8.Valid(s.b) {
		return errUTF8
	}
	return nil
}

func (s *scanner) failure() error { return fmt.Errorf("%s at byte %d", s.reason, s.i) }

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

func (s *scanner) value(depth int) bool {
	if s.i >= len(s.b) {
		return s.fail("unexpected end")
	}
	switch c := s.b[s.i]; {
	case c == '"':
		return s.str()
	case (c == '{' || c == '[') && depth > MaxDepth:
		return s.fail("nested too deeply")
	case c == '{':
		return s.list('}', func() bool { return s.key() && s.value(depth+1) })
	case c == '[':
		return s.list(']', func() bool { return s.value(depth + 1) })
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	}
	return s.fail("unexpected character")
}

func (s *scanner) literal(word string) bool {
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		return s.fail("unexpected character")
	}
	s.i += len(word)
	return true
}

// key scans a member name and its colon. Afterwards s.i is at the value.
func (s *scanner) key() bool {
	if s.i >= len(s.b) || s.b[s.i] != '"' {
		return s.fail("expected a member name")
	}
	start := s.i
	if !s.str() {
		return false
	}
	s.names |= namesIn(s.b[start:s.i])
	s.space()
	if s.i >= len(s.b) || s.b[s.i] != ':' {
		return s.fail("expected a colon")
	}
	s.i++
	s.space()
	return true
}

// list scans an object or array from its opening character: elements, each scanned by element, to the closing
// character.
func (s *scanner) list(closing byte, element func() bool) bool {
	s.i++
	s.space()
	if s.i < len(s.b) && s.b[s.i] == closing {
		s.i++
		return true
	}
	for element() {
		s.space()
		switch {
		case s.i >= len(s.b):
			return s.fail("unexpected end")
		case s.b[s.i] == closing:
			s.i++
			return true
		case s.b[s.i] != ',':
			return s.fail("expected a comma or the end of the list")
		}
		s.i++
		s.space()
	}
	return false
}

// str scans a string.
func (s *scanner) str() bool {
	s.i++
	for {
		s.plain()
		if s.i >= len(s.b) {
			return s.fail("unterminated string")
		}
		switch s.b[s.i] {
		case '"':
			s.i++
			return true
		case '\\':
			n := escape(s.b[s.i:])
			if n == 0 {
				return s.fail("invalid escape in a string")
			}
			s.i += n
		default:
			return s.fail("control character in a string")
		}
	}
}

// plain advances to the next quote, backslash or control character, eight bytes at a time.
func (s *scanner) plain() {
	const ones = 0x0101010101010101
	b, i, seen := s.b, s.i, s.seen
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i : i+8])
		seen |= x
		// The expression sets the high bit of each byte below 0x80 that is less than a space or equal to a special
		// character. Borrows affect only higher bytes, after the first match.
		if found := ((x - ' '*ones) | ((x ^ '"'*ones) - ones) | ((x ^ '\\'*ones) - ones)) &^ x & highBits; found != 0 {
			s.i, s.seen = i+bits.TrailingZeros64(found)/8, seen
			return
		}
	}
	for i < len(b) && b[i] >= ' ' && b[i] != '"' && b[i] != '\\' {
		seen |= uint64(b[i])
		i++
	}
	s.i, s.seen = i, seen
}

// escape returns the length of the escape sequence at the start of b; 0 if it is invalid.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if !('0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f') {
				return 0
			}
		}
		return 6
	}
	return 0
}

func (s *scanner) number() bool {
	if s.b[s.i] == '-' {
		s.i++
	}
	switch {
	case s.i < len(s.b) && s.b[s.i] == '0':
		s.i++
	case !s.digits():
		return false
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		if !s.digits() {
			return false
		}
	}
	if s.i < len(s.b) && s.b[s.i]|0x20 == 'e' {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		return s.digits()
	}
	return true
}

func (s *scanner) digits() bool {
	start := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	if s.i == start {
		return s.fail("expected a digit")
	}
	return true
}

package jsonrpc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
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
	if !utf8.Valid(b) {
		return errUTF8
	}
	return nil
}

// errUTF8 is what is wrong with JSON that is well-formed but for its characters.
var errUTF8 = errors.New("the text is not valid UTF-8")

// scanner checks the grammar of RFC 8259 without building anything.
type scanner struct {
	b      []byte
	i      int
	reason string
	names  Names
}

func (s *scanner) fail(reason string) bool {
	if s.reason == "" {
		s.reason = reason
	}
	return false
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
	case c == '{':
		return s.object(depth)
	case c == '[':
		return s.array(depth)
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

func (s *scanner) object(depth int) bool {
	if depth > MaxDepth {
		return s.fail("nested too deeply")
	}
	s.i++
	s.space()
	if s.i < len(s.b) && s.b[s.i] == '}' {
		s.i++
		return true
	}
	for {
		if !s.key() || !s.value(depth+1) {
			return false
		}
		if more, ok := s.next('}'); !more {
			return ok
		}
	}
}

// key scans a member name and its colon, and stands at the value.
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

// next scans what follows an element: a comma (more) or the closing character.
func (s *scanner) next(closing byte) (more, ok bool) {
	s.space()
	if s.i >= len(s.b) {
		return false, s.fail("unexpected end")
	}
	switch s.b[s.i] {
	case ',':
		s.i++
		s.space()
		return true, true
	case closing:
		s.i++
		return false, true
	}
	return false, s.fail("expected a comma or the end of the list")
}

func (s *scanner) array(depth int) bool {
	if depth > MaxDepth {
		return s.fail("nested too deeply")
	}
	s.i++
	s.space()
	if s.i < len(s.b) && s.b[s.i] == ']' {
		s.i++
		return true
	}
	for {
		if !s.value(depth + 1) {
			return false
		}
		if more, ok := s.next(']'); !more {
			return ok
		}
	}
}

// str scans a string. It looks for the closing quote first and then for escapes before it, so that
// long strings are walked by the vector instructions behind IndexByte.
func (s *scanner) str() bool {
	i := s.i + 1
	quote := bytes.IndexByte(s.b[i:], '"')
	if quote < 0 {
		return s.fail("unterminated string")
	}
	quote += i
	for {
		slash := bytes.IndexByte(s.b[i:quote], '\\')
		if slash < 0 {
			if hasControl(s.b[i:quote]) {
				return s.fail("control character in a string")
			}
			s.i = quote + 1
			return true
		}
		slash += i
		if hasControl(s.b[i:slash]) {
			return s.fail("control character in a string")
		}
		n := escape(s.b[slash:])
		if n == 0 {
			return s.fail("invalid escape in a string")
		}
		i = slash + n
		if i > quote {
			next := bytes.IndexByte(s.b[i:], '"')
			if next < 0 {
				return s.fail("unterminated string")
			}
			quote = i + next
		}
	}
}

// escape returns the length of the escape sequence at the start of b, 0 if it is none.
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

// hasControl reports whether b has a byte below 0x20, eight bytes at a time.
func hasControl(b []byte) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for len(b) >= 8 {
		x := binary.LittleEndian.Uint64(b)
		if (x-0x20*ones)&^x&highs != 0 {
			return true
		}
		b = b[8:]
	}
	for _, c := range b {
		if c < 0x20 {
			return true
		}
	}
	return false
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

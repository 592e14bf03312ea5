package synth

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// appendUnescaped appends JSON with the escapes of its strings replaced by their characters. It returns the number of
// bytes read: all, except an incomplete escape at the end if more input follows.
func appendUnescaped(dst []byte, value []byte, whole bool) (out []byte, read int) {
	for read < len(value) {
		n := bytes.IndexByte(value[read:], '\\')
		if n < 0 {
			return append(dst, value[read:]...), len(value)
		}
		dst = append(dst, value[read:read+n]...)
		read += n
		if len(value) > read+1 {
			if c := simpleEscapes[value[read+1]]; c != 0 { // most are
				dst = append(dst, c)
				read += 2
				continue
			}
		}
		if len(value) >= read+unicodeEscape && value[read+1] == 'u' {
			if char, ok := hexDigits(value[read+2 : read+unicodeEscape]); ok && !utf16.IsSurrogate(char) {
				dst = utf8.AppendRune(dst, char)
				read += unicodeEscape
				continue
			}
		}
		size := escapeSize(value[read:])
		if size == 0 {
			if whole {
				return append(dst, value[read:]...), len(value)
			}
			return dst, read
		}
		dst = appendEscape(dst, value[read:read+size])
		read += size
	}
	return dst, read
}

// simpleEscapes maps the letters of one-letter escapes to their characters; others to 0.
var simpleEscapes = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

const unicodeEscape = len(`\u0000`)

// escapeSize returns the size of the escape at the beginning of text, including both halves of a surrogate pair, or 0
// if it is incomplete.
func escapeSize(text []byte) int {
	switch {
	case len(text) < 2:
		return 0
	case text[1] != 'u':
		return 2
	case len(text) < unicodeEscape:
		return 0
	case !isHighSurrogate(text) || len(text) > unicodeEscape && text[unicodeEscape] != '\\':
		return unicodeEscape
	case len(text) < 2*unicodeEscape:
		return 0
	case text[unicodeEscape+1] != 'u':
		return unicodeEscape
	}
	return 2 * unicodeEscape
}

func isHighSurrogate(text []byte) bool {
	return text[2]|0x20 == 'd' && strings.IndexByte("89aAbB", text[3]) >= 0
}

// appendEscape appends the character of an escape.
func appendEscape(dst, escape []byte) []byte {
	if len(escape) == 2 { // not a JSON escape
		return append(dst, escape...)
	}
	char, ok := hexDigits(escape[2:unicodeEscape])
	if !ok {
		return append(dst, escape...)
	}
	if len(escape) == 2*unicodeEscape {
		low, ok := hexDigits(escape[unicodeEscape+2:])
		if !ok {
			return append(dst, escape...)
		}
		if pair := utf16.DecodeRune(char, low); pair != unicode.ReplacementChar {
			char = pair
		} else {
			dst, char = utf8.AppendRune(dst, char), low
		}
	}
	return utf8.AppendRune(dst, char)
}

func hexDigits(digits []byte) (value rune, ok bool) {
	_ = digits[3]
	value = hex[digits[0]]<<12 | hex[digits[1]]<<8 | hex[digits[2]]<<4 | hex[digits[3]]
	return value, value >= 0
}

// hex has the value of each hexadecimal digit; it is negative for other bytes.
var hex = func() (values [256]rune) {
	for i := range values {
		values[i] = -1
	}
	for i, digit := range "0123456789abcdef" {
		values[digit], values[unicode.ToUpper(digit)] = rune(i), rune(i)
	}
	return values
}()

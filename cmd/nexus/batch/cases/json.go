package cases

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// readLines reads JSON Lines. An invalid line is a mistake; later lines are still read.
func readLines(text []byte, c *collector) {
	line := 0
	for raw := range bytes.Lines(text) {
		line++
		raw = bytes.TrimSpace(raw)
		if len(raw) > 0 {
			c.take(item{line: line, object: raw})
		}
	}
}

// readArray reads a JSON array of cases.
func readArray(text []byte, c *collector) {
	d := json.NewDecoder(bytes.NewReader(text))
	at := lines{text: text}
	if _, err := d.Token(); err != nil {
		c.problem(1, "invalid JSON: %v", err)
		return
	}
	for d.More() {
		begin := at.number(skipSpace(text, d.InputOffset()))
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
				begin = at.number(min(syntax.Offset, int64(len(text))))
			}
			c.problem(begin, "invalid JSON: %s", jsonReason(err))
			return
		}
		c.take(item{line: begin, object: raw})
	}
	if _, err := d.Token(); err != nil {
		c.problem(at.number(int64(len(text))), "invalid JSON: %s", jsonReason(err))
		return
	}
	if rest := bytes.TrimSpace(text[d.InputOffset():]); len(rest) > 0 {
		c.problem(at.number(d.InputOffset()), "text after the end of the array")
	}
}

func jsonReason(err error) string {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return "it ends too early"
	}
	return err.Error()
}

// skipSpace returns the offset of the next value at or after one.
func skipSpace(text []byte, offset int64) int64 {
	for offset < int64(len(text)) && bytes.IndexByte([]byte(" \t\r\n,"), text[offset]) >= 0 {
		offset++
	}
	return offset
}

// lines counts lines up to offsets that only grow.
type lines struct {
	text   []byte
	offset int64
	passed int
}

// number returns the line of an offset, from 1.
func (l *lines) number(offset int64) int {
	offset = max(l.offset, min(offset, int64(len(l.text))))
	l.passed += bytes.Count(l.text[l.offset:offset], []byte("\n"))
	l.offset = offset
	return l.passed + 1
}

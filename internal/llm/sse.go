package llm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// Bounds of a response on the wire.
const (
	maxLine = 1 << 20  // bytes of one line, and of the data of one event
	maxBody = 32 << 20 // bytes of one response
	maxText = 2 << 20  // bytes of the text of one response
)

// event is one server-sent event with its data lines joined.
type event struct {
	name string
	data []byte
}

// eventReader reads server-sent events within bounds. Comments, ids and retry times are dropped.
type eventReader struct {
	r    *bufio.Reader
	line []byte
}

func newEventReader(r io.Reader) *eventReader {
	return &eventReader{r: bufio.NewReaderSize(r, 16<<10)}
}

// next returns the next event that has data, io.EOF at the end. A last event without its blank line or its line end
// counts if it is complete. The event is valid until the next call.
func (e *eventReader) next() (event, error) {
	var ev event
	seen := false
	for {
		line, err := e.readLine()
		if err != nil && !errors.Is(err, io.EOF) {
			return event{}, err
		}
		ended := err != nil
		if ended && len(line) > 0 && !wholeLine(line) {
			line = nil
		}
		if len(line) == 0 {
			if seen {
				return ev, nil
			}
			if ended {
				return event{}, io.EOF
			}
			ev.name = ""
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			ev.name = string(value)
		case "error": // llama.cpp reports errors of a running stream this way
			ev.name = "error"
			fallthrough
		case "data":
			if seen {
				ev.data = append(ev.data, '\n')
			}
			if len(ev.data)+len(value) > maxLine {
				return event{}, failure(Invalid, "an event of the stream is larger than %d bytes", maxLine)
			}
			ev.data = append(ev.data, value...)
			seen = true
		}
		if ended {
			if !seen {
				return event{}, io.EOF
			}
			return ev, nil
		}
	}
}

// wholeLine reports whether a line without a line end is complete.
func wholeLine(line []byte) bool {
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	data = bytes.TrimSpace(data)
	return ok && (string(data) == doneMark || json.Valid(data))
}

// readLine returns a line without its end, or the rest of the stream with io.EOF. It is valid until the next call.
func (e *eventReader) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		part, err := e.r.ReadSlice('\n')
		if len(e.line)+len(part) > maxLine {
			return nil, failure(Invalid, "a line of the stream is longer than %d bytes", maxLine)
		}
		e.line = append(e.line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return bytes.TrimRight(e.line, "\r\n"), err
	}
}

// doneMark ends a stream of chat completions.
const doneMark = "[DONE]"

func trimJSON(data []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
}

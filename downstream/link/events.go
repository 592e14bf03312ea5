package link

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"
)

// event is one server-sent event. Its data is memory of its own.
type event struct {
	name string
	id   string
	data []byte
}

// eventReader reads server-sent events as the HTML standard defines them, with a bound on an event's size.
type eventReader struct {
	*lineBuffer
	max   int
	room  room          // for lines
	cr    bool          // the last line ended in CR: an LF that follows belongs to it
	retry time.Duration // the last reconnection time the server asked for; 0 = none
}

// lineBuffer is what reading lines needs: a buffer that most lines are found in, and a place to put
// together longer ones.
type lineBuffer struct {
	r    *bufio.Reader
	long []byte
}

// maxKept is what is kept of a lineBuffer for the next line. The memory of a longer line goes to its event.
const maxKept = longMessage

var lineBuffers = sync.Pool{New: func() any { return &lineBuffer{r: bufio.NewReaderSize(nil, 16<<10)} }}

func newEventReader(r io.Reader, max int) *eventReader {
	b := lineBuffers.Get().(*lineBuffer)
	b.r.Reset(r)
	return &eventReader{lineBuffer: b, max: max}
}

// free gives the buffers back; the reader is not used after it.
func (er *eventReader) free() {
	er.r.Reset(nil)
	if cap(er.long) > maxKept {
		er.long = nil
	}
	lineBuffers.Put(er.lineBuffer)
}

// next returns the next event that has data or an id. An event cut by the end of the stream is dropped.
func (er *eventReader) next() (event, error) {
	var e event
	for {
		line, err := er.line(len(e.data))
		if err != nil {
			if errors.Is(err, io.EOF) && (len(line) > 0 || e.data != nil) {
				err = io.ErrUnexpectedEOF
			}
			return event{}, err
		}
		if len(line) == 0 {
			if e.data != nil || e.id != "" {
				return e, nil
			}
			e = event{}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			e.name = string(value)
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				e.id = string(value)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				er.retry = time.Duration(ms) * time.Millisecond
			}
		case "data":
			switch {
			case e.data != nil:
				e.data = append(append(e.data, '\n'), value...)
			case len(value) > maxKept:
				e.data, er.long = value, nil
			default:
				e.data = append([]byte{}, value...)
			}
		}
	}
}

// line returns the next line without its end, which is LF, CR or CRLF; it is valid until the next call. have
// counts against the bound.
func (er *eventReader) line(have int) ([]byte, error) {
	er.long = er.long[:0]
	for {
		if _, err := er.r.Peek(1); err != nil {
			return er.long, err
		}
		part, _ := er.r.Peek(er.r.Buffered()) // what is there
		if er.cr {
			if er.cr = false; part[0] == '\n' {
				_, _ = er.r.Discard(1) // it is there
				continue
			}
		}
		end := bytes.IndexByte(part, '\n')
		if end < 0 {
			end = len(part)
		}
		if cr := bytes.IndexByte(part[:end], '\r'); cr >= 0 {
			end, er.cr = cr, true
		}
		if len(er.long)+end+have > er.max {
			return nil, errTooLong
		}
		line := part[:end]
		if len(er.long) > 0 || end == len(part) {
			long, err := extend(er.long, line, er.max, er.room)
			if err != nil {
				return nil, err
			}
			er.long, line = long, long
		}
		_, _ = er.r.Discard(min(end+1, len(part))) // they are there; line stays valid until the next read
		if end < len(part) {
			return line, nil
		}
	}
}

// Package sse reads server-sent events as the HTML standard defines them, with a bound on an event's size.
//
// [NewReader] takes a stream, [Reader.Next] returns its events one by one, and [Reader.Free] gives the buffers back. A
// Reader is for one goroutine at a time.
package sse

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/lines"
)

const (
	bufferSize = 16 << 10
	// keptSize is what is kept of the memory for long lines: with Memory, events up to it are copied. Others take the
	// memory of their line.
	keptSize = 4 << 20
)

// ErrTooLong tells of an event over the bound.
var ErrTooLong = lines.ErrTooLong

// Event is one server-sent event. Its data is memory of its own, nil if the event has an id only.
type Event struct {
	Name string
	ID   string
	Data []byte
}

// Reader reads events. The exported fields are set before the first call of Next.
type Reader struct {
	// Memory is where long lines are put together and long events are kept; nil is the heap.
	Memory lines.Memory
	// Whole tells whether a last line that lacks its end is complete. If Whole is nil, an event that the end of the
	// stream cuts is an error; else such an event counts with its complete lines.
	Whole func(line []byte) bool
	// ErrorField takes a field "error", which is not in the standard, as data of an event of that name.
	ErrorField bool

	lines *lines.Reader
	most  int
	retry time.Duration
}

// buffers holds readers of lines that are free.
var buffers = sync.Pool{New: func() any {
	r := lines.New(nil, bufferSize, 0)
	r.CR = true
	return r
}}

// NewReader returns a Reader of r whose events, and the lines between them, have at most most bytes.
func NewReader(r io.Reader, most int) *Reader {
	from := buffers.Get().(*lines.Reader)
	from.Reset(r)
	return &Reader{lines: from, most: most}
}

// Free gives the buffers back; the Reader is not used after it.
func (r *Reader) Free() {
	r.lines.Reset(nil)
	r.lines.Shrink(keptSize)
	r.lines.Memory = nil
	buffers.Put(r.lines)
}

// Retry returns the last reconnection time that the server asked for; 0 is none.
func (r *Reader) Retry() time.Duration { return r.retry }

// Next returns the next event that has data or an id. At the end of the stream it returns io.EOF, or
// io.ErrUnexpectedEOF if that cuts an event.
func (r *Reader) Next() (Event, error) {
	var e Event
	r.lines.Memory = r.Memory
	for {
		r.lines.Max = r.most - len(e.Data)
		line, err := r.lines.Next()
		if errors.Is(err, io.EOF) {
			return r.last(e, line)
		}
		if err != nil {
			return Event{}, err
		}
		if len(line) > 0 {
			if err := r.field(&e, line); err != nil {
				return Event{}, err
			}
			continue
		}
		if e.Data != nil || e.ID != "" {
			return e, nil
		}
		e = Event{}
	}
}

// last returns the event that the end of the stream cuts, after line, which lacks its end.
func (r *Reader) last(e Event, line []byte) (Event, error) {
	if r.Whole != nil && len(line) > 0 && r.Whole(line) {
		if err := r.field(&e, line); err != nil {
			return Event{}, err
		}
	}
	switch {
	case r.Whole != nil && e.Data != nil:
		return e, nil
	case r.Whole == nil && (len(line) > 0 || e.Data != nil):
		return Event{}, io.ErrUnexpectedEOF
	}
	return Event{}, io.EOF
}

func (r *Reader) field(e *Event, line []byte) error {
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "event":
		e.Name = string(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			e.ID = string(value)
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			r.retry = time.Duration(ms) * time.Millisecond
		}
	case "error":
		if r.ErrorField {
			e.Name = "error"
			return r.data(e, value)
		}
	case "data":
		return r.data(e, value)
	}
	return nil
}

func (r *Reader) data(e *Event, value []byte) (err error) {
	switch {
	case e.Data != nil:
		e.Data = append(append(e.Data, '\n'), value...)
	case r.Memory != nil && len(value) > bufferSize && len(value) <= keptSize:
		e.Data, err = r.Memory.Extend(nil, value, len(value))
	default:
		e.Data = r.lines.Keep(value)
	}
	return err
}

// Package lines reads lines of bounded length from streams that others write.
//
// [Reader.Next] returns the next line. Most lines are found in the reader's buffer and cost no memory; longer ones are
// put together in memory that grows up to the bound. A Reader is for one goroutine at a time.
package lines

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
)

// ErrTooLong tells of a line over [Reader.Max].
var ErrTooLong = errors.New("the line is too long")

// Memory is where lines are put together that do not fit the buffer.
type Memory interface {
	// Extend appends part to b, which will have at most most bytes. Only the result is used after it.
	Extend(b, part []byte, most int) ([]byte, error)
}

// Reader reads lines. The exported fields may change between calls.
type Reader struct {
	Max    int    // bytes of a line without its end
	Memory Memory // nil is the heap
	CR     bool   // a line may also end in CR alone, as in event streams

	buf      *bufio.Reader
	begun    bool   // the beginning of the stream has been read
	long     []byte // the last line, if it did not fit the buffer
	skipLF   bool   // the last line ended in CR: an LF that follows belongs to it
	skipRest bool   // the last line was too long: what is left of it is skipped
}

// New returns a Reader of r with a buffer of size bytes.
func New(r io.Reader, size, most int) *Reader {
	return &Reader{Max: most, buf: bufio.NewReaderSize(r, size)}
}

// Reset makes the Reader read from r, with the buffer and the memory that it has.
func (r *Reader) Reset(from io.Reader) {
	r.buf.Reset(from)
	r.begun, r.skipLF, r.skipRest = false, false, false
}

// byteOrderMark may be the first of a text in UTF-8. It is no part of it.
var byteOrderMark = []byte("\xef\xbb\xbf")

// Next returns the next line without its end, LF or CRLF, and without a byte order mark at the beginning of the stream.
// It is valid until the next call. At the end of the stream, what follows the last line comes with io.EOF. A line is
// ErrTooLong as soon as it is over the bound; the next call skips what is left of it, up to LF.
func (r *Reader) Next() ([]byte, error) {
	r.long = r.long[:0]
	if err := r.begin(); err != nil {
		return nil, err
	}
	if err := r.skip(); err != nil {
		return nil, err
	}
	seen := 0 // bytes of the buffer that have no end of a line
	for {
		_, err := r.buf.Peek(seen + 1)
		part, _ := r.buf.Peek(r.buf.Buffered()) // what is there
		if err != nil {
			line, full := r.line(part, len(part))
			return line, cmp.Or(full, err)
		}
		if r.skipLF {
			if r.skipLF = false; part[0] == '\n' {
				_, _ = r.buf.Discard(1) // it is there
				continue
			}
		}
		end := r.end(part, seen)
		found := end < len(part)
		switch {
		case len(r.long)+end > r.Max+1: // the last byte may be the CR of CRLF
			r.skipRest = !found
			_, _ = r.buf.Discard(min(end+1, len(part)))
			return nil, ErrTooLong
		case found:
			line, err := r.line(part[:end], end+1)
			if !r.CR {
				line = bytes.TrimRight(line, "\r")
			}
			if err == nil && len(line) > r.Max {
				return nil, ErrTooLong
			}
			return line, err
		case end == r.buf.Size():
			if r.long, err = r.extend(part); err != nil {
				return nil, err
			}
			_, _ = r.buf.Discard(end)
			end = 0
		}
		seen = end
	}
}

// begin skips a byte order mark at the beginning of the stream.
func (r *Reader) begin() error {
	if r.begun {
		return nil
	}
	first, err := r.buf.Peek(1)
	if err != nil {
		return err
	}
	r.begun = true
	if first[0] != byteOrderMark[0] {
		return nil // more bytes may take long to come
	}
	if start, _ := r.buf.Peek(len(byteOrderMark)); bytes.Equal(start, byteOrderMark) {
		_, _ = r.buf.Discard(len(start)) // they are there
	}
	return nil
}

// end returns where the line ends in part, or the length of part. The first seen bytes have no end.
func (r *Reader) end(part []byte, seen int) int {
	end := len(part)
	if i := bytes.IndexByte(part[seen:], '\n'); i >= 0 {
		end = seen + i
	}
	if r.CR {
		if i := bytes.IndexByte(part[seen:end], '\r'); i >= 0 {
			end, r.skipLF = seen+i, true
		}
	}
	return end
}

// line returns the whole line, of which part is the last part, and discards n bytes of the buffer.
func (r *Reader) line(part []byte, n int) ([]byte, error) {
	var err error
	if len(r.long) > 0 {
		r.long, err = r.extend(part)
		part = r.long
	}
	_, _ = r.buf.Discard(n) // they are there, and stay valid until the next read
	return part, err
}

func (r *Reader) extend(part []byte) ([]byte, error) {
	if r.Memory == nil {
		return append(r.long, part...), nil
	}
	return r.Memory.Extend(r.long, part, r.Max+1)
}

// skip skips what is left of a line that was too long.
func (r *Reader) skip() error {
	for r.skipRest {
		_, err := r.buf.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		r.skipRest = false
		return err
	}
	return nil
}

// Keep returns part, a part of the last line, in memory of its own: that of a long line is given away.
func (r *Reader) Keep(part []byte) []byte {
	if len(r.long) == 0 {
		return append([]byte{}, part...)
	}
	r.long = nil
	return part
}

// Shrink lets go of memory for long lines that is larger than size.
func (r *Reader) Shrink(size int) {
	if cap(r.long) > size {
		r.long = nil
	}
}

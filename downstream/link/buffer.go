package link

import (
	"errors"
	"io"
	"math/bits"

	"github.com/agenticnexus/agenticnexus/internal/lines"
)

const (
	// longMessage is the size from which saving memory matters more than avoiding copies.
	longMessage = 4 << 20
	// freeMessage is the size up to which responses are not charged: they fit into existing buffers.
	freeMessage = 16 << 10
)

// errTooLong is the error for a message larger than Options.MaxMessage.
var errTooLong = lines.ErrTooLong

// errNoRoom is the error for a response beyond the caller's memory limit.
var errNoRoom = errors.New("the response exceeds the caller's memory limit")

// room reports whether a response may take total bytes; nil allows everything.
type room func(total int) bool

func (r room) allows(total int) bool { return r == nil || total <= freeMessage || r(total) }

// Extend implements lines.Memory: it appends part to a message of at most most bytes. The capacity doubles, so that
// little is copied. From longMessage on it quadruples, so that the old buffers amount to only a third of the message.
func (r room) Extend(b, part []byte, most int) ([]byte, error) {
	need := len(b) + len(part)
	if need <= cap(b) {
		return append(b, part...), nil
	}
	size := 1 << bits.Len(uint(cap(b)))
	if size > longMessage {
		size = min(2*size, most)
	}
	size = max(need, size)
	if !r.allows(size) {
		return nil, errNoRoom
	}
	grown := append(append(memory.allocate(size)[:0], b...), part...)
	memory.keep(b)
	return grown, nil
}

// readAll reads r to its end. It returns errTooLong beyond most bytes.
func readAll(r io.Reader, most int, room room) ([]byte, error) {
	var all []byte
	part := make([]byte, 16<<10)
	for {
		n, err := r.Read(part)
		if len(all)+n > most {
			return nil, errTooLong
		}
		var full error
		if all, full = room.Extend(all, part[:n], most); full != nil {
			return nil, full
		}
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
	}
}

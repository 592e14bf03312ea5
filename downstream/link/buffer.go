package link

import (
	"errors"
	"io"
	"math/bits"

	"github.com/agenticnexus/agenticnexus/internal/lines"
)

const (
	// longMessage is the size from which memory counts more than the time of copying.
	longMessage = 4 << 20
	// freeMessage is the size of answers that need no room: they fit into buffers that are there anyway.
	freeMessage = 16 << 10
)

// errTooLong tells of a message over Options.MaxMessage.
var errTooLong = lines.ErrTooLong

// errNoRoom tells that the caller may hold no more.
var errNoRoom = errors.New("the caller has no room for the answer")

// room asks whether an answer may take so many bytes in all; nil allows everything.
type room func(total int) bool

func (r room) allows(total int) bool { return r == nil || total <= freeMessage || r(total) }

// Extend implements lines.Memory: it appends part to a message of at most most bytes. The capacity doubles, so that
// little is copied. From longMessage on it becomes four times as large: what is left behind is only a third of the
// message then.
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

// readAll reads r to its end. More than most bytes are errTooLong.
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

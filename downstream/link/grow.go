package link

import (
	"errors"
	"io"
	"runtime/debug"
)

// longMessage is the size from which memory counts more than the time of copying.
const longMessage = 4 << 20

// grow appends part to a message of at most most bytes. The capacity doubles, so that little is copied. From
// longMessage on it becomes four times as large: what is left behind is only a third of the message then, and
// what is not yet written to takes no memory of the machine.
func grow(b, part []byte, most int) []byte {
	need := len(b) + len(part)
	if need <= cap(b) {
		return append(b, part...)
	}
	room := 2 * cap(b)
	if room > longMessage {
		room = min(2*room, most)
	}
	grown := allocate(max(need, room))[:len(b)]
	copy(grown, b)
	return append(grown, part...)
}

// hugeMessage is the size of messages of which one at a time is to be in memory.
const hugeMessage = 16 << 20

// allocate returns n bytes. The collector would let several huge messages pass before it runs: those that have
// passed are to make room first.
func allocate(n int) []byte {
	if n >= hugeMessage {
		debug.FreeOSMemory()
	}
	return make([]byte, n)
}

// readAll reads r to its end. More than most bytes are errTooLong.
func readAll(r io.Reader, most int) ([]byte, error) {
	var all []byte
	part := make([]byte, 16<<10)
	for {
		n, err := r.Read(part)
		if len(all)+n > most {
			return nil, errTooLong
		}
		all = grow(all, part[:n], most)
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
	}
}

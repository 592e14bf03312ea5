package link

import (
	"errors"
	"io"
	"math/bits"
	"sync"

	"github.com/agenticnexus/agenticnexus/internal/lines"
)

const (
	// spareSize is the minimum size of memory that is reused.
	spareSize = 64 << 10
	// maxSpareSize is its maximum size.
	maxSpareSize = 16 << 20
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
	grown := append(append(allocate(size)[:0], b...), part...)
	free(b)
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

// spares holds memory of spareSize to maxSpareSize bytes until the second garbage collection after its last use: a
// *sync.Pool by capacity.
var spares sync.Map

// sizeFor rounds a size up, so that memory of few sizes serves all messages. It adds at most a quarter.
func sizeFor(n int) int {
	step := 1 << max(0, bits.Len(uint(n-1))-3)
	return (n + step - 1) / step * step
}

// allocate returns n bytes with arbitrary content.
func allocate(n int) []byte {
	if n < spareSize || n > maxSpareSize {
		return make([]byte, n)
	}
	size := sizeFor(n)
	if pool, ok := spares.Load(size); ok {
		if b, ok := pool.(*sync.Pool).Get().(*[]byte); ok {
			return (*b)[:n]
		}
	}
	return make([]byte, n, size)
}

// free keeps memory for reuse. No reference to it may remain.
func free(b []byte) {
	if cap(b) >= spareSize && cap(b) <= maxSpareSize && cap(b) == sizeFor(cap(b)) {
		pool, _ := spares.LoadOrStore(cap(b), new(sync.Pool))
		pool.(*sync.Pool).Put(&b)
	}
}

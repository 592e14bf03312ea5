//go:build unix

package http1

import (
	"errors"
	"syscall"
)

// canProbe says whether connections can be asked if they are still open.
const canProbe = true

// newProbe returns a function that reports whether an idle connection is open and nothing has come on it. It
// reads without waiting; what it might read is of no use, for then the connection is closed.
func newProbe(raw syscall.RawConn) func() bool {
	var b [1]byte
	var err error
	read := func(fd uintptr) bool {
		_, err = syscall.Read(int(fd), b[:])
		return true
	}
	return func() bool {
		return raw.Read(read) == nil && errors.Is(err, syscall.EAGAIN)
	}
}

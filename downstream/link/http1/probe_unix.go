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

// newAwait returns a function that waits until a connection has something to read, or has ended. What there is stays.
func newAwait(raw syscall.RawConn) func() {
	var b [1]byte
	ready := func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
		return !errors.Is(err, syscall.EAGAIN)
	}
	return func() { _ = raw.Read(ready) } // reading tells the error
}

//go:build unix

package http1

import (
	"errors"
	"syscall"
)

// canProbe tells whether an idle connection can be probed.
const canProbe = true

// newProbe returns a function that reports whether an idle connection is open and nothing was received on it. It
// reads without blocking; it may discard data, because a connection with data is closed anyway.
func newProbe(raw syscall.RawConn) func() bool {
	quiet := false
	read := func(fd uintptr) bool {
		quiet = nothingToRead(fd)
		return true
	}
	return func() bool { return raw.Read(read) == nil && quiet }
}

// nothingToRead reports whether a read would block.
func nothingToRead(fd uintptr) bool {
	var b [1]byte
	_, err := syscall.Read(int(fd), b[:])
	return errors.Is(err, syscall.EAGAIN)
}

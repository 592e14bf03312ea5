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
	quiet := false
	read := func(fd uintptr) bool {
		quiet = nothingToRead(fd)
		return true
	}
	return func() bool { return raw.Read(read) == nil && quiet }
}

// newTurn returns a function that calls send and then, if that is true, waits until there is something to read or the
// connection has ended. What there is stays. With probe it first looks for something to read; if there is, it does not
// call send.
// Waiting begins before the request is sent, so that an answer is found without another look.
func newTurn(raw syscall.RawConn, send func() bool) func(probe bool) (sent bool) {
	var probe, sent bool
	step := func(fd uintptr) bool {
		switch {
		case sent: // there may be something to read
			return true
		case probe && !nothingToRead(fd):
			return true
		}
		sent = true
		return !send()
	}
	return func(first bool) bool {
		probe, sent = first, false
		_ = raw.Read(step) // reading tells the error
		return sent
	}
}

// nothingToRead reports whether a read would wait.
func nothingToRead(fd uintptr) bool {
	var b [1]byte
	_, err := syscall.Read(int(fd), b[:])
	return errors.Is(err, syscall.EAGAIN)
}

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

// newSendAndWait returns a function that calls send and, if send returns true, waits until data arrives or the
// connection ends, without reading the data. With probe, it first checks for unexpected data and then does not call
// send. The wait is armed before the request is sent, so that an early response is not missed.
func newSendAndWait(raw syscall.RawConn, send func() bool) func(probe bool) (sent bool) {
	var probe, sent bool
	step := func(fd uintptr) bool {
		switch {
		case sent: // data may have arrived
			return true
		case probe && !nothingToRead(fd):
			return true
		}
		sent = true
		return !send()
	}
	return func(first bool) bool {
		probe, sent = first, false
		_ = raw.Read(step) // the next read reports the error
		return sent
	}
}

// nothingToRead reports whether a read would block.
func nothingToRead(fd uintptr) bool {
	var b [1]byte
	_, err := syscall.Read(int(fd), b[:])
	return errors.Is(err, syscall.EAGAIN)
}

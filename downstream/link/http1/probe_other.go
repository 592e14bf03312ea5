//go:build !unix

package http1

import "syscall"

const canProbe = false

func newProbe(syscall.RawConn) func() bool { return nil }

func newSendAndWait(syscall.RawConn, func() bool) func(bool) bool { return nil }

//go:build !unix

package http1

import "syscall"

const canProbe = false

func newProbe(syscall.RawConn) func() bool { return nil }

//go:build !linux

package app

import "syscall"

// awaitAccepted does nothing: here connections that wait when their listener is closed are reset.
func awaitAccepted(syscall.Conn) {}

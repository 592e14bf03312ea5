package main

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// protect keeps what this process holds from its children: other processes of the same user can neither read its
// environment and memory nor attach to it, and files that it has inherited are closed when it starts a program. It also
// turns core dumps off.
func protect() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err == nil { // without /proc there is nothing to read there either
		for _, e := range entries {
			if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
				syscall.CloseOnExec(fd)
			}
		}
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

//go:build unix

package limit

import "syscall"

// OpenFiles returns how many files this process may have open.
func OpenFiles() int {
	var most syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &most) != nil {
		return plenty
	}
	return int(min(uint64(most.Cur), plenty)) //nolint:unconvert // it is signed on some systems
}

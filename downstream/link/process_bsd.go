//go:build unix && !linux

package link

import (
	"os/exec"
	"syscall"
)

// setGroup makes the child the leader of a group of its own.
func setGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

//go:build unix && !linux

package link

import (
	"os/exec"
	"syscall"
)

// setGroup makes the child the leader of its own process group.
func setGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

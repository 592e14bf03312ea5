//go:build unix && !linux

package link

import (
	"os"
	"os/exec"
	"syscall"
)

// setGroup makes the child the leader of its own process group.
func setGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// holds cannot tell whether a pipe holds bytes that nobody has read.
func holds(*os.File) bool { return false }

package link

import (
	"os/exec"
	"syscall"
)

// setGroup makes the child the leader of a group of its own, and lets it end with us even if we are killed.
func setGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

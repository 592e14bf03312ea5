package link

import (
	"os/exec"
	"syscall"
)

// setGroup makes the child the leader of its own process group, and ends it with the router even if the router is
// killed.
func setGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

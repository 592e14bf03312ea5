//go:build unix

package link

import (
	"os/exec"
	"syscall"
)

// inherited are the environment variables that a child inherits.
var inherited = []string{"PATH", "HOME", "LANG", "TMPDIR"}

func termGroup(cmd *exec.Cmd) { signalGroup(cmd, syscall.SIGTERM) }

func killGroup(cmd *exec.Cmd) { signalGroup(cmd, syscall.SIGKILL) }

// signalGroup signals the child and its descendants. A group that no longer exists is not an error.
func signalGroup(cmd *exec.Cmd, sig syscall.Signal) { _ = syscall.Kill(-cmd.Process.Pid, sig) }

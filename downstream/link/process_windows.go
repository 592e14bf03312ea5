package link

import "os/exec"

func setGroup(*exec.Cmd) {}

// Windows has no signals, and no process groups are used here: only the child is ended.
func termGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

package link

import "os/exec"

func setGroup(*exec.Cmd) {}

// Windows has no signals to ask with, and no groups here: the child alone is ended.
func termGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

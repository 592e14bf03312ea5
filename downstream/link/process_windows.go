package link

import (
	"os/exec"
)

// inherited are the environment variables that a child inherits: what Unix programs find under other names or without
// variables.
var inherited = []string{
	"PATH", "PATHEXT", "COMSPEC", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "PROGRAMFILES", "PROCESSOR_ARCHITECTURE",
	"USERNAME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP",
}

func setGroup(*exec.Cmd) {}

// Windows has no signals, and no process groups are used here: only the child is ended.
func termGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

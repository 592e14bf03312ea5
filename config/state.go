package config

import (
	"errors"
	"os"
	"path/filepath"
)

// StateFolder returns the folder for state that outlives a restart: State, else the user's state folder.
func (s *Settings) StateFolder() (string, error) {
	if s.State != "" {
		return filepath.Abs(s.State)
	}
	if base := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "agenticnexus"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return "", errors.New("there is no home folder; set state")
	}
	return filepath.Join(home, ".local", "state", "agenticnexus"), nil
}

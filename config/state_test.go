package config_test

import (
	"path/filepath"
	"testing"

	"github.com/agenticnexus/agenticnexus/config"
)

func TestStateFolder(t *testing.T) {
	for _, row := range []struct{ state, xdg, home, want string }{
		{"/a/b", "/xdg", "/home/ann", "/a/b"},
		{"", "/xdg", "/home/ann", "/xdg/agenticnexus"},
		{"", "relative", "/home/ann", "/home/ann/.local/state/agenticnexus"},
		{"", "", "", ""},
	} {
		t.Setenv("XDG_STATE_HOME", row.xdg)
		t.Setenv("HOME", row.home)
		cfg := config.Default()
		cfg.State = row.state
		got, err := cfg.StateFolder()
		if got != filepath.FromSlash(row.want) || (err == nil) != (row.want != "") {
			t.Errorf("%+v: got %q, %v", row, got, err)
		}
	}
	if cfg := load(t, environment("NEXUS_STATE", "/var/lib/nexus")); cfg.State != "/var/lib/nexus" {
		t.Errorf("got %q, want that of NEXUS_STATE", cfg.State)
	}
}

package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/agenticnexus/agenticnexus/config"
)

// nexus config check reports an audit log that could not be opened, and makes no file.
func TestCheckAudit(t *testing.T) {
	for name, row := range map[string]struct{ path, why string }{
		"new":          {"audit.jsonl", ""},
		"empty":        {"empty", ""},
		"stdout":       {"", ""},
		"no folder":    {"none/audit.jsonl", "no such file or directory"},
		"a folder":     {"folder", "is a directory"},
		"in a file":    {"notes/audit.jsonl", "not a directory"},
		"no log":       {"notes", "it is not an audit log"},
		"read-only":    {"locked/audit.jsonl", "permission denied"},
		"cut off":      {"cut", ""}, // which the next start repairs
		"no log's end": {"end", "it is not an audit log"},
	} {
		t.Run(name, func(t *testing.T) {
			line := `{"time":"2026-01-02T03:04:05.000000Z","seq":1,"prev":"` + zeros + `","caller":"a"}`
			folder := write(t, "empty", "", "notes", "these are my notes\n", "folder/x", "", "locked/x", "",
				"cut", line+"\n"+line[:20], "end", line+"\nmore\n")
			if err := os.Chmod(filepath.Join(folder, "locked"), 0o500); err != nil {
				t.Fatal(err)
			}
			if row.path == "locked/audit.jsonl" && os.Getuid() == 0 {
				t.Skip("root may write everywhere")
			}
			path := filepath.Join(folder, row.path)
			if row.path == "" {
				path = "stdout"
			}
			file := filepath.Join(write(t, "settings.yaml", "log: {level: info}\naudit:\n  path: "+path+"\n"), "settings.yaml")
			want := ""
			if row.why != "" {
				want = file + ":3:9: audit.path: the audit log " + path + " cannot be used: " + row.why +
					"; set audit.path to a file that the router may write"
			}
			_, err := config.Check([]string{file}, config.Options{})
			if got := (*config.Error)(nil); errors.As(err, &got) != (want != "") || err != nil && err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
			if left, err := os.ReadDir(folder); err != nil || len(left) != 6 {
				t.Errorf("got %v, %v, want no other file", left, err)
			}
			if _, err := config.Load([]string{file}, config.Options{}); err != nil {
				t.Errorf("Load: got %v; the log is opened later", err)
			}
		})
	}
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

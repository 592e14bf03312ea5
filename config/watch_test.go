package config_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/config"
)

// place writes a file the way editors do: another one takes its name.
func place(t *testing.T, path, content string) {
	t.Helper()
	fresh := path + "~"
	if err := os.WriteFile(fresh, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, path); err != nil {
		t.Fatal(err)
	}
}

func TestWatcher(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "servers.yaml")
	same := time.Now().Add(-time.Hour)
	writeSame := func(content string) { // in place, with the same time
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, same, same); err != nil {
			t.Fatal(err)
		}
	}
	place(t, file, "a")
	for name, paths := range map[string][]string{"folder": {dir}, "file": {file}} {
		w := config.Watch(paths, config.Options{})
		want := func(what string, changed ...bool) {
			t.Helper()
			for i, c := range changed {
				if got := w.Changed(); got != c {
					t.Errorf("%s, %s, look %d: got changed %t, want %t", name, what, i+1, got, c)
				}
			}
		}
		want("nothing happened", false, false)
		place(t, file, "b")
		want("another file of the same size", false, true, false)
		writeSame("c")
		want("written in place", false, true, false)
		writeSame("cc")
		want("another size", false, true, false)
		place(t, file, "d")
		want("being written", false)
		place(t, file, "e")
		want("still being written", false, true, false)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		want("removed", false, true, false)
		place(t, file, "f")
		want("back", false, true, false)
		place(t, filepath.Join(dir, "settings.yaml"), "x"+name)
		want("another file of the folder", false, name == "folder", false)
		place(t, filepath.Join(dir, "other.yaml"), "x"+name)
		want("a file that does not count", false, false)
	}
}

// Kubernetes mounts a folder whose files are links through a link that is moved.
func TestWatcherFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"v1", "v2"} {
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		place(t, filepath.Join(dir, version, "servers.yaml"), "same")
	}
	link := func(to string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, "next")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	link("v1")
	if err := os.Symlink(filepath.Join("..data", "servers.yaml"), filepath.Join(dir, "servers.yaml")); err != nil {
		t.Fatal(err)
	}
	w := config.Watch([]string{dir}, config.Options{})
	link("v2")
	for i, want := range []bool{false, true, false} {
		if got := w.Changed(); got != want {
			t.Errorf("look %d: got changed %t, want %t", i+1, got, want)
		}
	}
}

// Without paths it is the default folder that counts, even if it is not there yet.
func TestWatcherOfDefaultFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	w, none := config.Watch(nil, config.Options{}), config.Watch(nil, config.Options{NoFile: true})
	if err := os.Mkdir(config.DefaultFolder, 0o700); err != nil {
		t.Fatal(err)
	}
	place(t, filepath.Join(config.DefaultFolder, "servers.yaml"), "x")
	for i, want := range []bool{false, true, false} {
		if got := w.Changed(); got != want {
			t.Errorf("look %d: got changed %t, want %t", i+1, got, want)
		}
		if none.Changed() {
			t.Error("with NoFile: got a change, want none")
		}
	}
}

package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/atomicfile"
)

func TestWrite(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "a.json")
	for _, content := range []string{"a longer text", "short"} {
		if err := atomicfile.Write(name, []byte(content)); err != nil {
			t.Fatalf("writing %q: %v", content, err)
		}
		got, err := os.ReadFile(name)
		if err != nil || string(got) != content {
			t.Errorf("got %q, %v, want %q", got, err, content)
		}
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v, want 0600", info.Mode(), err)
	}
}

// What cannot be written leaves nothing behind.
func TestWrite_Fails(t *testing.T) {
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "taken", "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join(folder, "taken"), filepath.Join(folder, "none", "a")} {
		if err := atomicfile.Write(name, []byte("x")); err == nil {
			t.Errorf("%s: got no error, want one", name)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("got %v, %v in the folder, want what was there", left, err)
	}
}

func TestRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(name, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := atomicfile.Read(name, 5); err != nil || string(got) != "12345" {
		t.Errorf("got %q, %v, want the whole file", got, err)
	}
	if got, err := atomicfile.Read(name, 4); err == nil {
		t.Errorf("a file beyond the bound: got %q, want an error", got)
	}
	if _, err := atomicfile.Read(name+"b", 5); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: got %v, want fs.ErrNotExist", err)
	}
}

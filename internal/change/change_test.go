package change_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/change"
)

func plain(text string) string { return text }

func write(t *testing.T, name, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) *change.Change {
	t.Helper()
	c, err := change.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func want(t *testing.T, name, content string) {
	t.Helper()
	if got, err := os.ReadFile(name); err != nil || string(got) != content {
		t.Errorf("%s: got %q, %v, want %q", filepath.Base(name), got, err, content)
	}
}

// A link stays a link, the file keeps its mode, and the former content is kept.
func TestApply(t *testing.T) {
	folder := t.TempDir()
	file, link, backup := filepath.Join(folder, "real"), filepath.Join(folder, "link"), filepath.Join(folder, "backup")
	write(t, file, "old\n", 0o640)
	if err := os.Symlink("real", link); err != nil {
		t.Skip(err)
	}
	c := read(t, link)
	if c.Changes() {
		t.Error("got a change before one was made")
	}
	c.After = []byte("new\n")
	if err := c.Apply(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	want(t, file, "new\n")
	want(t, backup, "old\n")
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode: got %v, %v, want 0640", info.Mode(), err)
	}
	if err := c.Apply(t.Context(), ""); !errors.Is(err, change.ErrMeanwhile) {
		t.Errorf("a second time: got %v, want ErrMeanwhile", err)
	}
	c = read(t, file)
	c.After = nil
	if err := c.Apply(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 2 {
		t.Errorf("got %v, %v, want the link and the backup", left, err)
	}
	if _, err := change.Read(link); err == nil {
		t.Error("a link to nothing: got no error")
	}
}

func TestApply_MakesTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "folder", "file")
	c := read(t, file)
	c.After = []byte("x")
	if err := c.Apply(t.Context(), file+".backup"); err != nil {
		t.Fatal(err)
	}
	want(t, file, "x")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode: got %v, %v, want 0600", info.Mode(), err)
	}
	if _, err := os.Stat(file + ".backup"); err == nil {
		t.Error("got a backup of nothing")
	}
}

// What cannot be changed is left as it was, and said in one line.
func TestApply_Fails(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	for _, c := range []struct {
		name   string
		spoil  func()
		want   string
		before string
	}{
		{"read-only file", func() { write(t, file, "old", 0o440) }, "is read-only", "old"},
		{"read-only folder", func() { write(t, file, "old", 0o640); _ = os.Chmod(folder, 0o550) }, "is read-only", "old"},
	} {
		c.spoil()
		ch := read(t, file)
		ch.After = []byte("new")
		if err := ch.Apply(t.Context(), ""); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
		_ = os.Chmod(folder, 0o750)
		want(t, file, c.before)
	}
	if _, err := change.Read(folder); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("a folder: got %v", err)
	}
	if _, err := change.Read(filepath.Join(file, "below")); err == nil {
		t.Error("below a file: got no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ch := read(t, file)
	ch.After = []byte("new")
	if err := ch.Apply(ctx, ""); err != nil { // the lock is free
		t.Error(err)
	}
}

// Many that add a line at once lose none, if each that came too late reads again.
func TestApply_AtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for {
				c, err := change.Read(file)
				if err != nil {
					t.Error(err)
					return
				}
				c.After = append(append([]byte{}, c.Before...), strconv.Itoa(i)+"\n"...)
				err = c.Apply(t.Context(), "")
				if errors.Is(err, change.ErrMeanwhile) {
					continue
				}
				if err != nil {
					t.Error(err)
				}
				return
			}
		})
	}
	wg.Wait()
	got, err := os.ReadFile(file)
	if err != nil || strings.Count(string(got), "\n") != 8 {
		t.Errorf("got %q, %v, want eight lines", got, err)
	}
}

func TestDiff(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{"a\n", "a\n", "  …\n"},
		{"", "a\nb", "+ a\n+ b\n"},
		{"a\nb\n", "a\nc\n", "  a\n- b\n+ c\n"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n", "  …\n  2\n  3\n  4\n- 5\n+ x\n  6\n  7\n  8\n  …\n"},
		{"key\r\n", "", "- ***\n"},
	} {
		ch := &change.Change{Before: []byte(c.before), After: []byte(c.after)}
		got := ch.Diff(func(line string) string { return strings.ReplaceAll(line, "key", "***") })
		if got != c.want {
			t.Errorf("%q to %q: got\n%swant\n%s", c.before, c.after, got, c.want)
		}
	}
	long := &change.Change{After: []byte(strings.Repeat("x", 1000))}
	if got := long.Diff(plain); len(got) > 500 {
		t.Errorf("a long line: got %d bytes", len(got))
	}
}

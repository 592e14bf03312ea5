// Package change edits text files that belong to users. [Read] begins a [Change]; its owner sets After, shows
// [Change.Diff] and calls [Change.Apply]. A Change is not safe for concurrent use; any number of processes may change
// one file, one after the other where the system has locks for files.
package change

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/atomicfile"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// ErrMeanwhile is the error of Apply for a file that is no longer as it was read. Read it again.
var ErrMeanwhile = errors.New("the file has just been changed by another program; try again")

// maxFile bounds a file, in bytes.
const maxFile = 64 << 20

// Change is a change of one file that is not made yet.
type Change struct {
	File   string // links are followed
	Before []byte // nil = there is no file
	After  []byte // nil = there will be no file
}

// Read returns a Change of a file that changes nothing yet. Errors name the file.
func Read(name string) (*Change, error) {
	file, err := filepath.EvalSymlinks(name)
	if errors.Is(err, fs.ErrNotExist) {
		if info, err := os.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 { // else it has just been made
			return nil, fmt.Errorf("%s: is a link to a file that does not exist; remove the link", name)
		}
		return &Change{File: name}, nil
	}
	if err != nil {
		return nil, failed(name, err)
	}
	before, err := read(file)
	if err != nil {
		return nil, failed(name, err)
	}
	return &Change{File: file, Before: before, After: before}, nil
}

// read returns the content of a regular file, nil if there is none.
func read(file string) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a file")
	}
	content, err := atomicfile.Read(file, maxFile)
	if content == nil {
		content = []byte{}
	}
	return content, err
}

// failed makes an error about a file one line that names the file once.
func failed(file string, err error) error {
	if wrapped := (*fs.PathError)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return fmt.Errorf("%s: %w", file, err)
}

// Changes reports whether Apply changes the file.
func (c *Change) Changes() bool { return !same(c.Before, c.After) }

func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// Apply makes the change, if the file is still as it was read; otherwise the error is ErrMeanwhile. The file keeps its
// mode; a new one can be read by its owner only. Missing folders are made. If backup is not empty, the former content
// is kept in that file, readable by its owner only. After an error or a crash the file is as before or as after.
func (c *Change) Apply(ctx context.Context, backup string) error {
	folder := filepath.Dir(c.File)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return failed(folder, err)
	}
	unlock, err := atomicfile.LockFolder(ctx, folder)
	if err != nil {
		return failed(folder, err)
	}
	defer unlock()
	switch now, err := read(c.File); {
	case err != nil:
		return failed(c.File, err)
	case !same(now, c.Before):
		return fmt.Errorf("%s: %w", c.File, ErrMeanwhile)
	}
	if err := c.Writable(); err != nil {
		return err
	}
	if backup != "" && c.Before != nil {
		if err := atomicfile.Write(backup, c.Before); err != nil {
			return failed(backup, err)
		}
	}
	if c.After == nil {
		err = os.Remove(c.File)
	} else {
		err = atomicfile.Replace(c.File, c.After)
	}
	if err != nil {
		return failed(c.File, err)
	}
	return nil
}

// Writable returns an error if the file or its folder is read-only.
func (c *Change) Writable() error {
	for _, name := range []string{filepath.Dir(c.File), c.File} { // a rename ignores that the file itself is read-only
		info, err := os.Stat(name)
		if err == nil && info.Mode().Perm()&0o200 == 0 && !(info.IsDir() && runtime.GOOS == "windows") { // no bar there
			return fmt.Errorf("%s: is read-only", name)
		}
	}
	return nil
}

// Bounds of a difference.
const (
	around  = 3   // unchanged lines shown before and after a change
	maxLine = 400 // bytes shown of a line
)

// Diff returns the difference line by line: "-" and "+" mark lines of the old and the new content, "…" stands for
// unchanged lines. mask removes secrets from a line.
func (c *Change) Diff(mask func(string) string) string {
	var out strings.Builder
	lines := func(sign string, all []string) {
		for _, line := range all {
			out.WriteString(sign + texts.Cut(mask(strings.TrimRight(line, "\r\n")), maxLine) + "\n")
		}
	}
	pieces := texts.Compare(split(c.Before), split(c.After))
	for i, p := range pieces {
		all := split([]byte(p.Text))
		switch p.Change {
		case texts.Removed:
			lines("- ", all)
		case texts.Added:
			lines("+ ", all)
		default:
			head, tail := around, around // lines that belong to the change before and to the one after
			if i == 0 {
				head = 0
			}
			if i == len(pieces)-1 {
				tail = 0
			}
			if len(all) <= head+tail {
				lines("  ", all)
				continue
			}
			lines("  ", all[:head])
			out.WriteString("  …\n")
			lines("  ", all[len(all)-tail:])
		}
	}
	return out.String()
}

// split returns the lines of a text with their ends.
func split(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	lines := strings.SplitAfter(string(text), "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	return lines
}

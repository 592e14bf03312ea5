package config

import (
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Watcher detects changes of configuration files. It polls, because editors replace files and Kubernetes moves links.
// It is not safe for concurrent use.
type Watcher struct {
	paths []string
	known []seen // as last reported
	last  []seen // as last polled
}

// seen is the state of a file.
type seen struct {
	name     string
	size     int64
	modified time.Time
	info     os.FileInfo // of the target of links
}

// Watch starts to watch paths, the same as for Load.
func Watch(paths []string, opts Options) *Watcher {
	if len(paths) == 0 && !opts.NoFile {
		paths = []string{DefaultFolder}
	}
	w := &Watcher{paths: paths}
	w.known = w.look()
	w.last = w.known
	return w
}

// Changed reports whether the files have changed since it last returned true. It returns true once two calls see the
// same files, so that no file is read while it is written.
func (w *Watcher) Changed() bool {
	now := w.look()
	settled := slices.EqualFunc(now, w.last, seen.same)
	w.last = now
	if !settled || slices.EqualFunc(now, w.known, seen.same) {
		return false
	}
	w.known = now
	return true
}

// look returns the states of the files, including those in folders.
func (w *Watcher) look() (files []seen) {
	for _, path := range w.paths {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			files = append(files, seen{name: path})
		case !info.IsDir():
			files = append(files, seen{path, info.Size(), info.ModTime(), info})
			path = filepath.Dir(path)
		default:
			for _, name := range folderFiles {
				for _, file := range variants(path, name) {
					if info, err := os.Stat(file); err == nil {
						files = append(files, seen{file, info.Size(), info.ModTime(), info})
					}
				}
			}
		}
		if info, err := os.Stat(filepath.Join(path, SecretsFile)); err == nil {
			files = append(files, seen{info.Name(), info.Size(), info.ModTime(), info})
		}
	}
	return files
}

func (s seen) same(o seen) bool {
	return s.name == o.name && s.size == o.size && s.modified.Equal(o.modified) &&
		(s.info == nil) == (o.info == nil) && (s.info == nil || os.SameFile(s.info, o.info))
}

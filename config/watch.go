package config

import (
	"os"
	"slices"
	"time"
)

// Watcher tells when the files of a configuration have changed, by looking at them: that also sees what
// editors do, which put another file in the place of the old one, and Kubernetes, which moves a link. It is
// not safe for concurrent use.
type Watcher struct {
	paths []string
	known []seen // as they were last reported
	last  []seen // as they were last looked at
}

// seen is what a file looked like. It does not open the file.
type seen struct {
	name     string
	size     int64
	modified time.Time
	info     os.FileInfo // of what links lead to
}

// Watch begins to watch the paths that were given to Load.
func Watch(paths []string, opts Options) *Watcher {
	if len(paths) == 0 && !opts.NoFile {
		paths = []string{DefaultFolder}
	}
	w := &Watcher{paths: paths}
	w.known = w.look()
	w.last = w.known
	return w
}

// Changed reports whether the files are others than when it last said so. It waits with that until they
// look the same in two calls, so that a file is not read while it is written.
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

// look returns what the files look like, those of folders included.
func (w *Watcher) look() (files []seen) {
	for _, path := range w.paths {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			files = append(files, seen{name: path})
		case !info.IsDir():
			files = append(files, seen{path, info.Size(), info.ModTime(), info})
		default:
			for _, name := range folderFiles {
				for _, file := range variants(path, name) {
					if info, err := os.Stat(file); err == nil {
						files = append(files, seen{file, info.Size(), info.ModTime(), info})
					}
				}
			}
		}
	}
	return files
}

func (s seen) same(o seen) bool {
	return s.name == o.name && s.size == o.size && s.modified.Equal(o.modified) &&
		(s.info == nil) == (o.info == nil) && (s.info == nil || os.SameFile(s.info, o.info))
}

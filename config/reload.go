package config

import (
	"bytes"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/auth"
)

// source is a file as Load read it.
type source struct {
	file    string
	content []byte
	empty   bool // it gives no setting and no server
}

// Reload loads the configuration again to replace used, the last good one. Missing, empty or cut files never widen
// access:
//
//   - A file of used that is missing, that is empty but was not, or that is cut is an error. The same file with another
//     extension is not missing.
//   - Without auth.api_keys, or with a key file that cannot be read, the keys of used stay, with a warning.
//     `auth: {api_keys: []}` removes them. Likewise auth.oauth stays; `auth: {oauth: {}}` removes it.
//
// After an *Error, used stays in use as a whole.
func Reload(paths []string, opts Options, used Config) (Config, error) {
	return load(paths, opts, &used)
}

// Same reports whether two configurations are equal, regardless of the text of their files.
func (c Config) Same(other Config) bool {
	c.sources, other.sources = nil, nil
	return reflect.DeepEqual(c, other)
}

// compareSources finds files that were damaged or lost since used was read.
func (d *decoder) compareSources(now Config) {
	if d.used == nil {
		return
	}
	for _, before := range d.used.sources {
		i := slices.IndexFunc(now.sources, func(s source) bool { return sameFile(s.file, before.file) })
		switch {
		case i < 0:
			if !slices.ContainsFunc(d.problems.list, func(p Problem) bool { return p.File == before.file }) {
				d.problems.add(position{file: before.file}, "is missing; restart the router to do without it")
			}
		case before.empty:
		case now.sources[i].empty:
			d.problems.add(position{file: now.sources[i].file},
				"is empty now; write an empty mcpServers to remove all servers, an empty list as auth.api_keys to remove all keys")
		case now.sources[i].cutOff(before) && !(now.sources[i].endsInLine() && d.onlyRemoves(now)):
			d.problems.add(position{file: now.sources[i].file},
				"is cut off: it has only the first %d of %d bytes; if that is meant, change a line before them, too",
				len(now.sources[i].content), len(before.content))
		}
	}
}

// sameFile reports whether two names are of the same file in any format.
func sameFile(a, b string) bool {
	stem := func(file string) string { return strings.TrimSuffix(file, filepath.Ext(file)) }
	return a == b || filepath.Dir(a) == filepath.Dir(b) && stem(a) == stem(b) &&
		slices.Contains(folderFiles, filepath.Base(stem(a)))
}

// cutOff reports whether s is only the beginning of the former content, and more than space is gone.
func (s source) cutOff(before source) bool {
	rest, isBeginning := bytes.CutPrefix(before.content, s.content)
	return isBeginning && len(bytes.TrimSpace(rest)) > 0
}

// endsInLine reports whether s ends with a complete line.
func (s source) endsInLine() bool { return bytes.HasSuffix(s.content, []byte("\n")) }

// onlyRemoves reports whether the missing end has only whole servers, whole keys or settings that do not affect access.
// That is how people remove the last entry; any other cut is an interrupted write.
func (d *decoder) onlyRemoves(now Config) bool {
	for _, server := range now.Servers {
		same := func(u downstream.ServerConfig) bool { return reflect.DeepEqual(u, server) }
		if !slices.ContainsFunc(d.used.Servers, same) {
			return false
		}
	}
	for _, key := range now.Auth.APIKeys {
		if !slices.ContainsFunc(d.used.Auth.APIKeys, func(u auth.KeyConfig) bool { return reflect.DeepEqual(u, key) }) {
			return false
		}
	}
	return now.Auth.Anonymous == d.used.Auth.Anonymous && reflect.DeepEqual(now.Auth.OAuth, d.used.Auth.OAuth) &&
		reflect.DeepEqual(now.RateLimit, d.used.RateLimit)
}

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/llm"
)

// DefaultFolder is read if no path is given and it exists.
const DefaultFolder = "config"

// Options of Load. The zero value is ready to use.
type Options struct {
	Env    func(string) (string, bool) // looks up environment variables; nil = os.LookupEnv
	NoFile bool                        // without paths use the defaults, even if DefaultFolder exists
	Others []string                    // names of servers that no file configures; nil = for Reload, those of used

	programs bool // look at this machine, see checker
	strict   bool // a variable of a server that is not set is a mistake

	planned map[string][]byte // texts that files are to have
}

// Load reads the configuration from files and folders. Later ones override the settings of earlier ones key by key
// and add servers. A folder means its servers.* and settings.* (yaml, yml or json), without subfolders. Without paths
// Load reads DefaultFolder, or uses the defaults if that does not exist. NEXUS_LISTEN, NEXUS_STATE, NEXUS_API_KEY,
// NEXUS_REPLICA, NEXUS_ADVERTISE, NEXUS_CLUSTER_KEY and NEXUS_TOKEN_KEY of the environment apply, too. The first
// mistake is returned as an *Error; several wrong rules of a policy are an error that wraps one for each.
func Load(paths []string, opts Options) (Config, error) { return load(paths, opts, nil) }

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

func load(paths []string, opts Options, used *Config) (Config, error) {
	c := loader{newChecker(opts.Env)}
	c.programs, c.strict, c.used, c.others = opts.programs && opts.Env == nil, opts.strict, used, opts.Others
	c.planned = opts.planned
	if used != nil && opts.Others == nil {
		c.others = used.others
	}
	files, err := filesAt(paths, opts)
	if err != nil {
		return Config{}, err
	}
	if err := c.besideFiles(files); err != nil {
		return Config{}, err
	}
	cfg := Default()
	for _, name := range files {
		if err := c.file(name, &cfg); err != nil {
			return Config{}, err
		}
	}
	if listen, _ := c.env("NEXUS_LISTEN"); listen != "" {
		cfg.Listen = listen
	}
	if state, _ := c.env("NEXUS_STATE"); state != "" {
		cfg.State = state
	}
	settingsCheck(c).settings(&cfg.Settings)
	c.logins(&cfg)
	c.sources(cfg)
	cfg.Files, cfg.Warnings, cfg.others = files, c.warnings, c.others
	if c.err != nil {
		return Config{}, c.err
	}
	return cfg, nil
}

// filesAt returns the files at paths.
func filesAt(paths []string, opts Options) (files []string, err error) {
	implied := len(paths) == 0
	if info, err := os.Stat(DefaultFolder); implied && (opts.NoFile || err != nil || !info.IsDir()) {
		return nil, nil
	} else if implied {
		paths = []string{DefaultFolder}
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return nil, mistake(path, nil, "%v", reason(err))
		case !info.IsDir():
			files = append(files, path)
			continue
		}
		before := len(files)
		for _, name := range folderFiles {
			found := variants(path, name)
			if file := filepath.Join(path, name+".yaml"); len(found) == 0 && opts.planned[file] != nil {
				found = []string{file}
			}
			if len(found) > 1 {
				return nil, mistake(path, nil, "holds %s; keep one", orList(baseNames(found), "and"))
			}
			files = append(files, found...)
		}
		if len(files) == before && !implied {
			return nil, mistake(path, nil, "the folder has neither servers.yaml nor settings.yaml")
		}
	}
	for i, file := range files {
		if slices.Contains(files[:i], file) {
			return nil, mistake(file, nil, "is given twice")
		}
	}
	return files, nil
}

// Implied reports whether Load without paths reads DefaultFolder.
func Implied() bool {
	files, err := filesAt(nil, Options{})
	return len(files) > 0 || err != nil
}

// Has reports whether there is a configuration at a path: a file, or a folder that Load takes.
func Has(path string) bool {
	info, err := os.Stat(path)
	return err == nil && (!info.IsDir() ||
		slices.ContainsFunc(folderFiles, func(name string) bool { return len(variants(path, name)) > 0 }))
}

// folderFiles are the configuration files of a folder without their extensions.
var folderFiles = []string{"servers", "settings"}

// variants returns the files of a folder with a name, in any format.
func variants(folder, name string) []string {
	var found []string
	for _, ending := range []string{".yaml", ".yml", ".json"} {
		file := filepath.Join(folder, name+ending)
		if info, err := os.Stat(file); err == nil && !info.IsDir() {
			found = append(found, file)
		}
	}
	return found
}

func baseNames(files []string) []string {
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = filepath.Base(file)
	}
	return names
}

// reason returns an error about a file without the file name.
func reason(err error) error {
	if wrapped := (*fs.PathError)(nil); errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// loader reads files.
type loader struct{ *checker }

// file reads one file into cfg. JSON with servers and other keys than settings is the file of a desktop client; only
// its servers are read. Any other file may have settings, servers or both.
func (c loader) file(name string, cfg *Config) error {
	content, isPlanned := c.planned[name]
	if !isPlanned {
		var err error
		if content, err = readFile(name, maxFile); err != nil {
			return mistake(name, nil, "%v", err)
		}
	}
	doc, err := parse(name, content, isJSON(name, content))
	if err != nil {
		return err
	}
	first := member(doc.root, "mcpServers")
	for _, m := range doc.root.Values { // the decoder finds others
		if keyOf(m) == "mcpServers" && m != first {
			return mistake(name, m.Key.GetToken(), "key %s is already given in line %d", quote(keyOf(m)),
				first.Key.GetToken().Position.Line)
		}
	}
	c.docs = append(c.docs, doc)
	cfg.sources = append(cfg.sources, source{name, content, doc.isEmpty()})
	path, servers := "mcpServers", value(doc.root, "mcpServers")
	settings := *doc.root
	if doc.json {
		path, servers = clientServers(doc.root)
		if servers != nil && !(path == "mcpServers" && hasOnly(doc.root, append(keys(reflect.TypeFor[Settings]()), path))) {
			c.ignored(doc, strings.Split(path, ".")[0])
			settings.Values = nil
		}
	}
	settings.Values = slices.DeleteFunc(slices.Clone(settings.Values), func(m *ast.MappingValueNode) bool {
		return keyOf(m) == "mcpServers"
	})
	if err := doc.expand("", &settings, c.env, false); err != nil {
		return err
	}
	for _, model := range []string{"llm.planner", "llm.synthesizer"} {
		if err := doc.rawMembers(model + ".extra"); err != nil {
			return err
		}
	}
	if value(&settings, "llm") != nil && cfg.LLM == nil {
		cfg.LLM = &LLM{Planner: llm.Default()}
	}
	if err := doc.decode("", &settings, &cfg.Settings, "mcpServers"); err != nil {
		return err
	}
	if servers == nil {
		return nil
	}
	cfg.Servers, err = c.servers(cfg.Servers, doc, path, servers)
	return err
}

// ignored warns about ignored keys of a desktop client's file.
func (c loader) ignored(doc *document, used string) {
	var others []string
	for _, m := range doc.root.Values {
		if key := keyOf(m); key != used {
			others = append(others, quote(key))
		}
	}
	if len(others) > 0 {
		c.warnAt(mistake(doc.name, nil, "only the servers of this JSON file are read, not %s", orList(others, "and")))
	}
}

// readFile reads a file, at most one byte more than allowed.
func readFile(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, reason(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("reading: %w", reason(err))
	}
	return data, nil
}

// isJSON reports whether a file is JSON. One without the extension .json, .yaml or .yml is if it starts with "{".
func isJSON(file string, data []byte) bool {
	switch filepath.Ext(file) {
	case ".json":
		return true
	case ".yaml", ".yml":
		return false
	}
	return bytes.HasPrefix(bytes.TrimSpace(data), []byte("{"))
}

// source is a file as Load read it.
type source struct {
	file    string
	content []byte
	empty   bool // it gives no setting and no server
}

// isEmpty reports whether no key of a file has a value.
func (d *document) isEmpty() bool {
	return !slices.ContainsFunc(d.root.Values, func(m *ast.MappingValueNode) bool {
		return m.Value.Type() != ast.NullType
	})
}

// sources finds files that were damaged or lost since used was read.
func (c loader) sources(now Config) {
	if c.used == nil {
		return
	}
	for _, before := range c.used.sources {
		i := slices.IndexFunc(now.sources, func(s source) bool { return sameFile(s.file, before.file) })
		if i < 0 {
			c.failAt(mistake(before.file, nil, "is missing; restart the router to do without it"))
			return
		}
		s := now.sources[i]
		switch {
		case before.empty:
		case s.empty:
			c.failAt(mistake(s.file, nil,
				"is empty now; write an empty mcpServers to remove all servers, an empty list as auth.api_keys to remove all keys"))
		case s.cutOff(before) && !(bytes.HasSuffix(s.content, []byte("\n")) && c.onlyRemoves(now)):
			c.failAt(mistake(s.file, nil,
				"is cut off: it has only the first %d of %d bytes; if that is meant, change a line before them, too",
				len(s.content), len(before.content)))
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

// onlyRemoves reports whether the missing end has only whole servers, whole keys or settings that do not affect access.
// That is how people remove the last entry; any other cut is an interrupted write.
func (c loader) onlyRemoves(now Config) bool {
	for _, server := range now.Servers {
		same := func(u downstream.ServerConfig) bool { return reflect.DeepEqual(u, server) }
		if !slices.ContainsFunc(c.used.Servers, same) {
			return false
		}
	}
	for _, key := range now.Auth.APIKeys {
		if !slices.ContainsFunc(c.used.Auth.APIKeys, func(u auth.KeyConfig) bool { return reflect.DeepEqual(u, key) }) {
			return false
		}
	}
	return reflect.DeepEqual(now.Policy, c.used.Policy) && now.Auth.Anonymous == c.used.Auth.Anonymous &&
		reflect.DeepEqual(now.Auth.OAuth, c.used.Auth.OAuth) &&
		reflect.DeepEqual(now.RateLimit, c.used.RateLimit)
}

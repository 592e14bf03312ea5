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

	"github.com/agenticnexus/agenticnexus/internal/llm"
)

// DefaultFolder is read if no path is given and it exists.
const DefaultFolder = "config"

// Options of Load. The zero value is ready to use.
type Options struct {
	Env    func(string) (string, bool) // looks up environment variables; nil = os.LookupEnv
	NoFile bool                        // without paths use the defaults, even if DefaultFolder exists

	programs bool // warn about commands that do not exist
}

// Load reads the configuration from files and folders. Later ones override the settings of earlier ones key by key
// and add servers. A folder means its servers.* and settings.* (yaml, yml or json), without subfolders. Without paths
// Load reads DefaultFolder, or uses the defaults if that does not exist. NEXUS_LISTEN, NEXUS_STATE and NEXUS_API_KEY
// of the environment apply, too. All problems are in one *Error.
func Load(paths []string, opts Options) (Config, error) { return load(paths, opts, nil) }

func load(paths []string, opts Options, used *Config) (Config, error) {
	d := newDecoder(opts.Env)
	d.programs, d.used = opts.programs && opts.Env == nil, used
	if d.env == nil {
		d.env = os.LookupEnv
	}
	var files []string
	if len(paths) > 0 || !opts.NoFile {
		files = d.files(paths)
	}
	cfg := Default()
	for _, file := range files {
		d.file(file, &cfg)
	}
	if listen, _ := d.env("NEXUS_LISTEN"); listen != "" {
		cfg.Listen = listen
		d.places["listen"] = place{position{file: "NEXUS_LISTEN"}, listen}
	}
	if state, _ := d.env("NEXUS_STATE"); state != "" {
		cfg.State = state
	}
	d.check(&cfg.Settings)
	d.compareSources(cfg)
	if err := d.problems.err(); err != nil {
		return Config{}, err
	}
	cfg.Files, cfg.Warnings = files, d.warnings
	return cfg, nil
}

// files returns the files at paths.
func (d *decoder) files(paths []string) []string {
	implied := len(paths) == 0
	if implied {
		if info, err := os.Stat(DefaultFolder); err != nil || !info.IsDir() {
			return nil
		}
		paths = []string{DefaultFolder}
	}
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			d.problems.add(position{file: path}, "%v", reason(err))
		case !info.IsDir():
			files = append(files, path)
		default:
			found := d.folder(path)
			if len(found) == 0 && !implied {
				d.problems.add(position{file: path}, "the folder has neither servers.yaml nor settings.yaml")
			}
			files = append(files, found...)
		}
	}
	for i, file := range files {
		if slices.Contains(files[:i], file) {
			d.problems.add(position{file: file}, "is given twice")
		}
	}
	return files
}

// folderFiles are the configuration files of a folder without their extensions.
var folderFiles = []string{"servers", "settings"}

// folder returns the configuration files of a folder.
func (d *decoder) folder(path string) []string {
	var files []string
	for _, name := range folderFiles {
		found := variants(path, name)
		if len(found) > 1 {
			d.problems.add(position{file: path}, "holds %s; keep one", orList(baseNames(found), "and"))
		}
		files = append(files, found...)
	}
	return files
}

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

// file reads one file into cfg. JSON with servers and other keys than settings is the file of a desktop client; only
// its servers are read. Any other file may have settings, servers or both.
func (d *decoder) file(file string, cfg *Config) {
	content, err := readFile(file)
	if err != nil {
		d.problems.addError(file, err)
		return
	}
	root, isJSON, err := parseFile(file, content)
	if err != nil {
		d.problems.addError(file, err)
		return
	}
	cfg.sources = append(cfg.sources, source{file, content, root.isEmpty()})
	at, servers := clientServers(root)
	d.client = isJSON && servers != nil
	defer func() { d.client = false }()
	if d.client && !(at == "mcpServers" && hasOnly(root, append(keys(reflect.TypeFor[Settings]()), at))) {
		d.ignored(file, root, strings.Split(at, ".")[0])
		cfg.Servers = d.addServers(cfg.Servers, at, servers)
		return
	}
	if n := root.get("llm"); n != nil && n.kind == mapping && cfg.LLM == nil {
		cfg.LLM = &LLM{Planner: llm.Default()}
	}
	d.structure("", root, reflect.ValueOf(&cfg.Settings).Elem(), "mcpServers")
	if n := root.get("mcpServers"); n != nil {
		cfg.Servers = d.addServers(cfg.Servers, "mcpServers", n)
	}
}

// ignored warns about ignored keys of a desktop client's file.
func (d *decoder) ignored(file string, root *node, used string) {
	var others []string
	for _, m := range root.members {
		if m.key != used {
			others = append(others, place{text: m.key}.quoted())
		}
	}
	if len(others) > 0 {
		d.warn(position{file: file}, "only the servers of this JSON file are read, not %s", orList(others, "and"))
	}
}

// readFile reads a file, at most one byte more than allowed.
func readFile(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, reason(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading: %w", reason(err))
	}
	return data, nil
}

// parseFile parses a file. One without the extension .json, .yaml or .yml is JSON if it starts with "{".
func parseFile(file string, data []byte) (root *node, isJSON bool, err error) {
	switch filepath.Ext(file) {
	case ".json":
		isJSON = true
	case ".yaml", ".yml":
	default:
		isJSON = bytes.HasPrefix(bytes.TrimSpace(data), []byte("{"))
	}
	root, err = parse(file, data, isJSON)
	return root, isJSON, err
}

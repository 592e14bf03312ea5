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

// DefaultFolder is read where no path is given, if it is there.
const DefaultFolder = "config"

// Options of Load. The zero value is ready to use.
type Options struct {
	Env    func(string) (string, bool) // looks up environment variables; nil = os.LookupEnv
	NoFile bool                        // without paths take the defaults, even if DefaultFolder is there

	programs bool // warn about commands that are not there
}

// Load reads the configuration from files and folders. Of several, later ones override the settings of earlier ones
// key by key and add servers. A folder means its servers.* and settings.* (yaml, yml or json), nothing below it.
// Without paths it reads the folder DefaultFolder, or takes the defaults where there is none. NEXUS_LISTEN,
// NEXUS_STATE and NEXUS_API_KEY are taken from the environment. Whatever is wrong comes as one *Error.
func Load(paths []string, opts Options) (Config, error) { return load(paths, opts, nil) }

func load(paths []string, opts Options, used *Config) (Config, error) {
	d := &decoder{env: opts.Env, programs: opts.programs && opts.Env == nil, used: used, places: map[string]place{},
		failed: map[string]bool{}, servers: map[string]position{}}
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

// files returns the files that paths mean.
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

// folderFiles are the files that count in a folder, whatever their ending.
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

// variants returns the files of a folder that hold what name says, whatever their format.
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

// reason leaves out what an error about a file repeats of its name.
func reason(err error) error {
	if wrapped := (*fs.PathError)(nil); errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// file reads one file into cfg. JSON with servers is the file of a desktop client, whose other content is not ours;
// everything else may hold settings, servers or both.
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
	cfg.sources = append(cfg.sources, source{file, content, root.hollow()})
	if at, servers := clientServers(root); isJSON && servers != nil {
		d.ignored(file, root, strings.Split(at, ".")[0])
		d.client = true
		cfg.Servers = d.addServers(cfg.Servers, at, servers)
		d.client = false
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

// ignored warns about what is left out of a desktop client's file.
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

// readFile reads a file; of one that is too large a little more than is allowed.
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

// parseFile parses a file. What neither ends in .json nor in .yaml or .yml is JSON if it starts with "{".
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

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/downstream"
)

// Imported says what Import did.
type Imported struct {
	File     string   // the file that has the servers now
	Added    []string // names, in the order of the client's file
	Skipped  []string // names that were there already; they stay as they were
	Warnings []string // what was left out or changed, one line each
}

// String returns the summary, one line per fact.
func (i Imported) String() string {
	lines := []string{i.File + ": nothing to add"}
	if len(i.Added) > 0 {
		lines[0] = i.File + ": added " + orList(i.Added, "and")
	}
	if len(i.Skipped) > 0 {
		lines = append(lines, "already there and unchanged: "+orList(i.Skipped, "and"))
	}
	return strings.Join(append(lines, i.Warnings...), "\n")
}

// Import adds the servers of a desktop client's JSON file to our servers.yaml: into is that file or its folder. What
// is there keeps its entries, order and comments. Names that the router refuses are made to fit, references to the
// client's own variables become ${VAR}, and literal secrets stay what they are, so the file is written with mode
// 0600, in one piece.
func Import(path, into string) (Imported, error) {
	content, err := readFile(path)
	var root *node
	if err == nil {
		root, _, err = parseFile(path, content)
	}
	if err != nil {
		var p problems
		p.addError(path, err)
		return Imported{}, p.err()
	}
	at, servers := clientServers(root)
	if servers == nil {
		var p problems
		p.add(position{file: path}, "has no servers: want mcpServers, servers or mcp.servers")
		return Imported{}, p.err()
	}
	file, old, err := target(into)
	if err != nil {
		return Imported{}, err
	}
	c := conversion{
		decoder: decoder{env: noVariables, client: true, shape: true, places: map[string]place{}, failed: map[string]bool{},
			servers: map[string]position{}},
	}
	before, err := parseServers(file, old)
	if err != nil {
		return Imported{}, err
	}
	done := Imported{File: file}
	var add []member
	for _, m := range servers.members {
		m.key = c.name(at, m)
		switch {
		case before.get(m.key) != nil:
			done.Skipped = append(done.Skipped, m.key)
			continue
		case m.value.kind == mapping:
			m.value = c.entry(join(at, m.key), m.value)
		}
		add = append(add, m)
		done.Added = append(done.Added, m.key)
	}
	c.addServers(nil, at, &node{kind: mapping, at: servers.at, members: add})
	if err := c.problems.err(); err != nil {
		return Imported{}, err
	}
	done.Warnings = c.warnings
	if len(add) == 0 {
		return done, nil
	}
	merged, err := insert(file, old, before, add)
	if err != nil {
		return Imported{}, err
	}
	return done, replace(file, merged)
}

func noVariables(string) (string, bool) { return "", false }

// target returns the servers file that into means and its content.
func target(into string) (file, content string, err error) {
	file = into
	if ext := filepath.Ext(into); ext != ".yaml" && ext != ".yml" {
		file = filepath.Join(into, "servers.yaml")
		switch found := variants(into, "servers"); {
		case len(found) > 1:
			return "", "", fmt.Errorf("%s: holds %s; keep one", into, orList(baseNames(found), "and"))
		case len(found) == 1 && filepath.Ext(found[0]) == ".json":
			return "", "", fmt.Errorf("%s: servers can only be added to a YAML file; rename it to servers.yaml, JSON is valid there", found[0])
		case len(found) == 1:
			file = found[0]
		}
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return file, "", nil
	}
	return file, string(data), err
}

// parseServers returns the servers of one of our files, or nil where it has none yet.
func parseServers(file, content string) (*node, error) {
	var p problems
	root, err := parse(file, []byte(content), false)
	if err != nil {
		p.addError(file, err)
		return nil, p.err()
	}
	servers := root.get("mcpServers")
	if servers != nil && servers.kind != null && servers.kind != mapping {
		p.add(servers.at, "mcpServers: want a mapping, got %v", servers.kind)
	}
	return servers, p.err()
}

// replace writes a file that only its owner can read, in one piece.
func replace(file, content string) error {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	folder := filepath.Dir(file)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("making the folder: %w", err)
	}
	f, err := os.CreateTemp(folder, ".servers-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// conversion turns a client's entries into ours.
type conversion struct {
	decoder
}

var (
	notInNames = regexp.MustCompile(`[^A-Za-z0-9_-]+`)
	underlines = regexp.MustCompile(`_{2,}`)
)

// name returns a name that the router accepts, made of the client's.
func (c *conversion) name(path string, m member) string {
	name := strings.Trim(underlines.ReplaceAllString(notInNames.ReplaceAllString(m.key, "-"), "_"), "_-")
	if name != m.key && name != "" {
		c.warn(m.at, "%s: server %s is now called %q", path, place{text: m.key}.quoted(), name)
		return name
	}
	return m.key
}

// entry returns a client's entry with the keys and variables that we have.
func (c *conversion) entry(path string, from *node) *node {
	known := keys(reflect.TypeFor[downstream.ServerConfig]())
	own := *c.adapt(path, from)
	own.members = slices.DeleteFunc(own.members, func(m member) bool {
		if slices.Contains(known, m.key) {
			return m.value.kind == null
		}
		c.warn(m.at, "%s.%s is not known and left out", path, m.key)
		return true
	})
	result := c.variables(path, &own)
	for i, m := range result.members {
		if m.key != "cwd" || m.value.kind != text || strings.HasPrefix(m.value.text, "${") {
			continue
		}
		if cwd, err := beside(m.at.file, m.value.text); err == nil {
			result.members[i].value = &node{kind: text, text: cwd, at: m.value.at, size: 1}
		}
	}
	return result
}

var (
	clientVariable = regexp.MustCompile(`\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)
	clientInput    = regexp.MustCompile(`\$\{input:([^}]*)\}`)
	notInVariables = regexp.MustCompile(`[^A-Z0-9_]+`)
)

// variables returns n with ${env:VAR} and ${input:name} written as ${VAR}.
func (c *conversion) variables(path string, n *node) *node {
	own := *n
	switch n.kind {
	case text:
		own.text = clientVariable.ReplaceAllString(n.text, "$${$1}")
		own.text = clientInput.ReplaceAllStringFunc(own.text, func(reference string) string {
			name := strings.ToUpper(clientInput.FindStringSubmatch(reference)[1])
			if name = notInVariables.ReplaceAllString(name, "_"); !isVariable(name) {
				name = "INPUT_" + name
			}
			c.warn(n.at, "%s: the client asks for this value; set the environment variable %s", path, name)
			return "${" + name + "}"
		})
		everything := func(string) (string, bool) { return "", true }
		if _, err := expand(own.text, everything, false); err != nil {
			c.warn(n.at, "%s: %v", path, err)
		}
	case list:
		own.items = nil
		for i, value := range n.items {
			own.items = append(own.items, c.variables(item(path, i), value))
		}
	case mapping:
		own.members = nil
		for _, m := range n.members {
			own.members = append(own.members, member{m.key, m.at, c.variables(join(path, m.key), m.value)})
		}
	}
	return &own
}

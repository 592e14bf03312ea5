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
	"github.com/agenticnexus/agenticnexus/internal/atomicfile"
)

// Imported says what Import did.
type Imported struct {
	File     string   // the file with the servers
	Added    []string // names, in the order of the client's file
	Skipped  []string // names that were there already; they are unchanged
	Warnings []string // what is left out or changed, one line each
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

// Import adds the servers of a desktop client's JSON file to servers.yaml; into is that file or its folder. Existing
// entries, their order and comments stay. Import changes names that the router refuses and writes references to the
// client's variables as ${VAR}. It keeps secrets in the text, so it writes the file with mode 0600, atomically.
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
		return Imported{}, problemAt(position{file: path}, "has no servers: want mcpServers, servers or mcp.servers")
	}
	file, old, err := target(into)
	if err != nil {
		return Imported{}, err
	}
	c := newDecoder(func(string) (string, bool) { return "", false })
	c.client, c.shape = true, true
	before, err := parseServers(file, old)
	if err != nil {
		return Imported{}, err
	}
	done := Imported{File: file}
	var add []member
	for _, m := range servers.members {
		m.key = c.clientName(at, m)
		switch {
		case before.get(m.key) != nil:
			done.Skipped = append(done.Skipped, m.key)
			if c.disabled(before.get(m.key)) && !c.disabled(m.value) {
				c.warn(m.at, "%s: the existing entry is disabled; remove it and import again to use this one", m.key)
			}
			continue
		case m.value.kind == mapping:
			m.value = c.clientEntry(join(at, m.key), m.value)
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

// target returns the servers file for into and its content.
func target(into string) (file, content string, err error) {
	file = into
	if ext := filepath.Ext(into); ext != ".yaml" && ext != ".yml" {
		file = filepath.Join(into, "servers.yaml")
		switch found := variants(into, "servers"); {
		case len(found) > 1:
			return "", "", fmt.Errorf("%s: holds %s; keep one", into, orList(baseNames(found), "and"))
		case len(found) == 1 && filepath.Ext(found[0]) == ".json":
			return "", "", fmt.Errorf(
				"%s: servers can only be added to a YAML file; rename it to servers.yaml, JSON is valid there", found[0])
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

// parseServers returns the servers of a servers file, nil if it has none.
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

// replace writes a file that only its owner can read, atomically.
func replace(file, content string) error {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("making the folder: %w", err)
	}
	return atomicfile.Write(file, []byte(content))
}

var (
	notInNames = regexp.MustCompile(`[^A-Za-z0-9_-]+`)
	underlines = regexp.MustCompile(`_{2,}`)
)

// clientName returns the name of a client's server in a form that the router accepts.
func (d *decoder) clientName(path string, m member) string {
	name := strings.Trim(underlines.ReplaceAllString(notInNames.ReplaceAllString(m.key, "-"), "_"), "_-")
	if name != m.key && name != "" {
		d.warn(m.at, "%s: server %s is now called %q", path, place{text: m.key}.quoted(), name)
		return name
	}
	return m.key
}

// clientEntry returns a client's entry with our keys and variables.
func (d *decoder) clientEntry(path string, from *node) *node {
	known := keys(reflect.TypeFor[downstream.ServerConfig]())
	own := *d.adapt(path, from)
	own.members = slices.DeleteFunc(own.members, func(m member) bool {
		if slices.Contains(known, m.key) {
			return m.value.kind == null
		}
		d.warn(m.at, "%s.%s is not known and left out", path, m.key)
		return true
	})
	result := d.clientVariables(path, &own)
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

// clientVariables returns n with ${env:VAR} and ${input:name} written as ${VAR}.
func (d *decoder) clientVariables(path string, n *node) *node {
	own := *n
	switch n.kind {
	case text:
		own.text = clientVariable.ReplaceAllString(n.text, "$${$1}")
		own.text = clientInput.ReplaceAllStringFunc(own.text, func(reference string) string {
			name := strings.ToUpper(clientInput.FindStringSubmatch(reference)[1])
			if name = notInVariables.ReplaceAllString(name, "_"); !isVariable(name) {
				name = "INPUT_" + name
			}
			d.warn(n.at, "%s: the client asks for this value; set the environment variable %s", path, name)
			return "${" + name + "}"
		})
		everything := func(string) (string, bool) { return "", true }
		if _, err := expand(own.text, everything, false); err != nil {
			d.warn(n.at, "%s: %v", path, err)
		}
	case list:
		own.items = nil
		for i, value := range n.items {
			own.items = append(own.items, d.clientVariables(item(path, i), value))
		}
	case mapping:
		own.members = nil
		for _, m := range n.members {
			own.members = append(own.members, member{m.key, m.at, d.clientVariables(join(path, m.key), m.value)})
		}
	}
	return &own
}

package config

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/change"
	"github.com/agenticnexus/agenticnexus/internal/pattern"
)

// clientServers finds the servers in the JSON file of a desktop client: in "mcpServers", "servers" or "mcp.servers". It
// returns nil if the file has none.
func clientServers(root ast.Node) (path string, servers ast.Node) {
	for _, key := range []string{"mcpServers", "servers"} {
		if n, ok := value(root, key).(*ast.MappingNode); ok {
			return key, n
		}
	}
	if n, ok := value(value(root, "mcp"), "servers").(*ast.MappingNode); ok {
		return "mcp.servers", n
	}
	return "", nil
}

// adapt gives a desktop client's entry our keys: it renames keys that clients spell differently, and leaves out, with a
// warning, keys that only the client uses.
func (c loader) adapt(doc *document, path string, entry *ast.MappingNode) {
	entry.Values = slices.DeleteFunc(entry.Values, func(m *ast.MappingValueNode) bool {
		leave := func(format string, args ...any) bool {
			c.warnAt(mistake(doc.name, m.Key.GetToken(), path+format, args...))
			return true
		}
		switch key := keyOf(m); key {
		case "serverUrl", "httpUrl":
			m.Key = textNode(m.Key.GetToken(), "url")
		case "transport", "transportType":
			m.Key = textNode(m.Key.GetToken(), "type")
		case "timeout":
			if kindOf(m.Value) == "a number" && written(m.Value) != "0" {
				return leave(".timeout: a number without a unit is left out: clients use different units")
			}
		case "disabledTools", "excludeTools", "includeTools":
			return leave(".%s is left out; write tools: {allow: [], deny: []}", key)
		case "auth":
			if !hasOnly(m.Value, keys(reflect.TypeFor[oauth.Config]())) {
				return leave(".auth is for desktop clients and left out")
			}
		case "alwaysAllow", "authProviderType", "autoApprove", "description", "dev", "envFile", "gallery", "icon",
			"name", "note", "oauth", "trust", "version", "watchPaths":
			return leave(".%s is for desktop clients and left out", key)
		}
		return false
	})
}

// hasOnly reports whether n is a mapping without keys other than these.
func hasOnly(n ast.Node, keys []string) bool {
	mapping, ok := n.(*ast.MappingNode)
	return ok && !slices.ContainsFunc(mapping.Values, func(m *ast.MappingValueNode) bool {
		return !slices.Contains(keys, keyOf(m))
	})
}

// Imported says what an Addition does.
type Imported struct {
	File     string   // the file with the servers
	Added    []string // names, in the order of the client's file
	Skipped  []string // names that were there already; they are unchanged
	Others   []string // those of Skipped whose entries differ
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

// Addition adds servers to servers.yaml. Nothing is written until Files are applied, in their order.
type Addition struct {
	Imported
	Files   []*change.Change  // secrets.env, if there are credentials, and servers.yaml; none if there is nothing to add
	Renamed map[string]string // names in servers.yaml, by the names in the client's file
}

// Import adds the servers of a desktop client's JSON file to servers.yaml; into is that file or its folder.
func Import(ctx context.Context, path, into string) (Imported, error) {
	content, err := readFile(path, maxFile)
	if err != nil {
		return Imported{}, mistake(path, nil, "%v", err)
	}
	a, err := Add(path, content, into)
	if err != nil {
		return Imported{}, err
	}
	for _, file := range a.Files {
		if err := file.Apply(ctx, ""); err != nil {
			return Imported{}, err
		}
	}
	return a.Imported, nil
}

// Add plans to add the servers in the JSON text of a desktop client to servers.yaml; into is that file or its folder,
// and path names the text in messages. Existing entries, their order and comments stay. Add changes names that the
// router refuses and writes references to the client's variables as ${VAR}. Credentials (in env, headers, arguments and
// addresses, and all values in asked, which are references only as a whole) go to secrets.env beside the file, with a
// ${VAR} in their place. New files are readable by their owner only.
func Add(path string, content []byte, into string, asked ...string) (*Addition, error) {
	client, err := parse(path, content, isJSON(path, content))
	if err != nil {
		return nil, err
	}
	at, servers := clientServers(client.root)
	if servers == nil {
		return nil, mistake(path, nil, "has no servers: want mcpServers, servers or mcp.servers")
	}
	file, err := serversFile(into)
	if err != nil {
		return nil, err
	}
	if filepath.Ext(file) == ".json" {
		return nil, fmt.Errorf(
			"%s: servers can only be added to a YAML file; rename it to servers.yaml, JSON is valid there", file)
	}
	yaml, err := change.Read(file)
	if err != nil {
		return nil, err
	}
	before, err := parseServers(file, string(yaml.Before))
	if err != nil {
		return nil, err
	}
	secrets, err := openVault(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	secrets.asked = asked
	secrets.taken, _ = variablesNamed(filepath.Dir(file), "") // a new folder names none
	c := loader{newChecker(func(string) (string, bool) { return "", false })}
	c.docs = []*document{client}
	done := &Addition{Imported: Imported{File: file}, Renamed: map[string]string{}}
	var add []*ast.MappingValueNode
	for _, m := range servers.(*ast.MappingNode).Values {
		named := keyOf(m)
		c.rename(client, at, m)
		name := keyOf(m)
		done.Renamed[named] = name
		warned := len(c.warnings)
		if entry, ok := m.Value.(*ast.MappingNode); ok {
			c.adapt(client, join(at, name), entry)
			c.ours(client, join(at, name), entry, asked)
		}
		if old := value(before, name); old != nil {
			c.warnings = c.warnings[:warned]
			done.Skipped = append(done.Skipped, name)
			if !secrets.same(name, old, m.Value) {
				done.Others = append(done.Others, name)
			}
			if c.disabled(client, old) && !c.disabled(client, m.Value) {
				c.warnAt(mistake(path, m.Key.GetToken(),
					"%s: the existing entry is disabled; remove it and import again to use this one", name))
			}
			continue
		}
		if err := c.name(client, at, m); err != nil {
			return nil, err
		}
		if _, err := c.server(client, join(at, name), m); err != nil {
			return nil, err
		}
		for n, text := range client.written { // servers.yaml gets the variables, not their values
			s := n.(*ast.StringNode)
			*s = *textNode(s.Token, text)
		}
		clear(client.written)
		if entry, ok := m.Value.(*ast.MappingNode); ok {
			secrets.hide(name, entry)
		}
		add, done.Added = append(add, m), append(done.Added, name)
	}
	if done.Warnings = c.warnings; c.err != nil || len(add) == 0 {
		return done, c.err
	}
	merged, err := insert(file, string(yaml.Before), before, add)
	if err != nil {
		return nil, err
	}
	yaml.After = []byte(merged)
	if secrets.file.Changes() {
		done.Files = append(done.Files, secrets.file)
		c.warnOfReaders(secrets.file.File)
		done.Warnings = append(c.warnings, secrets.file.File+": has the credentials; keep it to yourself")
	}
	done.Files = append(done.Files, yaml)
	return done, nil
}

// same reports whether an existing entry and a new one are equal. It hides the credentials of the new one.
func (v *vault) same(name string, old, entry ast.Node) bool {
	after, known := v.file.After, maps.Clone(v.known)
	if entry, ok := entry.(*ast.MappingNode); ok {
		v.hide(name, entry)
	}
	v.file.After, v.known = after, known
	return reflect.DeepEqual(orderedValue(old), orderedValue(entry))
}

// Servers returns the servers of the file as Load would read them after the addition. Files must not be empty.
func (a *Addition) Servers() ([]downstream.ServerConfig, error) {
	c := loader{newChecker(nil)}
	if err := c.besideFiles([]string{a.File}); err != nil {
		return nil, err
	}
	last := len(a.Files) - 1
	for _, f := range a.Files[:last] {
		added, err := variables(f.File, f.After)
		if err != nil {
			return nil, err
		}
		c.env = orElse(c.env, added)
	}
	doc, err := parse(a.File, a.Files[last].After, false)
	if err != nil {
		return nil, err
	}
	c.docs = []*document{doc}
	all, err := c.servers(nil, doc, "mcpServers", value(doc.root, "mcpServers"))
	return all, cmp.Or(err, c.err)
}

// serversFile returns the file for the servers of into, whether it exists or not.
func serversFile(into string) (string, error) {
	info, err := os.Stat(into)
	if ext := filepath.Ext(into); ext == ".yaml" || ext == ".yml" || err == nil && !info.IsDir() {
		return into, nil
	}
	switch found := variants(into, "servers"); len(found) {
	case 0:
		return filepath.Join(into, "servers.yaml"), nil
	case 1:
		return found[0], nil
	default:
		return "", mistake(into, nil, "holds %s; keep one", orList(baseNames(found), "and"))
	}
}

// parseServers returns the servers of a servers file, nil if it has none.
func parseServers(file, content string) (ast.Node, error) {
	doc, err := parse(file, []byte(content), false)
	if err != nil {
		return nil, err
	}
	servers := value(doc.root, "mcpServers")
	if _, ok := servers.(*ast.MappingNode); servers != nil && !ok {
		return nil, mistake(file, servers.GetToken(), "mcpServers: want a mapping, got %s", kindOf(servers))
	}
	return servers, nil
}

var (
	notInNames = pattern.New(`[^A-Za-z0-9_-]+`)
	underlines = pattern.New(`_{2,}`)
)

// rename gives a client's server a name that the router accepts.
func (c loader) rename(doc *document, path string, m *ast.MappingValueNode) {
	old := keyOf(m)
	if CheckServerName(old) == nil {
		return
	}
	name := strings.Trim(underlines().ReplaceAllString(notInNames().ReplaceAllString(old, "-"), "_"), "_-")
	if name != old && name != "" {
		c.warnAt(mistake(doc.name, m.Key.GetToken(), "%s: server %s is now called %q", path, quote(old), name))
		m.Key = textNode(m.Key.GetToken(), name)
	}
}

// ours leaves unknown keys out of a client's entry, writes our variables, and makes cwd absolute.
func (c loader) ours(doc *document, path string, entry *ast.MappingNode, asked []string) {
	known := keys(reflect.TypeFor[downstream.ServerConfig]())
	entry.Values = slices.DeleteFunc(entry.Values, func(m *ast.MappingValueNode) bool {
		if slices.Contains(known, keyOf(m)) {
			return false
		}
		c.warnAt(mistake(doc.name, m.Key.GetToken(), "%s.%s is not known and left out", path, keyOf(m)))
		return true
	})
	c.variables(doc, path, entry, asked)
	if cwd, ok := value(entry, "cwd").(*ast.StringNode); ok && !strings.HasPrefix(cwd.Value, "${") {
		if absolute, err := beside(doc.name, cwd.Value); err == nil {
			*cwd = *textNode(cwd.Token, absolute)
		}
	}
}

// clientReference matches a client's reference, and "$${" that begins none.
var clientReference = pattern.New(`\$?\$\{(env|input):([^}]*)\}`)

// variables writes ${env:VAR} and ${input:name} as ${VAR}, and the credentials in asked as they are.
func (c loader) variables(doc *document, path string, n ast.Node, asked []string) {
	switch v := n.(type) {
	case *ast.StringNode:
		if slices.Contains(asked, v.Value) {
			*v = *textNode(v.Token, literal(v.Value))
		}
		text := clientReference().ReplaceAllStringFunc(v.Value, func(reference string) string {
			m := clientReference().FindStringSubmatch(reference)
			switch {
			case strings.HasPrefix(reference, "$$"), m[1] == "env" && !isVariable(m[2]):
				return reference
			case m[1] == "env":
				return "${" + m[2] + "}"
			}
			name := notInVariable().ReplaceAllString(strings.ToUpper(m[2]), "_")
			if !isVariable(name) {
				name = "INPUT_" + name
			}
			c.warnAt(mistake(doc.name, v.Token, "%s: the client asks for this value; set the environment variable %s", path, name))
			return "${" + name + "}"
		})
		if _, err := expand(text, func(string) (string, bool) { return "", true }, false); err != nil {
			c.warnAt(mistake(doc.name, v.Token, "%s: %v", path, err))
		}
		*v = *textNode(v.Token, text)
	case *ast.SequenceNode:
		for i, item := range v.Values {
			c.variables(doc, at(path, i), item, asked)
		}
	case *ast.MappingNode:
		for _, m := range v.Values {
			c.variables(doc, join(path, keyOf(m)), m.Value, asked)
		}
	}
}

// insert returns content, a YAML file with the servers before (nil = none), with the servers in add appended. It
// parses the result and fails if anything else has changed.
func insert(file, content string, before ast.Node, add []*ast.MappingValueNode) (string, error) {
	want := plain(before)
	for _, m := range add {
		want = append(want, yaml.MapItem{Key: keyOf(m), Value: orderedValue(m.Value)})
	}
	added, err := yaml.MarshalWithOptions(want[len(want)-len(add):], yaml.Indent(2), yaml.IndentSequence(true))
	if err != nil {
		return "", err
	}
	lines, end := wholeLines([]byte(content))
	key := slices.IndexFunc(lines, func(line string) bool {
		return strings.HasPrefix(strings.TrimPrefix(line, "\ufeff"), "mcpServers:")
	})
	if key < 0 {
		if len(lines) > 0 {
			lines = append(lines, end)
		}
		lines = append(lines, "mcpServers:"+end)
		key = len(lines) - 1
	}
	indent := "  "
	if m, ok := before.(*ast.MappingNode); ok && len(m.Values) > 0 {
		indent = strings.Repeat(" ", max(m.Values[0].Key.GetToken().Position.Column-1, 1))
	} else {
		lines[key] = emptyValue().ReplaceAllString(lines[key], "$1$2")
	}
	below := key + 1 // index after the last line of the servers
	for i := below; i < len(lines); i++ {
		line := lines[i]
		if !strings.ContainsAny(line[:1], " \t#\r\n") {
			break
		}
		if strings.TrimSpace(line) != "" && line[0] != '#' {
			below = i + 1
		}
	}
	text := indent + strings.ReplaceAll(strings.TrimSuffix(string(added), "\n"), "\n", end+indent) + end
	merged := strings.Join(slices.Insert(lines, below, text), "")
	after, err := parseServers(file, merged)
	if err != nil || !reflect.DeepEqual(plain(after), want) {
		return "", fmt.Errorf("%s: cannot add to mcpServers in its current form; write it as an indented block", file)
	}
	return merged, nil
}

// plain returns a mapping with its keys in their order; nil is an empty mapping.
func plain(n ast.Node) yaml.MapSlice {
	if n == nil {
		return nil
	}
	items, _ := orderedValue(n).(yaml.MapSlice)
	return items
}

func orderedValue(n ast.Node) (v any) {
	if err := yaml.NodeToValue(n, &v, yaml.UseOrderedMap()); err != nil {
		return nil
	}
	return v
}

package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/agenticnexus/agenticnexus/internal/change"
	"github.com/agenticnexus/agenticnexus/internal/jsonc"
	"github.com/agenticnexus/agenticnexus/internal/pattern"
)

// Removal takes a server out of the servers file. Nothing is written until its changes are applied, File first.
type Removal struct {
	File *change.Change
	// Secrets plans to remove the variables of the SecretsFile that Add has made for the server, and that no file beside
	// it names any more; nil if there are none. It may be called again, after another process has changed that file.
	Secrets  func() (*change.Change, error)
	Warnings []string // about what still names the server, one line each
}

// Remove plans to take a server out of the servers file; into is that file or its folder. Comments, order and all other
// entries stay. A server that is not there is an *Error.
func Remove(into, name string) (*Removal, error) {
	e, err := openEntry(into, name)
	if err != nil {
		return nil, err
	}
	want := slices.Delete(plain(e.servers), e.at, e.at+1)
	if err := e.edit(want, e.removed); err != nil {
		return nil, err
	}
	warnings, err := stillValid(e.name, e.file.After)
	if err != nil {
		return nil, err
	}
	return &Removal{e.file, e.orphans, warnings}, nil
}

// Disable plans to disable a server in the servers file, or to enable it, as Remove does: it writes "disabled". It
// returns nil if there is nothing to do.
func Disable(into, name string, disabled bool) (*change.Change, error) {
	e, err := openEntry(into, name)
	if err != nil {
		return nil, err
	}
	is := loader{newChecker(nil)}.disabled(e.doc, e.value())
	if is == disabled {
		return nil, nil
	}
	want := plain(e.servers)
	fields, _ := want[e.at].Value.(yaml.MapSlice)
	fields = slices.DeleteFunc(slices.Clone(fields), func(m yaml.MapItem) bool { return m.Key == disabledKey })
	want[e.at].Value = append(fields, yaml.MapItem{Key: disabledKey, Value: disabled})
	if err := e.edit(want, func() []byte { return e.marked(disabled) }); err != nil {
		return nil, err
	}
	_, err = stillValid(e.name, e.file.After)
	return e.file, err
}

// stillValid returns the first mistake in the configuration of a file if it is valid now and would not be with text in
// that file, and otherwise the warnings that are new then. A file of a folder is read with the others there.
func stillValid(file string, text []byte) (warnings []string, err error) {
	path := file
	if base := filepath.Base(file); slices.Contains(folderFiles, strings.TrimSuffix(base, filepath.Ext(base))) {
		path = filepath.Dir(file)
	}
	before, err := Load([]string{path}, Options{})
	if err != nil {
		return nil, nil // this change is not the reason, and may be a part of the mend
	}
	after, err := Load([]string{path}, Options{planned: map[string][]byte{file: text}})
	if wrong := (*Error)(nil); errors.As(err, &wrong) { // of several, the first
		err = wrong
	}
	if err != nil {
		return nil, fmt.Errorf("this would leave a mistake in the configuration; change that first: %w", err)
	}
	what := func(warning string) string { return position().ReplaceAllString(warning, ": ") }
	return slices.DeleteFunc(after.Warnings, func(warning string) bool {
		return slices.ContainsFunc(before.Warnings, func(old string) bool { return what(old) == what(warning) })
	}), nil
}

// position matches the place in a file of a mistake, which a change of the file moves.
var position = pattern.New(`:\d+:\d+: `)

const disabledKey = "disabled"

// entry is one server in a servers file.
type entry struct {
	name    string // of the file
	file    *change.Change
	doc     *document
	path    string // of the servers
	servers *ast.MappingNode
	at      int      // index of the server
	lines   []string // of the text, with their ends
	end     string   // of a new line
}

var (
	lineEnd = pattern.New(`\r\n?|\n`)
	oneLine = pattern.New(`[^\r\n]*(?:\r\n?|\n)|[^\r\n]+`)
)

// splitLines returns the lines of a text with their ends, and the end of a new one.
func splitLines(text []byte) (lines []string, end string) {
	lines = oneLine().FindAllString(string(text), -1)
	if bytes.Contains(text, []byte("\r\n")) {
		return lines, "\r\n"
	}
	return lines, "\n"
}

// wholeLines is splitLines with an end of the last line, too.
func wholeLines(text []byte) (lines []string, end string) {
	lines, end = splitLines(text)
	if last := len(lines) - 1; last >= 0 {
		lines[last] = ended(lines[last], end)
	}
	return lines, end
}

// ended returns a line with an end if it has none.
func ended(line, end string) string {
	if withoutEnd(line) == line {
		return line + end
	}
	return line
}

func withoutEnd(line string) string { return strings.TrimRight(line, "\r\n") }

func openEntry(into, name string) (*entry, error) {
	file, err := serversFile(into)
	if err != nil {
		return nil, err
	}
	ch, err := change.Read(file)
	if err != nil {
		return nil, err
	}
	if ch.Before == nil {
		return nil, mistake(file, nil, "no such file")
	}
	doc, err := parse(file, ch.Before, isJSON(file, ch.Before))
	if err != nil {
		return nil, err
	}
	e := &entry{name: file, file: ch, doc: doc}
	e.lines, e.end = splitLines(ch.Before)
	var all ast.Node
	e.path, all = serversIn(doc)
	var names []string
	if e.servers, _ = all.(*ast.MappingNode); e.servers != nil {
		for _, m := range e.servers.Values {
			names = append(names, keyOf(m))
		}
	}
	if e.at = slices.Index(names, name); e.at < 0 {
		return nil, mistake(file, nil, "has no server %s; it has %s", quote(name), cmp.Or(orList(names, "and"), "none"))
	}
	return e, nil
}

// serversIn finds the servers in a file of the router.
func serversIn(doc *document) (path string, servers ast.Node) {
	if doc.json {
		return clientServers(doc.root)
	}
	return "mcpServers", value(doc.root, "mcpServers")
}

func (e *entry) server() string  { return keyOf(e.servers.Values[e.at]) }
func (e *entry) value() ast.Node { return e.servers.Values[e.at].Value }

// edit sets the text of the file. It fails unless the servers are then as wanted, in any order of the members of an
// entry, and nothing else has changed.
func (e *entry) edit(want yaml.MapSlice, text func() []byte) error {
	e.file.After = text()
	after, err := parse(e.name, e.file.After, e.doc.json)
	if err == nil {
		_, got := serversIn(after)
		if reflect.DeepEqual(unordered(plain(got)), unordered(want)) && e.sameRest(after) {
			return nil
		}
	}
	return fmt.Errorf("%s: cannot change %s in its current form; write mcpServers as an indented block",
		e.name, quote(e.server()))
}

// unordered returns servers in their order without that of their members.
func unordered(servers yaml.MapSlice) (out []any) {
	for _, s := range servers {
		fields, isMapping := s.Value.(yaml.MapSlice)
		if isMapping {
			out = append(out, s.Key, fields.ToMap())
		} else {
			out = append(out, s.Key, s.Value)
		}
	}
	return out
}

// sameRest reports whether a document has the same keys and values as before outside of the servers.
func (e *entry) sameRest(after *document) bool {
	rest := func(doc *document) (out []any) {
		for _, m := range doc.root.Values {
			if out = append(out, keyOf(m)); keyOf(m) != strings.Split(e.path, ".")[0] {
				out = append(out, orderedValue(m.Value))
			}
		}
		return out
	}
	return reflect.DeepEqual(rest(e.doc), rest(after))
}

// json reports whether the text is written as JSON, also in a YAML file.
func (e *entry) json() bool { return isJSON("", e.file.Before) }

// jsonPath returns the path of the server, or of a member of it.
func (e *entry) jsonPath(member ...string) []string {
	return slices.Concat(strings.Split(e.path, "."), []string{e.server()}, member)
}

// removed returns the text without the server, nil if its form is unknown.
func (e *entry) removed() []byte {
	if e.json() {
		text, _ := jsonc.Remove(e.file.Before, e.jsonPath()...) // a mistake is found later
		return text
	}
	from, to := e.own()
	if from == to {
		return nil
	}
	if len(e.servers.Values) == 1 { // a reload takes a file without servers only if it says so
		for i, line := range e.lines {
			e.lines[i] = onlyServers().ReplaceAllString(line, "$1 {}$2")
		}
	}
	return []byte(strings.Join(slices.Delete(e.lines, from, to), ""))
}

// onlyServers is the line of an mcpServers key whose entries follow.
var onlyServers = pattern.New(`^(\x{feff}?mcpServers:)([ \t]*(?:#.*)?[\r\n]+)$`)

// own returns the range of the lines that the server has for itself; an empty one if it shares them.
func (e *entry) own() (from, to int) { return ownLines(e.lines, e.servers.Values[e.at]) }

// ownLines returns the range of the lines that a member of a mapping has for itself; an empty one if it shares them.
func ownLines(lines []string, m *ast.MappingValueNode) (from, to int) {
	position := m.Key.GetToken().Position
	from, indent := position.Line-1, position.Column-1
	if strings.TrimSpace(lines[from][:min(indent, len(lines[from]))]) != "" {
		return 0, 0
	}
	to = from + 1
	for i, line := range lines[to:] {
		text := strings.TrimLeft(line, " \t")
		switch depth := len(line) - len(text); {
		case strings.TrimSpace(text) == "", depth <= indent && text[0] == '#': // belongs to what follows
		case depth > indent, text[0] == '}', text[0] == ']',
			depth == indent && text[0] == '-' && !strings.HasPrefix(text, "---"): // the value is a list
			to = from + i + 2
		default:
			return from, to
		}
	}
	return from, to
}

// marked returns the text with the server disabled or enabled, nil if its form is unknown.
func (e *entry) marked(disabled bool) []byte {
	if e.json() {
		text, _ := jsonc.Set(e.file.Before, disabled, e.jsonPath(disabledKey)...) // a mistake is found later
		return text
	}
	mapping, ok := e.value().(*ast.MappingNode)
	if !ok {
		return nil
	}
	flag := strconv.FormatBool(disabled)
	if old := value(mapping, disabledKey); old != nil {
		return e.replaced(old.GetToken(), plainOrQuoted(), flag)
	}
	member := disabledKey + ": " + flag
	if mapping.IsFlowStyle {
		if len(mapping.Values) > 0 {
			member += ", "
		}
		return e.replaced(mapping.Start, brace(), "{"+member)
	}
	_, to := e.own()
	if to == 0 || len(mapping.Values) == 0 {
		return nil
	}
	e.lines[to-1] = ended(e.lines[to-1], e.end)
	indent := strings.Repeat(" ", mapping.Values[0].Key.GetToken().Position.Column-1)
	return []byte(strings.Join(slices.Insert(e.lines, to, indent+member+e.end), ""))
}

var (
	plainOrQuoted = pattern.New(`^(?:"[^"]*"|'[^']*'|[^\s,}#]+)`)
	brace         = pattern.New(`^\{`)
)

// replaced returns the text with what matches at a token replaced; nil if nothing does.
func (e *entry) replaced(at *token.Token, what *regexp.Regexp, by string) []byte {
	line := []rune(e.lines[at.Position.Line-1])
	before, after := string(line[:at.Position.Column-1]), string(line[at.Position.Column-1:])
	found := what.FindString(after)
	if found == "" {
		return nil
	}
	e.lines[at.Position.Line-1] = before + by + after[len(found):]
	return []byte(strings.Join(e.lines, ""))
}

// orphans returns the change of the SecretsFile that removes the variables which only the server has used, nil if there
// are none.
func (e *entry) orphans() (*change.Change, error) {
	folder := filepath.Dir(e.name)
	v, err := openVault(folder)
	if err != nil || len(v.known) == 0 {
		return nil, err
	}
	others, err := variablesNamed(folder, filepath.Base(e.name))
	if err != nil {
		return nil, nil // what cannot be read may name any of them
	}
	addNamed(others, e.file.After)
	own := map[string]bool{}
	addNamed(own, fmt.Append(nil, orderedValue(e.value())))
	var kept []string
	for line := range strings.Lines(string(v.file.Before)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), "=")
		name = strings.TrimSpace(name)
		if !strings.HasPrefix(name, serverStem(e.server())+"_") || !own[name] || others[name] {
			kept = append(kept, line)
		}
	}
	if v.file.After = []byte(strings.Join(kept, "")); len(kept) == 0 {
		v.file.After = nil
	}
	if !v.file.Changes() {
		return nil, nil
	}
	return v.file, nil
}

package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/change"
)

// AddKey plans to add an API key, with SHA256, to the settings in a folder. Comments, order and all other settings
// stay. Nothing is written until the change is applied.
func AddKey(folder string, k auth.KeyConfig) (*change.Change, error) {
	s, err := openKeys(folder)
	if err != nil {
		return nil, err
	}
	item := yaml.MapSlice{{Key: "name", Value: k.Name}, {Key: "sha256", Value: k.SHA256}}
	if len(k.Servers) > 0 {
		item = append(item, yaml.MapItem{Key: "servers", Value: k.Servers})
	}
	if k.Ops {
		item = append(item, yaml.MapItem{Key: "ops", Value: true})
	}
	raw, err := yaml.MarshalWithOptions([]yaml.MapSlice{item}, yaml.IndentSequence(true))
	if err != nil {
		return nil, err
	}
	text := strings.ReplaceAll("\n"+strings.TrimSuffix(string(raw), "\n"), "\n  ", "\n")[1:]
	switch at := s.find(emptyKeys); {
	case s.keys != nil && len(s.keys.Values) > 0 && !s.keys.IsFlowStyle:
		begin, _, dash := s.item(0)
		_, end, _ := s.item(len(s.keys.Values) - 1)
		if begin >= 0 {
			s.insert(end, text, dash)
		}
	case s.keys != nil && len(s.keys.Values) == 0 && at >= 0:
		line := s.lines[at]
		s.lines[at] = emptyKeys.ReplaceAllString(line, "$1")
		s.insert(at+1, text, len(line)-len(strings.TrimLeft(line, " "))+2)
	case value(s.doc.root, "auth") == nil:
		s.insert(len(s.lines), "auth:\n  api_keys:", 0)
		s.insert(len(s.lines), text, 4)
	}
	return s.change(func(keys []any) []any {
		var added any
		_ = yaml.Unmarshal(raw, &added) // it was just made
		return append(keys, added.([]any)...)
	})
}

// RemoveKey plans to remove an API key as AddKey adds one. The last key stays: without keys, clients need none.
func RemoveKey(folder, name string) (*change.Change, error) {
	s, err := openKeys(folder)
	if err != nil {
		return nil, err
	}
	at := -1
	if s.keys != nil {
		at = slices.IndexFunc(s.keys.Values, func(n ast.Node) bool {
			text, _ := value(n, "name").(*ast.StringNode)
			return text != nil && text.Value == name
		})
	}
	switch {
	case at < 0:
		return nil, fmt.Errorf("%s: has no API key %s", s.file.File, quote(name))
	case len(s.keys.Values) == 1:
		return nil, fmt.Errorf("%s: %s is the last API key; without keys, clients need none", s.file.File, quote(name))
	}
	if begin, end, _ := s.item(at); begin >= 0 {
		s.lines = slices.Delete(s.lines, begin, end)
	}
	return s.change(func(keys []any) []any { return slices.Delete(keys, at, at+1) })
}

// emptyKeys is a line with an empty list of keys.
var emptyKeys = regexp.MustCompile(`^( +api_keys:) *\[ *\] *$`)

// keysFile is a settings file whose keys are changed.
type keysFile struct {
	file  *change.Change
	doc   *document
	keys  *ast.SequenceNode // nil = none
	lines []string
}

func openKeys(folder string) (*keysFile, error) {
	name := filepath.Join(folder, "settings.yaml")
	if found := variants(folder, "settings"); len(found) > 0 {
		name = found[0]
	}
	file, err := change.Read(name)
	if err != nil {
		return nil, err
	}
	s := &keysFile{file: file}
	if s.doc, err = parse(name, file.Before, isJSON(name, file.Before)); err != nil {
		return nil, err
	}
	s.keys, _ = value(value(s.doc.root, "auth"), "api_keys").(*ast.SequenceNode)
	if text := strings.TrimSuffix(string(file.Before), "\n"); text != "" {
		s.lines = strings.Split(text, "\n")
	}
	return s, nil
}

// find returns the line that matches, -1 if not exactly one does.
func (s *keysFile) find(what *regexp.Regexp) int {
	at := slices.IndexFunc(s.lines, what.MatchString)
	if at >= 0 && slices.ContainsFunc(s.lines[at+1:], what.MatchString) {
		return -1
	}
	return at
}

// item returns the range of the lines of a key and the indentation of its dash; begin is -1 if the form is unknown.
func (s *keysFile) item(i int) (begin, end, dash int) {
	mapping, ok := s.keys.Values[i].(*ast.MappingNode)
	if !ok || len(mapping.Values) == 0 {
		return -1, -1, 0
	}
	begin = mapping.Values[0].Key.GetToken().Position.Line - 1
	indent := func(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
	if dash = indent(s.lines[begin]); !strings.HasPrefix(s.lines[begin][dash:], "- ") {
		return -1, -1, 0
	}
	end = begin + 1
	for n := end; n < len(s.lines); n++ {
		text := strings.TrimSpace(s.lines[n])
		if text != "" && indent(s.lines[n]) <= dash {
			break
		}
		if text != "" && text[0] != '#' {
			end = n + 1
		}
	}
	return begin, end, dash
}

func (s *keysFile) insert(at int, text string, indent int) {
	space := strings.Repeat(" ", indent)
	s.lines = slices.Insert(s.lines, at, strings.Split(space+strings.ReplaceAll(text, "\n", "\n"+space), "\n")...)
}

// change returns the change if the keys are then as wanted and nothing else has changed.
func (s *keysFile) change(want func(keys []any) []any) (*change.Change, error) {
	unknown := fmt.Errorf("%s: cannot change auth.api_keys in its current form; write it as an indented list",
		s.file.File)
	s.file.After = []byte(strings.Join(s.lines, "\n") + "\n")
	after, err := parse(s.doc.name, s.file.After, s.doc.json)
	if err != nil {
		return nil, unknown
	}
	settings := func(d *document) (all, access map[string]any) {
		_ = yaml.NodeToValue(d.root, &all) // compared below
		access, _ = all["auth"].(map[string]any)
		if all == nil {
			all = map[string]any{}
		}
		if access == nil {
			access = map[string]any{}
			all["auth"] = access
		}
		return all, access
	}
	wanted, access := settings(s.doc)
	keys, _ := access["api_keys"].([]any)
	access["api_keys"] = want(keys)
	if got, _ := settings(after); !reflect.DeepEqual(got, wanted) {
		return nil, unknown
	}
	return s.file, stillValid(s.doc.name, s.file.After)
}

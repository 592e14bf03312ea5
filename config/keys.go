package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/change"
	"github.com/agenticnexus/agenticnexus/internal/pattern"
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
	access := value(s.doc.root, "auth")
	auth, keys := member(s.doc.root, "auth"), member(access, "api_keys")
	switch {
	case s.keys != nil && len(s.keys.Values) > 0:
		begin, _, dash := s.item(0)
		_, end, _ := s.item(len(s.keys.Values) - 1)
		if begin >= 0 {
			s.insert(end, text, dash)
		}
	case keys != nil:
		s.insert(s.below(keys), text, keys.Key.GetToken().Position.Column+1)
	default:
		at, indent := len(s.lines), 2
		if auth != nil {
			at = s.below(auth)
		} else {
			s.insert(at, "auth:", 0)
			at++
		}
		if all, ok := access.(*ast.MappingNode); ok && len(all.Values) > 0 {
			indent = all.Values[0].Key.GetToken().Position.Column - 1
		}
		s.insert(at, "api_keys:", indent)
		s.insert(at+1, text, indent+2)
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

// emptyValue is the line of a key without a value or with an empty one.
var emptyValue = pattern.New(`^([^:]*:)(?:[ \t]*(?:\{[ \t]*\}|\[[ \t]*\]|null|~))?([ \t]*(?:#.*)?[\r\n]+)$`)

// keysFile is a settings file whose keys are changed.
type keysFile struct {
	file  *change.Change
	doc   *document
	keys  *ast.SequenceNode // nil = none
	lines []string          // with their ends
	end   string            // of a new line
}

func openKeys(folder string) (*keysFile, error) {
	name := settingsFile(folder)
	file, err := change.Read(name)
	if err != nil {
		return nil, err
	}
	s := &keysFile{file: file}
	if s.doc, err = parse(name, file.Before, isJSON(name, file.Before)); err != nil {
		return nil, err
	}
	s.keys, _ = value(value(s.doc.root, "auth"), "api_keys").(*ast.SequenceNode)
	s.lines, s.end = wholeLines(file.Before)
	return s, nil
}

// below returns the line after that of a key, whose value is there then.
func (s *keysFile) below(m *ast.MappingValueNode) int {
	line := m.Key.GetToken().Position.Line
	s.lines[line-1] = emptyValue().ReplaceAllString(s.lines[line-1], "$1$2")
	return line
}

// settingsFile returns the file for the settings of a folder, whether it exists or not.
func settingsFile(folder string) string {
	if found := variants(folder, "settings"); len(found) > 0 {
		return found[0]
	}
	return filepath.Join(folder, "settings.yaml")
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
	s.lines = slices.Insert(s.lines, at, space+strings.ReplaceAll(text, "\n", s.end+space)+s.end)
}

// change returns the change if the keys are then as wanted and nothing else has changed.
func (s *keysFile) change(want func(keys []any) []any) (*change.Change, error) {
	unknown := fmt.Errorf("%s: cannot change auth.api_keys in its current form; write auth and its list as indented YAML",
		s.file.File)
	s.file.After = []byte(strings.Join(s.lines, ""))
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
	_, err = stillValid(s.doc.name, s.file.After)
	return s.file, err
}

package config

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/agenticnexus/agenticnexus/internal/change"
)

// Block is a part of a configuration file as it is written: the entry of a server, or a setting with all below it.
type Block struct {
	File string
	Text string // its lines with their comments, without indentation; empty if the file does not have it

	file     *change.Change
	doc      *document
	path     []string // keys
	lines    []string // of the file, with their ends
	end      string   // of a new line
	from, to int      // its lines
	indent   string
}

// ServerBlock reads the entry of a server in the configuration in a folder.
func ServerBlock(folder, name string) (*Block, error) {
	file, err := serversFile(folder)
	if err != nil {
		return nil, err
	}
	b, err := openBlock(file, "mcpServers", name)
	if err == nil && b.Text == "" {
		err = mistake(file, nil, "has no server %s", quote(name))
	}
	return b, err
}

// SettingBlock reads a setting in the configuration in a folder. A new one goes to the end of the settings.
func SettingBlock(folder, key string) (*Block, error) {
	b, err := openBlock(settingsFile(folder), key)
	if err != nil || b.Text != "" {
		return b, err
	}
	if file, err := serversFile(folder); err == nil {
		if beside, err := openBlock(file, key); err == nil && beside.Text != "" {
			return beside, nil
		}
	}
	return b, nil
}

func openBlock(name string, path ...string) (*Block, error) {
	file, err := change.Read(name)
	if err != nil {
		return nil, err
	}
	if isJSON(name, file.Before) || isJSON("", file.Before) {
		return nil, mistake(name, nil, "is written as JSON; change it in an editor")
	}
	b := &Block{File: name, file: file, path: path}
	b.lines, b.end = wholeLines(file.Before)
	if b.doc, err = parse(name, []byte(strings.Join(b.lines, "")), false); err != nil {
		return nil, err
	}
	b.from, b.to = len(b.lines), len(b.lines)
	m := b.find()
	if m == nil {
		return b, nil
	}
	if b.from, b.to = ownLines(b.lines, m); b.from == b.to {
		return nil, b.unknown()
	}
	b.indent = b.lines[b.from][:m.Key.GetToken().Position.Column-1]
	for _, line := range b.lines[b.from:b.to] {
		b.Text += withoutEnd(strings.TrimPrefix(line, b.indent)) + "\n"
	}
	own, err := parse(name, []byte(b.Text), false)
	if err != nil || !reflect.DeepEqual(orderedValue(own.root.Values[0].Value), orderedValue(m.Value)) {
		return nil, b.unknown() // it goes on below
	}
	return b, nil
}

// find returns the member of the file, nil if it has none.
func (b *Block) find() *ast.MappingValueNode {
	var in ast.Node = b.doc.root
	for _, key := range b.path[:len(b.path)-1] {
		in = value(in, key)
	}
	return member(in, b.path[len(b.path)-1])
}

func (b *Block) unknown() error {
	return fmt.Errorf("%s: cannot change %s in its current form; write it as an indented block", b.File,
		quote(b.path[len(b.path)-1]))
}

// Replace plans to replace the block, and returns the configuration that Reload would then return. Without text, a
// setting is removed. It fails unless that configuration is valid and the file changes in the block alone; mistakes in
// the text name its line.
func (b *Block) Replace(text string, used Config) (*change.Change, Config, error) {
	own, _ := splitLines([]byte(strings.TrimRight(text, " \t\r\n")))
	for i, line := range own {
		if line = withoutEnd(line); line != "" {
			line = b.indent + line
		}
		own[i] = line + b.end
	}
	after := []byte(strings.Join(slices.Concat(b.lines[:b.from], own, b.lines[b.to:]), ""))
	doc, err := parse(b.File, after, false)
	if err != nil {
		return nil, Config{}, b.located(err, len(own))
	}
	replaced := *b
	if replaced.doc = doc; !reflect.DeepEqual(rest(doc.root, b.path), rest(b.doc.root, b.path)) ||
		len(b.path) > 1 && replaced.find() == nil {
		return nil, Config{}, fmt.Errorf("write %s: and what is below it, and nothing else", b.path[len(b.path)-1])
	}
	for len(after) < len(b.file.Before) && bytes.HasPrefix(b.file.Before, after) {
		after = append(after, '\n') // a reload takes a mere beginning for an interrupted write
	}
	cfg, err := Reload([]string{filepath.Dir(b.File)}, Options{planned: map[string][]byte{b.File: after}}, used)
	b.file.After = after
	return b.file, cfg, b.located(err, len(own))
}

// located tells the line in the text of the block where a mistake is.
func (b *Block) located(err error, lines int) error {
	wrong := (*Error)(nil) // of several, the first
	if errors.As(err, &wrong) && wrong.File == b.File && wrong.Line > b.from && wrong.Line <= b.from+lines {
		return fmt.Errorf("line %d: %s", wrong.Line-b.from, wrong.Message)
	}
	return err
}

// rest returns what a mapping has besides the member at a path.
func rest(n ast.Node, path []string) any {
	mapping, ok := n.(*ast.MappingNode)
	if !ok {
		return orderedValue(n)
	}
	var out yaml.MapSlice
	for _, m := range mapping.Values {
		switch {
		case len(path) == 0 || keyOf(m) != path[0]:
			out = append(out, yaml.MapItem{Key: keyOf(m), Value: orderedValue(m.Value)})
		case len(path) > 1:
			out = append(out, yaml.MapItem{Key: keyOf(m), Value: rest(m.Value, path[1:])})
		}
	}
	return out
}

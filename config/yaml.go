package config

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxIndicators bounds lines, brackets, dashes, anchors and the like. For some of them the YAML parser takes
// quadratic time and a stack frame each. At this bound the worst known file takes about a second.
const maxIndicators = 20_000

// parseYAML reads a YAML 1.2 file of one document, with anchors, aliases and merge keys.
func parseYAML(file string, data []byte) (*node, error) {
	if countIndicators(data) > maxIndicators {
		return nil, fmt.Errorf("more than %d lines, brackets, commas and the like", maxIndicators)
	}
	parsed, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	var syntax *yaml.SyntaxError
	switch {
	case errors.As(err, &syntax):
		at := positionOf(file, syntax.Token)
		if tab, found := tabNear(data, at.line); found {
			return nil, problemAt(position{file, tab.line, tab.column}, "invalid YAML: a tab in the indentation; use spaces")
		}
		return nil, problemAt(at, "invalid YAML: %s", syntax.Message)
	case err != nil:
		return nil, fmt.Errorf("invalid YAML: %w", err)
	}
	r := yamlReader{file: file, anchors: map[string]*node{}}
	root := &node{at: position{file, 1, 1}}
	documents := 0
	for _, doc := range parsed.Docs {
		if doc.Body == nil {
			continue
		}
		if documents++; documents > 1 {
			return nil, r.fail(doc.Body, "a second YAML document; put everything into one")
		}
		if root, err = r.read(doc.Body); err != nil {
			return nil, err
		}
	}
	return root, nil
}

// tabNear finds a tab in the indentation of a line or its neighbours. The parser's message about tabs is not helpful.
func tabNear(data []byte, line int) (at position, found bool) {
	n := 0
	for text := range bytes.Lines(data) {
		n++
		indentation := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]
		if i := bytes.IndexByte(indentation, '\t'); i >= 0 && n >= line-1 && n <= line+1 {
			return position{line: n, column: i + 1}, true
		}
	}
	return position{}, false
}

func countIndicators(data []byte) int {
	n := bytes.Count(data, []byte("- "))
	for _, c := range data {
		switch c {
		case '\n', '\r', '\t', '[', '{', ',', '&', '*', '!', '?', '<', '#':
			n++
		}
	}
	return n
}

// yamlReader turns the parser's tree into nodes.
type yamlReader struct {
	file    string
	anchors map[string]*node // complete ones only, so that no value can contain itself
	merged  int              // members copied by merge keys
}

func (r *yamlReader) at(n ast.Node) position { return positionOf(r.file, n.GetToken()) }

// positionOf returns the position of a token, which may be nil or have none.
func positionOf(file string, t *token.Token) position {
	if t == nil || t.Position == nil {
		return position{file: file}
	}
	return position{file, t.Position.Line, t.Position.Column}
}

func (r *yamlReader) fail(n ast.Node, format string, args ...any) error {
	return problemAt(r.at(n), format, args...)
}

func (r *yamlReader) read(from ast.Node) (*node, error) {
	n := &node{at: r.at(from)}
	switch v := from.(type) {
	case *ast.NullNode:
	case *ast.StringNode:
		n.kind, n.text = text, v.Value
	case *ast.LiteralNode:
		n.kind, n.text = text, v.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		n.kind, n.text = number, from.GetToken().Value
	case *ast.BoolNode:
		n.kind, n.text = boolean, from.GetToken().Value
	case *ast.SequenceNode:
		n.kind = list
		for _, value := range v.Values {
			item, err := r.read(value)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
	case *ast.MappingNode:
		return r.mapping(n, v.Values)
	case *ast.MappingValueNode:
		return r.mapping(n, []*ast.MappingValueNode{v})
	case *ast.TagNode:
		return r.tagged(v)
	case *ast.AnchorNode:
		target, err := r.read(v.Value)
		if err != nil {
			return nil, err
		}
		r.anchors[v.Name.GetToken().Value] = target
		return target, nil
	case *ast.AliasNode:
		name := v.Value.GetToken().Value
		target, ok := r.anchors[name]
		if !ok {
			return nil, r.fail(from, "alias *%s names no anchor before it", name)
		}
		return target, nil
	default:
		return nil, r.fail(from, "%s is not allowed here", from.Type().YAMLName())
	}
	return n, n.countNodes()
}

// tagged reads a value with the tag !!str.
func (r *yamlReader) tagged(v *ast.TagNode) (*node, error) {
	tag := v.GetToken().Value
	if tag != "!!str" || v.Value == nil {
		return nil, r.fail(v, "tag %s is not known; only !!str is", tag)
	}
	target, err := r.read(v.Value)
	if err != nil {
		return nil, err
	}
	switch target.kind {
	case text, number, boolean:
		return &node{kind: text, text: target.text, at: target.at, size: 1}, nil
	}
	return nil, r.fail(v, "tag !!str is for text, got %v", target.kind)
}

func (r *yamlReader) mapping(n *node, values []*ast.MappingValueNode) (*node, error) {
	n.kind = mapping
	if len(values) > 0 {
		n.at = r.at(values[0].Key)
	}
	var merged []*node
	for _, v := range values {
		value, err := r.read(v.Value)
		if err != nil {
			return nil, err
		}
		var key ast.Node = v.Key
		if explicit, ok := key.(*ast.MappingKeyNode); ok && explicit.Value != nil {
			key = explicit.Value
		}
		switch k := key.(type) {
		case *ast.MergeKeyNode:
			merged = append(merged, value)
		case *ast.StringNode:
			n.members = append(n.members, member{k.Value, r.at(key), value})
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
			n.members = append(n.members, member{key.GetToken().Value, r.at(key), value})
		default:
			return nil, r.fail(v.Key, "a key must be plain text")
		}
	}
	for _, from := range merged {
		if err := r.merge(n, from); err != nil {
			return nil, err
		}
	}
	return n, n.countNodes()
}

// merge adds the members of from, a mapping or a list of mappings, that n does not have. Earlier ones win.
func (r *yamlReader) merge(n, from *node) error {
	sources := []*node{from}
	if from.kind == list {
		sources = from.items
	}
	has := make(map[string]bool, len(n.members))
	for _, m := range n.members {
		has[m.key] = true
	}
	for _, source := range sources {
		if source.kind != mapping {
			return problemAt(source.at, "<<: want a mapping, got %v", source.kind)
		}
		for _, m := range source.members {
			if !has[m.key] {
				has[m.key] = true
				n.members = append(n.members, m)
			}
			if r.merged++; r.merged > maxNodes {
				return errTooMany
			}
		}
	}
	return nil
}

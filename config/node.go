package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// maxFile bounds a configuration file, in bytes.
const maxFile = 1 << 20

// maxNodes bounds the values of one file, aliases counted as often as they are used.
const maxNodes = 100_000

// kind says what a node holds.
type kind int

const (
	null kind = iota
	text
	number
	boolean
	list
	mapping
)

func (k kind) String() string {
	return [...]string{"nothing", "text", "a number", "true or false", "a list", "a mapping"}[k]
}

// node is a value of a YAML or JSON file with its place. Nodes are shared where YAML aliases share them, and never
// changed once read.
type node struct {
	kind    kind
	text    string // of a scalar, as written
	at      position
	items   []*node
	members []member
	size    int // nodes below and including this one, through aliases
}

// member is an entry of a mapping. A key may be there twice; whoever reads the mapping reports it.
type member struct {
	key   string
	at    position
	value *node
}

// get returns the first value of key, or nil.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// isEmpty reports whether a file gives no key a value.
func (n *node) isEmpty() bool {
	return !slices.ContainsFunc(n.members, func(m member) bool { return m.value.kind != null })
}

// errTooMany is a file that exceeds maxNodes.
var errTooMany = fmt.Errorf("more than %d values, aliases counted as often as they are used", maxNodes)

// countNodes sets the size of n from what is below it.
func (n *node) countNodes() error {
	n.size = 1
	for _, item := range n.items {
		n.size += item.size
	}
	for _, m := range n.members {
		n.size += m.value.size
	}
	if n.size > maxNodes {
		return errTooMany
	}
	return nil
}

// parse reads one file. JSON may have comments and trailing commas, as the files of some desktop clients do. A file
// without content is an empty mapping.
func parse(file string, data []byte, isJSON bool) (*node, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("larger than %d bytes", maxFile)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		return nil, errors.New("not UTF-8 text")
	}
	read := parseYAML
	if isJSON {
		read = parseJSON
	}
	root, err := read(file, data)
	if err != nil {
		return nil, err
	}
	if root.kind == null {
		root.kind = mapping
	}
	if root.kind != mapping {
		return nil, problemAt(root.at, "want a mapping of keys to values, got %v", root.kind)
	}
	return root, nil
}

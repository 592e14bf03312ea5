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

// maxNodes bounds the values of one file. Each use of an alias counts.
const maxNodes = 100_000

// kind is the kind of a node.
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

// node is a value of a YAML or JSON file with its position. YAML aliases share nodes. Nodes do not change once read.
type node struct {
	kind    kind
	text    string // of a scalar, as written
	at      position
	items   []*node
	members []member
	size    int // nodes in this one, itself included, through aliases
}

// member is an entry of a mapping. Readers of the mapping report repeated keys.
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

// isEmpty reports whether no key of a file has a value.
func (n *node) isEmpty() bool {
	return !slices.ContainsFunc(n.members, func(m member) bool { return m.value.kind != null })
}

// errTooMany is the error for a file that exceeds maxNodes.
var errTooMany = fmt.Errorf("more than %d values, counting each use of an alias", maxNodes)

// countNodes sets the size of n.
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

// parse reads one file. JSON may have comments and trailing commas, like the files of some desktop clients. An empty
// file is an empty mapping.
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

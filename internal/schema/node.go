package schema

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// node is a well-formed JSON value. Its parts are read when they are needed, once.
type node struct {
	raw    jsontext.Value
	opened bool
	names  []string          // of the members of an object
	values []json.RawMessage // of an object or an array
	nodes  []*node           // for values
}

func (n *node) is(kind jsontext.Kind) bool { return n.raw.Kind() == kind }

// open reads the parts of an object or an array.
func (n *node) open() *node {
	object := n.is('{')
	if n.opened || !object && !n.is('[') {
		return n
	}
	n.opened = true
	d := jsontext.NewDecoder(bytes.NewBuffer(n.raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	_, err := d.ReadToken()
	for err == nil && d.PeekKind() != '}' && d.PeekKind() != ']' {
		if object {
			name, _ := d.ReadToken()
			n.names = append(n.names, name.String())
		}
		var value jsontext.Value
		value, err = d.ReadValue()
		end := d.InputOffset()
		value = n.raw[end-int64(len(value)) : end : end]
		n.values = append(n.values, json.RawMessage(value))
		n.nodes = append(n.nodes, &node{raw: value})
	}
	return n
}

// elements returns the parts of an array.
func (n *node) elements() []*node {
	if !n.is('[') {
		return nil
	}
	return n.open().nodes
}

// at returns a member of an object or an element of an array, nil if there is none of that name or position.
func (n *node) at(name string) *node {
	i := slices.Index(n.open().names, name)
	if number, err := strconv.Atoi(name); err == nil && n.is('[') {
		i = number
	}
	if i < 0 || i >= len(n.nodes) {
		return nil
	}
	return n.nodes[i]
}

// text returns the value of a string, "" for anything else.
func (n *node) text() string {
	if !n.is('"') {
		return ""
	}
	text, _ := jsontext.AppendUnquote(nil, n.raw) // the error is about UTF-8, which is repaired
	return string(text)
}

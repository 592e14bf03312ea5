package synth

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/short"
)

// Bounds for reading a JSON value.
const (
	maxNodes = 4000
	maxDepth = 12
	maxKey   = 80 // bytes
)

// node is a JSON value with its members in their order.
type node struct {
	kind  jsontext.Kind
	text  string // of a scalar; for a value beyond the bounds, its JSON
	keys  []string
	items []node // elements, or the values of keys
	cut   bool   // the value has more
}

func (n node) scalar() bool { return n.kind != '{' && n.kind != '[' }

// blank reports whether there is nothing to show.
func (n node) blank() bool {
	return n.kind == 'n' || n.kind == '"' && n.text == "" || !n.scalar() && len(n.items) == 0
}

// empty reports whether neither a list or an object nor its members have a value.
func (n node) empty() bool {
	return !slices.ContainsFunc(n.items, func(item node) bool { return item.scalar() || len(item.items) > 0 })
}

// get returns the value of the first of the keys that the object has.
func (n node) get(keys ...string) (key string, value node, ok bool) {
	for _, want := range keys {
		for i, k := range n.keys {
			if k == want {
				return k, n.items[i], true
			}
		}
	}
	return "", node{}, false
}

// parse reads a value within bounds; whole means that raw is complete. Invalid JSON becomes a string.
func parse(value json.RawMessage, whole bool) node {
	p := parser{
		decoder: jsontext.NewDecoder(bytes.NewBuffer(value), jsontext.AllowDuplicateNames(true),
			jsontext.AllowInvalidUTF8(true)),
		left:  maxNodes,
		whole: whole,
	}
	n, err := p.read()
	if err != nil {
		return node{kind: '"', text: string(value), cut: !whole}
	}
	return n
}

type parser struct {
	decoder *jsontext.Decoder
	left    int // nodes that may still be read
	whole   bool
}

func (p *parser) read() (node, error) {
	d := p.decoder
	p.left--
	kind := d.PeekKind()
	switch {
	case kind != '{' && kind != '[':
		token, err := d.ReadToken()
		if err != nil {
			return node{}, err
		}
		return node{kind: token.Kind(), text: token.String()}, nil
	case d.StackDepth() >= maxDepth:
		raw, err := d.ReadValue()
		return node{kind: '"', text: string(raw)}, err
	}
	if _, err := d.ReadToken(); err != nil {
		return node{}, err
	}
	n := node{kind: kind}
	for k := d.PeekKind(); k != '}' && k != ']'; k = d.PeekKind() {
		if p.left <= 0 {
			n.cut = true
			return n, nil
		}
		var key string
		if kind == '{' {
			name, err := d.ReadToken()
			if err != nil {
				return n.ended(p.whole, err)
			}
			key = short.Line(name.String(), maxKey)
		}
		item, err := p.read()
		if err != nil {
			return n.ended(p.whole, err)
		}
		if kind == '{' {
			n.keys = append(n.keys, key)
		}
		n.items = append(n.items, item)
		if item.cut {
			n.cut = true
			return n, nil
		}
	}
	_, err := d.ReadToken()
	return n, err
}

// ended returns the part of a list or an object before the text ended.
func (n node) ended(whole bool, err error) (node, error) {
	if whole {
		return node{}, err
	}
	n.cut = true
	return n, nil
}

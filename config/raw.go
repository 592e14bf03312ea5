package config

import (
	"encoding/json"
	"strings"
)

// json returns n as JSON, with the variables of its texts expanded. Members keep their order.
func (d *decoder) json(path string, n *node) (json.RawMessage, bool) {
	switch n.kind {
	case text:
		s, _, ok := d.scalar(path, n, "text")
		return quote(s), ok
	case number:
		if !json.Valid([]byte(n.text)) {
			d.fail(n.at, path, "want a decimal number, got %s", place{n.at, n.text}.quoted())
			return nil, false
		}
		return json.RawMessage(n.text), true
	case boolean:
		return json.RawMessage(strings.ToLower(n.text)), true
	case list:
		return d.jsonList(path, n)
	case mapping:
		return d.jsonObject(path, n)
	}
	return json.RawMessage("null"), true
}

func (d *decoder) jsonList(path string, n *node) (json.RawMessage, bool) {
	out, fine := json.RawMessage{'['}, true
	for i, value := range n.items {
		raw, ok := d.json(item(path, i), value)
		fine = fine && ok
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
	}
	return append(out, ']'), fine
}

func (d *decoder) jsonObject(path string, n *node) (json.RawMessage, bool) {
	out, fine := json.RawMessage{'{'}, true
	d.unique(path, n, func(m member) {
		at := join(path, m.key)
		d.places[at] = place{m.value.at, m.value.text}
		raw, ok := d.json(at, m.value)
		fine = fine && ok
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, quote(m.key)...), ':'), raw...)
	})
	return append(out, '}'), fine
}

// quote returns a text as JSON.
func quote(s string) json.RawMessage {
	raw, _ := json.Marshal(s) // texts always marshal
	return raw
}

package pins

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// document is the content of the file.
type document struct {
	Version int                `json:"version"`
	Lost    bool               `json:"lost,omitempty"` // an earlier file was damaged: no list counts as the first one
	Servers map[string]*pinned `json:"servers"`
}

// pinned are the tools of a server. Rest, here and below, is what only another version of the router knows.
type pinned struct {
	Tools map[string]pin  `json:"tools"`
	Rest  *jsontext.Value `json:",embed"`
	kept  int             // bytes of their definitions
}

// pin is what is known of a tool, not nothing.
type pin struct {
	Approved *Version        `json:"approved,omitempty"`
	Latest   *Version        `json:"latest,omitempty"` // as it was seen last, if that is not approved
	Rest     *jsontext.Value `json:",embed"`
}

// Version is a version of a tool's definition. It is immutable.
type Version struct {
	SHA256     string          `json:"sha256"`
	Definition jsontext.Value  `json:"definition,omitempty"` // canonical; empty = not kept
	By         string          `json:"by,omitempty"`         // who approved it
	At         time.Time       `json:"at"`                   // when it was approved, or first seen
	Rest       *jsontext.Value `json:",embed"`
}

// members are the parts of a definition that count.
var members = []string{"name", "title", "description", "inputSchema", "outputSchema", "annotations"}

// define returns the version of a tool that a definition is, in canonical form. Readers may ignore the case of members,
// so all their variants count. A definition that is not strict JSON, such as one that repeats a member, counts as a
// whole.
func define(raw json.RawMessage) Version {
	text := jsontext.Value("{")
	jsonrpc.Members(raw, func(name []byte, value jsonrpc.Span) bool {
		if !slices.ContainsFunc(members, func(m string) bool { return strings.EqualFold(m, string(name)) }) {
			return true
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(append(append(text, jsonrpc.StringID(string(name))...), ':'), value.Of(raw)...)
		return true
	})
	text = append(text, '}')
	// Numbers stay as they are: as floats, large ones would be equal.
	err := text.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	if err != nil {
		text = jsontext.Value(raw)
	}
	sum := sha256.Sum256(text)
	v := Version{SHA256: hex.EncodeToString(sum[:]), At: time.Now().UTC().Truncate(time.Second)}
	if err == nil && len(text) <= maxDefinition {
		v.Definition = text
	}
	return v
}

// first reports whether the next list of a server is its first one.
func (d *document) first(server string) bool { return d.Servers[server] == nil && !d.Lost }

// server returns the tools of a server, which is known from now on.
func (d *document) server(name string) *pinned {
	k := d.Servers[name]
	if k == nil {
		k = &pinned{Tools: map[string]pin{}}
		d.Servers[name] = k
	}
	return k
}

// pin returns what is known of a tool.
func (d *document) pin(server, tool string) (p pin, known bool) {
	if k := d.Servers[server]; k != nil {
		p, known = k.Tools[tool]
	}
	return p, known
}

// clone returns a copy that shares the versions.
func (d *document) clone() *document {
	out := &document{Version: d.Version, Lost: d.Lost, Servers: make(map[string]*pinned, len(d.Servers))}
	for name, k := range d.Servers {
		out.Servers[name] = k.clone()
	}
	return out
}

// valid reports whether a document that was read could have been written.
func (d *document) valid() bool {
	for _, k := range d.Servers {
		if !k.valid() {
			return false
		}
	}
	return d.Version == documentVersion && d.Servers != nil
}

// clone returns a copy that shares the versions.
func (k *pinned) clone() *pinned { return &pinned{maps.Clone(k.Tools), k.Rest, k.kept} }

// valid reports whether pins that were read could have been written. It counts the bytes that are kept.
func (k *pinned) valid() bool {
	if k == nil || k.Tools == nil {
		return false
	}
	for _, p := range k.Tools {
		if k.kept += p.bytes(); p == (pin{}) {
			return false
		}
	}
	return true
}

// withoutDefinition returns a copy that has only the hash of its definition.
func (v *Version) withoutDefinition() *Version {
	if v == nil {
		return nil
	}
	own := *v
	own.Definition = nil
	return &own
}

func (p pin) bytes() (n int) {
	for _, v := range [...]*Version{p.Approved, p.Latest} {
		if v != nil {
			n += len(v.Definition)
		}
	}
	return n
}

// put sets what is known of a tool.
func (k *pinned) put(tool string, p pin) {
	k.kept += p.bytes() - k.Tools[tool].bytes()
	k.Tools[tool] = p
}

// see records a version of a tool; first means that it belongs to the first list of its server. It reports whether the
// tool is changed, and whether this was not known before. A tool that there is no room for is changed.
func (k *pinned) see(tool string, v Version, first bool) (changed, differs bool) {
	was, known := k.Tools[tool]
	if !known && (tool == "" || len(tool) > maxName || len(k.Tools) >= maxTools) {
		return true, false
	}
	if k.kept+len(v.Definition) > maxKept {
		v.Definition = nil
	}
	now := was
	switch {
	case !known && first:
		v.By = FirstSight
		now.Approved = &v
	case was.Approved != nil && was.Approved.SHA256 == v.SHA256:
		now.Latest = nil
	case was.Latest == nil || was.Latest.SHA256 != v.SHA256:
		now.Latest = &v
	}
	k.put(tool, now)
	return now.Latest != nil, now != was
}

// replay adds to d what from has of some tools, by server.
func (d *document) replay(from *document, tools map[string]map[string]bool) {
	for server, names := range tools {
		first, known := d.first(server), d.server(server)
		for tool := range names {
			p := from.Servers[server].Tools[tool]
			if p.Approved != nil {
				known.see(tool, *p.Approved, first)
			}
			if p.Latest != nil {
				known.see(tool, *p.Latest, false)
			}
		}
	}
}

// Change is a tool whose definition is not the approved one.
type Change struct {
	Tool     string
	Approved Version // without a SHA256 if the tool was added
	Latest   Version
}

// Added reports whether no definition of the tool was approved before.
func (c *Change) Added() bool { return c.Approved.SHA256 == "" }

// Selection selects changed tools; the zero value selects all.
type Selection struct {
	Tool   string // with this name. One without its hidden characters counts if no tool has it as it is.
	SHA256 string // with this latest definition
}

// changes returns the changed tools of a server that are selected, in order.
func (d *document) changes(server string, which Selection) (out []Change) {
	k := d.Servers[server]
	if k == nil {
		return nil
	}
	_, exact := k.Tools[which.Tool]
	for _, tool := range slices.Sorted(maps.Keys(k.Tools)) {
		p := k.Tools[tool]
		named := which.Tool == "" || which.Tool == tool || !exact && which.Tool == texts.VisibleName(tool)
		if p.Latest == nil || !named || which.SHA256 != "" && which.SHA256 != p.Latest.SHA256 {
			continue
		}
		c := Change{Tool: tool, Latest: *p.Latest}
		if p.Approved != nil {
			c.Approved = *p.Approved
		}
		out = append(out, c)
	}
	return out
}

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

// pinned are the tools of a server.
type pinned struct {
	Tools map[string]*pin `json:"tools"`
}

// pin is what is known of a tool. At least one of its definitions is there.
type pin struct {
	Approved *definition `json:"approved,omitempty"`
	Latest   *definition `json:"latest,omitempty"` // as it was seen last, if that is not approved
}

// definition is a version of a tool's definition.
type definition struct {
	SHA256 string         `json:"sha256"`
	Listed string         `json:"listed"`               // SHA-256 of the bytes that were listed
	Text   jsontext.Value `json:"definition,omitempty"` // canonical; empty = not kept
	By     string         `json:"by,omitempty"`         // who approved it
	At     time.Time      `json:"at"`                   // when it was approved, or first seen
}

func (d definition) withoutText() definition {
	d.Text = nil
	return d
}

// members are the parts of a definition that count.
var members = []string{"name", "title", "description", "inputSchema", "outputSchema", "annotations"}

// define returns the canonical form of a tool's definition. Readers may ignore the case of members, so all their
// variants count. A definition that is not strict JSON, such as one that repeats a member, counts as a whole.
func define(raw json.RawMessage) definition {
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
	d := definition{SHA256: digest(text), Listed: digest(raw), At: time.Now().UTC().Truncate(time.Second)}
	if err == nil && len(text) <= maxDefinition {
		d.Text = text
	}
	return d
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// first reports whether the next list of a server is its first one.
func (d *document) first(server string) bool { return d.Servers[server] == nil && !d.Lost }

// server returns the tools of a server, which is known from now on.
func (d *document) server(name string) *pinned {
	if d.Servers == nil {
		d.Servers = map[string]*pinned{}
	}
	k := d.Servers[name]
	if k == nil {
		k = &pinned{map[string]*pin{}}
		d.Servers[name] = k
	}
	return k
}

// pin returns what is known of a tool; nil if that is nothing.
func (d *document) pin(server, tool string) *pin {
	if k := d.Servers[server]; k != nil {
		return k.Tools[tool]
	}
	return nil
}

// withoutTexts returns a copy without the texts of definitions.
func (d *document) withoutTexts() document {
	out := document{Version: d.Version, Lost: d.Lost, Servers: make(map[string]*pinned, len(d.Servers))}
	short := func(d *definition) *definition {
		if d == nil {
			return nil
		}
		s := d.withoutText()
		return &s
	}
	for name, k := range d.Servers {
		tools := make(map[string]*pin, len(k.Tools))
		for tool, p := range k.Tools {
			tools[tool] = &pin{short(p.Approved), short(p.Latest)}
		}
		out.Servers[name] = &pinned{tools}
	}
	return out
}

// valid reports whether a document that was read could have been written.
func (d *document) valid() bool {
	for _, k := range d.Servers {
		if k == nil || k.Tools == nil {
			return false
		}
		for _, p := range k.Tools {
			if p == nil || p.Approved == nil && p.Latest == nil {
				return false
			}
		}
	}
	return d.Version == documentVersion && d.Servers != nil
}

// limit drops the texts that are beyond the bound of their server.
func (d *document) limit() {
	for _, k := range d.Servers {
		kept := 0
		for _, tool := range slices.Sorted(maps.Keys(k.Tools)) {
			for _, def := range [...]*definition{k.Tools[tool].Approved, k.Tools[tool].Latest} {
				if def == nil {
					continue
				}
				if kept += len(def.Text); kept > maxKept {
					kept -= len(def.Text)
					def.Text = nil
				}
			}
		}
	}
}

// takes reports whether there is room for a tool.
func (k *pinned) takes(tool string) bool {
	return k.Tools[tool] != nil || tool != "" && len(tool) <= maxName && len(k.Tools) < maxTools
}

// see records a definition of a tool; first means that it belongs to the first list of its server. It reports whether
// the tool is changed, and whether this was not known before.
func (k *pinned) see(tool string, d definition, first bool) (changed, differs bool) {
	p := k.Tools[tool]
	switch {
	case !k.takes(tool):
		return true, false
	case p == nil && first:
		d.By = FirstSight
		k.Tools[tool] = &pin{Approved: &d}
		return false, true
	case p == nil:
		k.Tools[tool] = &pin{Latest: &d}
		return true, true
	case p.Approved != nil && p.Approved.SHA256 == d.SHA256:
		differs, p.Latest = p.Latest != nil, nil
		if len(p.Approved.Text) == 0 {
			p.Approved.Text = d.Text
		}
		return false, differs
	case p.Latest == nil || p.Latest.SHA256 != d.SHA256:
		p.Latest = &d
		return true, true
	case len(p.Latest.Text) == 0:
		p.Latest.Text = d.Text
	}
	return true, false
}

// changed returns the names of the changed tools, in order; k may be nil.
func (k *pinned) changed() []string {
	if k == nil {
		return nil
	}
	var names []string
	for _, tool := range slices.Sorted(maps.Keys(k.Tools)) {
		if k.Tools[tool].Latest != nil {
			names = append(names, tool)
		}
	}
	return names
}

// Change is a tool whose definition is not the approved one.
type Change struct {
	Tool     string
	Approved Version // without a SHA256 if the tool was added
	Latest   Version
}

// Added reports whether no definition of the tool was approved before.
func (c *Change) Added() bool { return c.Approved.SHA256 == "" }

// Version is a version of a tool's definition.
type Version struct {
	SHA256     string
	Definition json.RawMessage // empty = not kept
	By         string          // who approved it
	At         time.Time       // when it was approved, or first seen
}

// Selection selects changed tools; the zero value selects all.
type Selection struct {
	Tool   string // with this name. One without its hidden characters counts if no tool has it as it is.
	SHA256 string // with this latest definition
}

// changes returns the changed tools that are selected, in order; k may be nil.
func (k *pinned) changes(which Selection) []Change {
	if k == nil {
		return nil
	}
	var out []Change
	exact := k.Tools[which.Tool] != nil
	for _, tool := range k.changed() {
		p := k.Tools[tool]
		named := which.Tool == "" || which.Tool == tool || !exact && which.Tool == texts.VisibleName(tool)
		if named && (which.SHA256 == "" || which.SHA256 == p.Latest.SHA256) {
			out = append(out, Change{Tool: tool, Approved: p.Approved.version(), Latest: p.Latest.version()})
		}
	}
	return out
}

func (d *definition) version() Version {
	if d == nil {
		return Version{}
	}
	return Version{SHA256: d.SHA256, Definition: json.RawMessage(d.Text), By: d.By, At: d.At}
}

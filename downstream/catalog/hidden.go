package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Finding is a kind of hidden characters in the definition of a tool; see package texts for the kinds.
type Finding struct {
	Tool string `json:"tool"` // without them
	Kind string `json:"kind"`

	Own string `json:"-"` // the tool's own name
}

// hiddenKinds returns the kinds of hidden characters in a tool's name, and those in its other texts that writing does
// not need: some scripts and emoji are joined with invisible characters.
func hiddenKinds(name, title, description string) []string {
	kinds := texts.Hidden(name)
	about := strings.NewReplacer("\n", "", "\r", "", "\t", "").Replace(title + description)
	for _, kind := range texts.Hidden(about) {
		if kind != texts.ZeroWidth && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Findings returns the hidden characters in the definitions of the tools, also of quarantined ones that can be read.
func (l *List) Findings() []Finding {
	out := slices.Clone(l.withheld)
	for _, t := range l.all() {
		out = append(out, t.findings(t.bare)...)
	}
	return out
}

// findings returns the hidden characters in the definition of a tool, which is shown by a name.
func (t *Tool) findings(name string) (out []Finding) {
	for _, kind := range t.hidden {
		out = append(out, Finding{Tool: name, Kind: kind, Own: t.Tool.Tool})
	}
	return out
}

// nameVisibly gives each tool whose name has hidden characters the name without them. If that is the name of another
// tool, too, it gets a hash, so that no tool hides another.
func (l *List) nameVisibly() {
	var tools []*Tool
	names := map[string]int{}
	for i := range l.Tools {
		t := &l.Tools[i]
		if t.bare = texts.VisibleName(t.Tool.Tool); t.bare != t.Tool.Tool {
			tools = append(tools, t)
			names[t.bare]++
		}
	}
	for _, t := range tools {
		if t.bare == "" || names[t.bare] > 1 || l.Tool(t.bare) != nil {
			sum := sha256.Sum256([]byte(t.Tool.Tool))
			t.bare += "_" + hex.EncodeToString(sum[:3])
		}
		t.Name = t.bare
		if l.bare == nil {
			l.bare = map[string]bool{}
		}
		l.bare[t.bare] = true
	}
}

// has reports whether the server lists a tool with this own name, or with this name instead of one with hidden
// characters.
func (l *List) has(name string) bool { return l.Tool(name) != nil || l != nil && l.bare[name] }

// Visible returns the definition for people and models: without hidden characters in titles and descriptions, and with
// a name that has none.
func (t *Tool) Visible(name string) json.RawMessage {
	return jsonrpc.Set(visibleSchema(t.Raw), "name", []byte(jsonrpc.StringID(name)))
}

// Bare returns the tool's own name or, if that has hidden characters, a name of the tool without them.
func (t *Tool) Bare() string { return t.bare }

// visibleSchema returns a schema without the hidden characters in its titles and descriptions, and without those
// elsewhere that no value needs.
func visibleSchema(raw json.RawMessage) json.RawMessage {
	if !suspicious(raw) {
		return raw
	}
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var out bytes.Buffer
	enc := jsontext.NewEncoder(&out, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	changed := false
	var names []string // by depth: the name of the current member
	for {
		token, err := dec.ReadToken()
		if err != nil { // the end
			break
		}
		if depth := dec.StackDepth(); token.Kind() == '"' {
			for len(names) <= depth {
				names = append(names, "")
			}
			text := token.String()
			kind, count := dec.StackIndex(depth)
			isName := kind == '{' && count%2 == 1
			var seen string
			switch {
			case isName:
				names[depth] = text
				seen = texts.VisibleValue(text)
			case kind == '{' && (names[depth] == "title" || names[depth] == "description"):
				seen = texts.Visible(text)
			default:
				seen = texts.VisibleValue(text)
			}
			if seen != text {
				token, changed = jsontext.String(seen), true
			}
		}
		if err := enc.WriteToken(token); err != nil {
			return raw
		}
	}
	if !changed {
		return raw
	}
	return bytes.TrimSpace(out.Bytes())
}

// suspicious reports whether a raw value may have hidden characters: others than ASCII, or escaped ones.
func suspicious(raw []byte) bool {
	return bytes.ContainsFunc(raw, func(r rune) bool { return r >= 0x7f }) || bytes.Contains(raw, []byte(`\u`)) ||
		bytes.Contains(raw, []byte(`\b`)) || bytes.Contains(raw, []byte(`\f`)) || bytes.Contains(raw, []byte(`\r`))
}

// Package catalog holds the tools of all servers and their names.
//
// [Read] reads what one server lists. [Build] combines these lists to a [Catalog], an immutable snapshot that answers
// which tools a caller may see and which tool a name means. [FullName], [Splits] and [Alias] define the names.
package catalog

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

const (
	maxToolDef     = 256 << 10 // bytes of one definition; larger ones are quarantined
	maxQuarantined = 1000      // quarantined tools kept per list
	maxName        = 1024      // bytes of their names; longer ones are not kept
)

// Tool is a tool of a downstream server.
type Tool struct {
	plan.Tool
	Raw json.RawMessage // the definition, unchanged

	mirrored    *mcp.Tool // arguments repeated in headers; nil if none
	headerFault error     // HeaderFault
	reads       bool      // Reads, which takes long to tell
	bare        string    // its own name or, if that has hidden characters, one without
	hidden      []string  // kinds of hidden characters in the definition
}

// ReadsOnly returns Reads of a listed tool at no cost.
func (t *Tool) ReadsOnly() bool { return t.reads }

// Full is the tool's name on the proxy surface.
func (t *Tool) Full() string { return FullName(t.Server, t.Tool.Tool) }

// readTool reads the parts of a definition that the router uses. The error tells why the tool is quarantined.
func readTool(server string, raw json.RawMessage) (Tool, error) {
	if len(raw) > maxToolDef {
		return Tool{}, fmt.Errorf("its definition has %d bytes, %d are allowed", len(raw), maxToolDef)
	}
	if _, twice := jsonrpc.Find(raw, "name"); twice {
		return Tool{}, errors.New("its name is written twice")
	}
	var def struct {
		Name         string           `json:"name"`
		Title        string           `json:"title"`
		Description  string           `json:"description"`
		InputSchema  json.RawMessage  `json:"inputSchema"`
		OutputSchema json.RawMessage  `json:"outputSchema"`
		Annotations  plan.Annotations `json:"annotations"`
	}
	if err := json.Unmarshal(raw, &def); err != nil {
		return Tool{}, fmt.Errorf("its definition cannot be read: %w", err)
	}
	switch {
	case def.Name == "":
		return Tool{}, errors.New("it has no name")
	case len(def.InputSchema) == 0 || def.InputSchema[0] != '{':
		return Tool{}, errors.New("its inputSchema is not an object")
	case len(def.OutputSchema) > 0 && def.OutputSchema[0] != '{':
		def.OutputSchema = nil
	}
	mirrored, fault := readHeaders(def.InputSchema)
	return Tool{
		Raw: raw, mirrored: mirrored, headerFault: fault, bare: def.Name,
		hidden: hiddenKinds(def.Name, def.Title, def.Description),
		Tool: plan.Tool{
			Name: def.Name, Server: server, Tool: def.Name,
			Title: texts.VisibleName(def.Title), Description: texts.Visible(def.Description),
			InputSchema: visibleSchema(def.InputSchema), OutputSchema: visibleSchema(def.OutputSchema),
			Annotations: def.Annotations,
		},
	}, nil
}

// List holds the tools that one server lists. It is immutable. A nil List is empty.
type List struct {
	Items       []json.RawMessage // definitions of the tools
	Tools       []Tool
	Quarantined map[string]string // tool name to the fault of its definition; at most maxQuarantined

	byName map[string]int  // own name to index in Tools
	bare   map[string]bool // names that stand for own names with hidden characters; nil = none

	withheld []Finding // of quarantined tools
}

// Read returns the tools of the definitions that a server lists and keep admits. It quarantines those that refusal has
// a reason for, and invalid ones, whose faults it passes to report. Without trust, annotations cannot make a tool safer
// than without them.
func Read(
	server string, items []json.RawMessage, trust bool, keep func(tool string) bool,
	refusal func(*Tool) string, report func(tool string, fault error),
) *List {
	l := &List{
		Tools: make([]Tool, 0, len(items)), byName: make(map[string]int, len(items)), Quarantined: map[string]string{},
	}
	if items != nil {
		l.Items = []json.RawMessage{}
	}
	for _, item := range items {
		t, err := readTool(server, item)
		name := t.Tool.Tool
		if err != nil {
			name = jsonrpc.Text(jsonrpc.Get(item, "name"))
		}
		if !keep(name) {
			continue
		}
		if err == nil && l.Tool(name) != nil {
			err = errors.New("its name is listed twice")
		}
		why := ""
		if err != nil {
			report(texts.VisibleName(name), err)
			why = err.Error()
		} else {
			why = refusal(&t)
		}
		if why != "" {
			if len(name) <= maxName && len(l.Quarantined) < maxQuarantined && l.Tool(name) == nil {
				if _, again := l.Quarantined[name]; !again {
					l.withheld = append(l.withheld, t.findings(texts.VisibleName(name))...)
				}
				l.Quarantined[name] = why
			}
			continue
		}
		if !trust {
			t.Annotations = t.Annotations.Distrusted()
		}
		t.reads = t.Reads()
		l.byName[name] = len(l.Tools)
		l.Tools = append(l.Tools, t)
		l.Items = append(l.Items, item)
	}
	l.nameVisibly()
	return l
}

// Tool returns a tool by its own name; nil if it was not listed.
func (l *List) Tool(name string) *Tool {
	if l == nil {
		return nil
	}
	if i, ok := l.byName[name]; ok {
		return &l.Tools[i]
	}
	return nil
}

func (l *List) all() []Tool {
	if l == nil {
		return nil
	}
	return l.Tools
}

func (l *List) quarantined() map[string]string {
	if l == nil {
		return nil
	}
	return l.Quarantined
}

// Params returns the params of a tools/call. tool is the tool's own name; arguments and meta are raw JSON that is
// copied unchanged. With a nil meta, _meta is left out.
func Params(tool string, arguments, meta []byte) []byte {
	params := append([]byte(`{"name":`), jsonrpc.StringID(tool)...)
	params = append(append(params, `,"arguments":`...), arguments...)
	if meta != nil {
		params = append(append(params, `,"_meta":`...), meta...)
	}
	return append(params, '}')
}

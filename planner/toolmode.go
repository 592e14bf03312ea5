package planner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/prompts"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Modes of planning.
const (
	ModePlan  = "plan"  // the model writes plans
	ModeTools = "tools" // the model calls tools natively; the calls of a turn are the plan of a round
	ModeAuto  = "auto"  // ModePlan, or ModeTools while the model writes no readable plans
)

// Bounds of tools that a model can call.
const (
	maxNative     = 120  // tools of one request
	maxNativeText = 1000 // bytes of a description
)

// preferTools is the time that ModeAuto uses tools before it asks for a plan again.
const preferTools = 10 * time.Minute

// toolSystem returns the system prompt of ModeTools.
var toolSystem = sync.OnceValue(func() string {
	return prompts.Render("tools_system", struct {
		MaxSteps  int
		FindTools string
	}{maxSteps, findTools})
})

// offersTools reports whether a query begins with native tools. A client's model has none.
func (p *Planner) offersTools(req Request) bool {
	if req.Model != nil {
		return false
	}
	return p.cfg.Mode == ModeTools || p.cfg.Mode == ModeAuto && p.now().UnixNano() < p.nativeUntil.Load()
}

// showTools chooses the tools that the model can call: all if their schemas fit the budget, else those that match the
// question best.
func (p *Planner) showTools(ctx context.Context, req Request) *Shown {
	var all []plan.Tool
	for t := range req.Tools.All() {
		if all = append(all, *t); len(all) == maxNative {
			break
		}
	}
	s := p.showNative(req, all)
	if len(s.offered) < len(all) {
		s = p.showNative(req, p.ranker.Rank(ctx, req.Query, req.Tools, maxNative))
		s.others = true
	}
	return s
}

// showNative lets the model call ranked tools, as far as the budget allows. Their order depends on nothing but the
// names, so that endpoints can cache them.
func (p *Planner) showNative(req Request, ranked []plan.Tool) *Shown {
	s := &Shown{native: true}
	s.forget(req)
	room := p.cfg.ToolTokens * bytesPerToken
	s.room = max(room, 2*maxTool)
	p.offer(req.Tools, ranked, room, s)
	slices.Sort(s.offered)
	s.best = s.names(req.Tools)
	return s
}

// names returns a data block of the tools that the model can call.
func (s *Shown) names(tools Tools) string {
	l := layout{room: math.MaxInt, servers: tools.Servers()}
	for _, name := range s.offered {
		if t, unknown := tools.Lookup(name); unknown == nil {
			mark := s.approval.mark(&t)
			l.behind(t.Server, texts.Line(name, maxName)+mark)
			s.approval.shown(mark)
		}
	}
	return l.String()
}

// offer lets the model call ranked tools within a size: a quarter of it for a data block with their names, server by
// server, the rest for their definitions. It returns the block and the size of both.
func (p *Planner) offer(tools Tools, ranked []plan.Tool, room int, s *Shown) (names string, taken int) {
	l := layout{room: room / 4, servers: tools.Servers()}
	room -= room / 4
	for _, t := range ranked {
		if s.details[t.Name] != 0 || len(s.offered) == maxNative-1 { // beside find_tools
			continue
		}
		cost, mark := p.nativeTool(t.Name, t).size(), s.approval.mark(&t)
		if cost <= room && l.behind(t.Server, texts.Line(t.Name, maxName)+mark) {
			s.approval.shown(mark)
			room -= cost
			taken += cost
			s.note(&t, whole)
			s.offered = append(s.offered, t.Name)
		}
	}
	names = l.String()
	return names, taken + len(names)
}

// planOf writes the calls of a response as a plan. names has the names of tools in plans, by the names for the model.
func planOf(resp llm.Response, names map[string]string) string {
	if len(resp.Calls) == 0 {
		if _, unreadable := plan.Parse(resp.Text); unreadable != nil { // prose: nothing is left to do
			return `{"steps":[]}`
		}
		return resp.Text
	}
	steps := make([]object, len(resp.Calls))
	for i, call := range resp.Calls {
		name, ok := names[call.Name]
		if !ok {
			name = call.Name
		}
		steps[i] = object{"tool": name, "arguments": arguments(call.Arguments)}
	}
	return string(toJSON(object{"steps": steps, "more": true}))
}

// arguments returns the arguments of a call as text, so that unreadable arguments affect no other call.
func arguments(text string) any {
	if strings.TrimSpace(text) == "null" {
		return object{}
	}
	return text
}

// nativeTools returns the tools that the model can call, and their names in plans by the names for the model. Tools
// found by searches come last, so that endpoints can cache the others.
func (p *Planner) nativeTools(from Tools, s *Shown) (tools []llm.Tool, names map[string]string) {
	names = map[string]string{}
	if s.others {
		names[findTools] = findTools
		tools = append(tools, searchTool)
	}
	for _, name := range s.offered {
		t, unknown := from.Lookup(name)
		if unknown != nil {
			continue
		}
		native := p.nativeTool(nativeName(t.Name, names), t)
		if names[native.Name] = t.Name; t.Name == findTools {
			names[native.Name] = t.Server + "." + t.Tool // the bare name is the search
		}
		tools = append(tools, native.Tool)
	}
	return tools, names
}

// searchTool searches for tools that the model was not given.
var searchTool = llm.Tool{
	Name: findTools, Description: "Search for other tools. The tools that are found can be called afterwards.",
	Schema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string",` +
		`"description":"what the tool should do"}},"required":["query"]}`),
}

var notNative = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// nativeName returns an unused name that endpoints accept. Names that become too long, or equal to another, end with a
// hash. Servers choose names, so even a hashed name may already be in use.
func nativeName(name string, taken map[string]string) string {
	const digits = 8
	plain := notNative.ReplaceAllString(name, "_")
	native, sum := plain, sha256.Sum256([]byte(name))
	for {
		if _, again := taken[native]; !again && native != "" && native != findTools && len(native) <= llm.MaxToolName {
			return native
		}
		native = plain[:min(len(plain), llm.MaxToolName-1-digits)] + "_" + hex.EncodeToString(sum[:digits/2])
		sum = sha256.Sum256(sum[:])
	}
}

// native is a tool in the form for a model.
type native struct{ llm.Tool }

func (n native) size() int {
	return len(n.Name) + max(len(n.Description)+len(n.Schema), len(n.Plain)) + frame
}

// nativeTool converts a tool. If its schema is too large or does not describe an object, the description has the short
// form of the schema instead.
func (p *Planner) nativeTool(name string, t plan.Tool) native {
	var schema map[string]json.RawMessage
	usable := len(t.InputSchema) <= maxSchema && json.Unmarshal(t.InputSchema, &schema) == nil && schema != nil
	plain := texts.Line(p.signatureOf(&t).long(maxTool), maxNativeText)
	if kind := string(schema["type"]); !usable || kind != "" && kind != `"object"` {
		return native{llm.Tool{Name: name, Description: plain, Schema: json.RawMessage(`{"type":"object"}`)}}
	}
	out := native{llm.Tool{
		Name: name, Description: texts.Line(t.Description, maxNativeText), Schema: t.InputSchema, Plain: plain,
	}}
	if schema["type"] == nil {
		schema["type"] = json.RawMessage(`"object"`)
		out.Schema = toJSON(schema)
	}
	return out
}

type object = map[string]any

// toJSON encodes strings, lists and objects, which cannot fail.
func toJSON(v any) json.RawMessage {
	raw, _ := json.Marshal(v)
	return raw
}

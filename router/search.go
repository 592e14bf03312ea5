package router

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/lru"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

const (
	defaultFound = 10  // tools per search
	maxFound     = 100 // maximum limit

	// Found tools are kept until the session ends. Beyond these limits, and for callers without sessions, the least
	// recently used entry is evicted.
	maxExposed      = 20_000   // sessions
	maxSessionless  = 1000     // callers without sessions
	maxExposedBytes = 32 << 20 // total length of names, for each of the two
)

// FoundTool is an entry of search_available_tools.
type FoundTool struct {
	Name        string          `json:"name"`
	Server      string          `json:"server"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Score       float64         `json:"score"`
}

// As returns the entry of a tool under the given name.
func (f Found) As(name string) FoundTool {
	return FoundTool{name, f.Server, f.Description, f.InputSchema, f.Score}
}

// ServeSearch serves search_available_tools. The tools found are listed for the caller from then on, and list_changed
// precedes the result on the same stream.
func (f *Frontend) ServeSearch(ctx context.Context, x *edge.Exchange) {
	args, err := f.parameters.read(ToolSearchTools, x.Message.Params)
	var query string
	var limit int
	if err == nil {
		query, err = args.text("query")
	}
	if err == nil {
		limit, err = args.count("limit", 1)
	}
	query = strings.TrimSpace(query)
	if err == nil && query == "" {
		err = refuse("Invalid argument: query is required")
	}
	limit = cmp.Or(limit, defaultFound)
	var found []Found
	if err == nil {
		found, err = routerOf(f, x).Search(ctx, query, min(limit, maxFound), x.Visible)
	}
	if err != nil {
		replyToolError(x, err)
		return
	}
	if x.Version.AtLeast(protocol.V20260728) && x.Header != nil { // as in lists
		found = slices.DeleteFunc(found, func(hit Found) bool { return hit.HeaderFault() != nil })
	}
	tools := []FoundTool{}
	exposed := make([]string, 0, len(found))
	names := make([]string, 0, len(found)) // listed names
	for _, hit := range found {
		name := f.router.servers.ListedName(hit.Server, hit.Tool.Tool.Tool)
		tools = append(tools, hit.As(name))
		exposed = append(exposed, hit.Full())
		names = append(names, name)
	}
	text := fmt.Sprintf("No tools found matching '%s'. Try other words, or list_available_tools.", query)
	if len(found) > 0 {
		text = fmt.Sprintf("Found %d tools matching '%s': %s", len(found), query, strings.Join(names, ", "))
		if !x.Version.AtLeast(protocol.V20260728) { // which forbids lists that vary by connection
			expose(exposures(f, x), clientOf(x), exposed)
			state, _ := json.Marshal(exposed) // cannot fail
			edge.Save(x, state)
		}
	}
	raw := result(text, map[string]any{"tools": tools})
	if !x.Version.AtLeast(protocol.V20260728) {
		raw = jsonrpc.Set(raw, "is_error", []byte("false"))
		x.ForceStream()
		x.Notify(jsonrpc.Notification("notifications/tools/list_changed", nil))
	}
	x.Reply(raw)
}

// expose stores the full names of the tools that a client's search found.
func expose(in *lru.Cache[string, []string], client string, names []string) {
	weight := len(client)
	for _, name := range names {
		weight += len(name)
	}
	in.Put(client, names, weight)
}

// Restore implements edge.Restorer: it exposes what the session's last search at another replica found.
func (f *Frontend) Restore(session string, state []byte) {
	var names []string
	if json.Unmarshal(state, &names) == nil {
		expose(f.exposed, session, names)
	}
}

// Exposed returns the full names of the tools that the caller's last search found.
func (f *Frontend) Exposed(x *edge.Exchange) []string {
	return lru.Peek(exposures(f, x), clientOf(x))
}

// Showing returns the sessions whose last search found a tool of a server.
func (f *Frontend) Showing(server string) []string {
	return lru.KeysOf(f.exposed, func(names []string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			return strings.HasPrefix(name, catalog.FullName(server, ""))
		})
	})
}

// exposures returns the cache that holds the caller's found tools.
func exposures(f *Frontend, x *edge.Exchange) *lru.Cache[string, []string] {
	if x.Session == "" {
		return f.sessionless
	}
	return f.exposed
}

// SearchTool returns the raw definition of search_available_tools.
func (f *Frontend) SearchTool() []byte { return f.searchTool }

// withExposed adds the tools that the caller's last search found to a tools/list result.
func (f *Frontend) withExposed(ctx context.Context, x *edge.Exchange, raw []byte) []byte {
	names := f.Exposed(x)
	if len(names) == 0 || x.Version.AtLeast(protocol.V20260728) {
		return raw
	}
	catalog, err := routerOf(f, x).directory.all(ctx)
	if err != nil {
		return raw
	}
	list := jsonrpc.Elements(jsonrpc.Get(raw, "tools"))
	for _, name := range names {
		if t, unknown := catalog.Lookup(name, x.Visible); unknown == nil {
			list = append(list, t.Visible(f.router.servers.ListedName(t.Server, t.Tool.Tool)))
		}
	}
	tools := []byte{'['}
	for i, def := range list {
		if i > 0 {
			tools = append(tools, ',')
		}
		tools = append(tools, def...)
	}
	return jsonrpc.Set(raw, "tools", append(tools, ']'))
}

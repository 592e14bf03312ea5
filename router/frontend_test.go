package router_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// Wrong arguments are error results that name the argument.
func TestArguments(t *testing.T) {
	k := newKit(t, nil)
	for _, row := range []struct{ tool, arguments, want string }{
		{"process_query", `{}`, "query is required"},
		{"process_query", `{"query":null}`, "query is required"},
		{"process_query", `{"query":7}`, "query must be a string"},
		{"process_query", `[]`, "arguments must be an object"},
		{"process_query", `{"query":"q","context":7}`, "context must be a string or an array"},
		{"process_query", `{"query":"q","context":[{"role":"user"}]}`, "context[0] needs role and content"},
		{"process_query", `{"query":"q","servers":"peer"}`, "servers must be an array of strings"},
		{"process_query", `{"query":"q","servers":["pear"]}`, "pear"},
		{"process_query", `{"query":"q","plan":"x"}`, "plan:"},
		{"process_query", `{"query":"q","dry_run":"yes"}`, "dry_run must be true or false"},
		{"process_query", `{"query":"q","max_rounds":0}`, "max_rounds must be a whole number of at least 1"},
		{"process_query", `{"query":"q","max_rounds":11}`, "max_rounds must be at most 10"},
		{"process_query", `{"query":"q","max_rounds":1.5}`, "max_rounds must be a whole number"},
		{"process_query", `{"query":"q","timeout_seconds":0}`, "timeout_seconds must be a positive number"},
		{"process_query", `{"query":"q","timeout_seconds":1e7}`, "timeout_seconds must be a positive number"},
		{"process_query", `{"query":"q","detail":"most"}`, "detail must be brief or full"},
		{"process_query", `{"query":"q","dryrun":true}`, "process_query has no argument dryrun; it has query, context, servers, plan, dry_run,"},
		{"list_available_tools", `{"servers":[]}`, "no argument servers; it has server, detail"},
		{"health_check", `{"name":null}`, "no argument name; it has server"},
		{"search_available_tools", `{"q":"hotel"}`, "no argument q; it has query, limit"},
		{"run", `{"tool":"echo","arguments":{}}`, "no argument arguments; it has tool, parameters, dry_run"},
		{"list_available_tools", `{"server":7}`, "server must be a string"},
		{"list_available_tools", `{"server":"pear"}`, "pear"},
		{"list_available_tools", `{"detail":"most"}`, "detail must be names or full"},
		{"health_check", `{"server":"pear"}`, "pear"},
		{"search_available_tools", `{}`, "query is required"},
		{"search_available_tools", `{"query":" "}`, "query is required"},
		{"search_available_tools", `{"query":"x","limit":0}`, "limit must be a whole number of at least 1"},
		{"run", `{}`, "tool is required"},
		{"run", `{"tool":7}`, "tool is required"},
		{"run", `{"tool":"echo","parameters":[]}`, "parameters must be an object"},
		{"run", `{"tool":"echo","dry_run":1}`, "dry_run must be true or false"},
		{"run", `{"tool":"nope"}`, "nope"},
		{"run", `{"tool":"peer__nope"}`, "nope"},
		{"nope", `{}`, "Unknown tool: nope"},
		{"peer__nope", `{}`, "Unknown tool: peer__nope"},
	} {
		if got := k.call(row.tool, row.arguments); !got.IsError || !strings.Contains(got.text(), row.want) {
			t.Errorf("%s %s: got %v %q, want an error with %q", row.tool, row.arguments, got.IsError, got.text(), row.want)
		}
	}
	if got := k.called(); len(got) > 0 {
		t.Errorf("got the calls %q, want none", got)
	}
}

// Every result conforms to the output schema of its tool, whatever there was to tell.
func TestResultsConform(t *testing.T) {
	k := newKit(t, nil)
	list := k.session().ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	var m struct {
		Result struct {
			Tools []struct {
				Name         string
				OutputSchema any
			}
		}
	}
	if err := json.Unmarshal([]byte(list[0]), &m); err != nil || len(m.Result.Tools) != 5 {
		t.Fatalf("got %s, want the five tools", list)
	}
	schemas := map[string]*jsonschema.Schema{}
	for _, tool := range m.Result.Tools {
		if tool.OutputSchema == nil {
			continue
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource(tool.Name, tool.OutputSchema); err != nil {
			t.Fatal(err)
		}
		schemas[tool.Name] = c.MustCompile(tool.Name)
	}
	for _, call := range [][2]string{
		{"process_query", `{"query":"q","plan":[]}`},
		{"process_query", `{"query":"q","plan":[{"tool":"echo"},{"tool":"fails"},{"tool":"nope"},{"tool":"long"},{"tool":"echo","arguments":{"v":"$s2"}}]}`},
		{"process_query", `{"query":"q","plan":{"steps":[{"id":"c","pick":"[1, 2]"},{"id":"d","each":"$c","when":"item > 1","pick":"{n: item}"},{"id":"e","pick":"c.x.y"}]}}`},
		{"process_query", `{"query":"q","plan":[{"tool":"echo"}],"dry_run":true,"detail":"full"}`},
		{"process_query", `{"query":"nothing here fits this"}`},
		{"list_available_tools", `{}`}, {"list_available_tools", `{"server":"peer"}`},
		{"health_check", `{}`}, {"health_check", `{"server":"peer"}`},
		{"search_available_tools", `{"query":"hotel room"}`}, {"search_available_tools", `{"query":"zzzz"}`},
	} {
		got := k.call(call[0], call[1])
		var value any
		if err := json.Unmarshal(got.Structured, &value); err != nil || got.IsError {
			t.Errorf("%s %s: got %q, want a result", call[0], call[1], got.text())
			continue
		}
		if err := schemas[call[0]].Validate(value); err != nil {
			t.Errorf("%s %s: %v", call[0], call[1], err)
		}
	}
	if schemas["run"] != nil {
		t.Error("run declares an output schema, want none: its result is the server's")
	}
}

// run and hidden names call the tool as they are told, whole; a dry run only says what it would do.
func TestRun(t *testing.T) {
	k := newKit(t, nil)
	for _, name := range []string{"echo", "peer__echo", "peer:echo", "peer.echo"} {
		if got := k.call("run", fmt.Sprintf(`{"tool":%q,"parameters":{"n":9007199254740993, "a":1.0}}`, name)); got.IsError || string(got.Structured) != `{"n":9007199254740993, "a":1.0}` {
			t.Errorf("%s: got %q %s, want the arguments as they stood", name, got.text(), got.Structured)
		}
	}
	if got := k.call("peer__echo", `{"v":1.0}`); string(got.Structured) != `{"v":1.0}` {
		t.Errorf("by its full name: got %q %s, want the arguments", got.text(), got.Structured)
	}
	if got := k.call("run", `{"tool":"fails"}`); !got.IsError || got.text() != "it rained" {
		t.Errorf("got %v %q, want the failure of the tool", got.IsError, got.text())
	}
	before := len(k.called())
	for parameters, want := range map[string]string{`{"city":"Oslo"}`: `"valid":true`, `{}`: `"valid":false`} {
		got := k.call("run", `{"tool":"hotel","dry_run":true,"parameters":`+parameters+`}`)
		if got.IsError || !strings.Contains(string(got.Structured), want) || !strings.Contains(string(got.Structured), `"server":"peer"`) {
			t.Errorf("dry run with %s: got %q %s, want %s", parameters, got.text(), got.Structured, want)
		}
	}
	if len(k.called()) != before {
		t.Error("a dry run called the tool")
	}
}

// Under name_conflicts: error, the later of two equal tools is not used, by its full name either.
func TestRunQuarantined(t *testing.T) {
	k := newKit(t, func(_ *router.Options, o *downstream.Options) {
		o.NameConflicts = catalog.ConflictError
		for _, name := range []string{"other", "third"} {
			server := &mcptest.Server{}
			server.SetTools(`[{"name":"echo",` + anything + `},{"name":"do.it",` + anything + `},{"name":"of ` + name + `",` + anything + `}]`)
			o.Servers = append(o.Servers, downstream.ServerConfig{Name: name, Type: downstream.TransportStdio})
			o.Access.Embedded[name] = func(context.Context) (io.ReadWriteCloser, error) { return dial(server), nil }
		}
	})
	k.call("list_available_tools", `{}`)
	ask := func(name, arguments string) string {
		lines := k.session().ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments + `}}`)
		return lines[len(lines)-1]
	}
	alias := catalog.Alias("third", "do.it", 0)
	for _, got := range []string{
		ask("run", `{"tool":"other__echo"}`), ask("run", `{"tool":"other.echo"}`), ask("other__echo", `{}`),
		ask("run", `{"tool":"`+alias+`"}`), ask(alias, `{}`),
	} {
		if !strings.Contains(got, `"reason":"quarantined"`) {
			t.Errorf("the later tool: got %s, want the reason quarantined", got)
		}
	}
	for _, got := range []string{ask("run", `{"tool":"echo"}`), ask("peer__echo", `{}`), ask("run", `{"tool":"other:of other"}`),
		ask(catalog.Alias("other", "do.it", 0), `{}`), ask(catalog.Alias("third", "of third", 0), `{}`)} {
		if !strings.Contains(got, `"result"`) {
			t.Errorf("other tools: got %s, want a result", got)
		}
	}
}

// A search of a client of 2026-07-28 over HTTP leaves out tools whose schemas name an invalid header, as lists do.
func TestSearchOfInvalidHeaders(t *testing.T) {
	k := newKit(t, func(_ *router.Options, o *downstream.Options) {
		s := &mcptest.Server{}
		s.SetTools(`[{"name":"odd","description":"Tells the gauge","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"a b"}}}},` +
			`{"name":"even","description":"Tells the gauge",` + anything + `}]`)
		o.Servers = append(o.Servers, downstream.ServerConfig{Name: "more", Type: downstream.TransportStdio})
		o.Embedded["more"] = func(context.Context) (io.ReadWriteCloser, error) { return dial(s), nil }
	})
	h := httptest.NewServer(k.edge.Streamable(k, nil))
	defer h.Close()
	for version, want := range map[string]string{mcptest.Modern: "Found 1 tools matching 'gauge': more__even", "2025-11-25": "Found 2 tools"} {
		c := &mcptest.Client{URL: h.URL, HTTP: h.Client(), Version: version}
		if got := c.Call(t.Context(), "search_available_tools", `{"query":"gauge"}`); !strings.HasPrefix(got.Text(), want) {
			t.Errorf("%s: got %s, want %s", version, got.Result, want)
		}
	}
}

// A search announces a new list and changes it for its caller alone; one without a hit changes nothing.
func TestSearchExposure(t *testing.T) {
	k := newKit(t, nil)
	search := func(id int, query string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"search_available_tools","arguments":{"query":%q,"limit":1}}}`, id, query)
	}
	names := func(line string) (names []string) {
		var m struct {
			Result struct{ Tools []struct{ Name string } }
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("got %s: %v", line, err)
		}
		for _, tool := range m.Result.Tools {
			names = append(names, tool.Name)
		}
		return names
	}
	const list = `{"jsonrpc":"2.0","id":9,"method":"tools/list"}`
	c := k.session()
	if got := c.ask(search(1, "hotel room")); len(got) != 2 || got[0] != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` || !strings.Contains(got[1], `Found 1 tools matching 'hotel room': peer__hotel`) {
		t.Errorf("got %q, want the notification and then what was found", got)
	}
	if got := names(c.ask(list)[0]); len(got) != 6 || !slices.Contains(got, "peer__hotel") {
		t.Errorf("got the tools %q, want the found one among them", got)
	}
	if got := c.ask(search(2, "zzzz")); !strings.Contains(got[len(got)-1], "No tools found matching 'zzzz'") {
		t.Errorf("got %q, want that nothing was found", got)
	}
	if got := names(c.ask(list)[0]); !slices.Contains(got, "peer__hotel") {
		t.Errorf("after a search without a hit: got the tools %q, want the found one still", got)
	}
	c.ask(search(3, "wipe disk"))
	if got := names(c.ask(list)[0]); len(got) != 6 || !slices.Contains(got, "peer__wipe") {
		t.Errorf("got the tools %q, want the newly found one in place of the other", got)
	}
	if got := names(k.session().ask(list)[0]); len(got) != 5 {
		t.Errorf("another session: got the tools %q, want the router's own", got)
	}
}

// A session from another replica shows what its search there found.
func TestSearchExposureMoves(t *testing.T) {
	k := newKit(t, nil)
	k.Frontend.Restore("a", []byte(`["peer__hotel"]`))
	k.Frontend.Restore("b", []byte(`{"of":"another version"}`))
	if got := k.Frontend.Showing("peer"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("sessions that show tools of peer: got %q, want a", got)
	}
}

// Tools are found by what their server says about them all.
func TestSearchByInstructions(t *testing.T) {
	k := newKit(t, nil)
	if got := k.call("search_available_tools", `{"query":"tests","limit":1}`); !strings.HasPrefix(got.text(), "Found 1 tools matching 'tests': peer__") {
		t.Errorf("got %q, want a tool of the server that is for tests", got.text())
	}
}

// Only the tools that the settings name are offered.
func TestOfferedTools(t *testing.T) {
	k := newFrontendKit(t, nil, router.FrontendOptions{Tools: router.ToolsConfig{Tools: []string{router.ToolRun}}})
	if got := k.session().ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); strings.Count(got[0], `"inputSchema"`) != 1 || !strings.Contains(got[0], `"name":"run"`) {
		t.Errorf("got %q, want run alone", got)
	}
	if got := k.call("health_check", `{}`); !got.IsError || got.text() != "Unknown tool: health_check" {
		t.Errorf("got %q, want that it is unknown", got.text())
	}
	listing := newFrontendKit(t, nil, router.FrontendOptions{Tools: router.ToolsConfig{Tools: []string{router.ToolListTools, router.ToolRun}}})
	const want = `find them with list_available_tools and call each with run, or by its server__tool name."`
	if got := listing.session().ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`); !strings.Contains(got[0], want) {
		t.Errorf("initialize: got %s, want %s in it", got[0], want)
	}
}

// twoServers adds a server that cannot be reached.
func twoServers(_ *router.Options, o *downstream.Options) {
	o.Servers = append(o.Servers, downstream.ServerConfig{Name: "down", Type: downstream.TransportStdio}, downstream.ServerConfig{Name: "off", Type: downstream.TransportStdio, Disabled: true})
	o.Embedded["down"] = func(context.Context) (io.ReadWriteCloser, error) { return nil, errors.New("not today") }
}

// The tools of the servers that can be listed are listed, each with its server and schema.
func TestListTools(t *testing.T) {
	k := newKit(t, twoServers)
	for arguments, want := range map[string]int{`{}`: len(tools), `{"server":"peer"}`: len(tools), `{"detail":"full"}`: len(tools)} {
		var listed []router.ToolInfo
		got := k.call("list_available_tools", arguments)
		if err := json.Unmarshal([]byte(got.text()), &listed); err != nil || len(listed) != want || !strings.HasPrefix(got.text(), "[\n  {\n") {
			t.Errorf("%s: got %d tools and %.100s, want %d as an indented array", arguments, len(listed), got.text(), want)
		}
		for _, tool := range listed {
			if tool.Server != "peer" || tool.Name == "" || tool.Description == "" || len(tool.Schema) == 0 {
				t.Errorf("%s: got %+v, want a tool of peer with all its parts", arguments, tool)
			}
		}
	}
	if got := k.call("list_available_tools", `{"detail":"names"}`); got.IsError || !strings.HasPrefix(got.text(), "[\n  {\n    \"name\": \"echo\",\n    \"server\": \"peer\"\n  },") {
		t.Errorf("names: got %.100s, want the tools without their descriptions", got.text())
	}
	if got, err := k.Tools(t.Context(), nil, "off"); err != nil || len(got) != 0 {
		t.Errorf("a server that is disabled: got %v, %v, want nothing", got, err)
	}
	if missing := k.Missing(t.Context()); len(missing) != 1 || missing[0].Server != "down" {
		t.Errorf("missing: got %+v, want down", missing)
	}
	if r := k.query(router.Query{Plan: json.RawMessage(`[{"tool":"echo"}]`)}); len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "server down could not be listed") {
		t.Errorf("warnings: got %q, want one of the server", r.Warnings)
	}
}

// The whole is as well as its servers are.
func TestHealth(t *testing.T) {
	k := newKit(t, twoServers)
	k.call("run", `{"tool":"peer__echo"}`) // connects
	for server, want := range map[string]string{"": "degraded", "peer": "healthy", "down": "unhealthy", "off": "healthy"} {
		h, err := k.Health(nil, server)
		if err != nil || h.Status != want || h.Version != "1.2.3" || (len(h.Servers) == 3) != (server == "") {
			t.Errorf("%q: got %+v, %v, want %s", server, h, err, want)
		}
	}
	h, err := k.Health(func(server, _ string) bool { return server == "peer" }, "")
	if err != nil || h.Status != "healthy" || len(h.Servers) != 1 {
		t.Errorf("a caller of peer alone: got %+v, %v, want that server", h, err)
	}
}

// A replica that has lost NATS is degraded.
func TestHealth_Cluster(t *testing.T) {
	c := &router.Cluster{Name: "n", Replica: "a", NATS: router.NATSConnected, Replicas: []router.Replica{{Name: "a", Sessions: 2}}}
	k := newKit(t, func(o *router.Options, _ *downstream.Options) { o.Cluster = func() *router.Cluster { return c } })
	k.call("run", `{"tool":"peer__echo"}`) // connects
	for nats, want := range map[string]string{router.NATSConnected: "healthy", router.NATSDisconnected: "degraded"} {
		c.NATS = nats
		if h, err := k.Health(nil, ""); err != nil || h.Status != want || h.Cluster != c {
			t.Errorf("NATS is %s: got %+v, %v, want %s", nats, h, err, want)
		}
		if got := k.call("health_check", `{}`); !strings.Contains(string(got.Structured), `"cluster":{"name":"n"`) {
			t.Errorf("got %s, want the cluster", got.Structured)
		}
	}
}

// The list of tools has one page, so that no cursor is known, whatever it is.
func TestList_RefusesCursors(t *testing.T) {
	s := newKit(t, nil).session()
	for cursor, want := range map[string]string{`"eA=="`: `-32602`, `"x"`: `-32602`, `""`: `-32602`, `null`: `"tools":[`} {
		lines := s.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":` + cursor + `}}`)
		if got := lines[len(lines)-1]; !strings.Contains(got, want) {
			t.Errorf("the cursor %s: got %.200s, want %s", cursor, got, want)
		}
	}
}

// A client of 2026-07-28 has no handshake; it learns who answers from the _meta of server/discover.
func TestDiscover(t *testing.T) {
	s := newKit(t, nil).session()
	lines := s.ask(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}}}`)
	got := lines[len(lines)-1]
	for _, want := range []string{
		`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"agenticnexus-router"`, `"version":"1.2.3"`,
		`"supportedVersions":["2026-07-28"`, `"tools":{}`,
		`"capabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s in it", got, want)
		}
	}
}

// The router's own list never changes without a search, so that there is nothing to subscribe to.
func TestNoSubscriptions(t *testing.T) {
	s := newKit(t, nil).session()
	lines := s.ask(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if got := lines[len(lines)-1]; !strings.Contains(got, `"code":-32601`) {
		t.Errorf("got %s, want the code -32601", got)
	}
}

// A user of the process calls a tool by any of its names and gets the raw result, or the error of the server.
func TestCall(t *testing.T) {
	k := newKit(t, nil)
	for _, name := range []string{"echo", "peer__echo", "peer:echo", "peer.echo"} {
		got, err := k.Call(t.Context(), name, json.RawMessage(`{"a":9007199254740993}`))
		if want := `{"content":[],"structuredContent":{"a":9007199254740993}}`; err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, want)
		}
	}
	if got, err := k.Call(t.Context(), "nope", nil); err == nil || !strings.Contains(err.Error(), "nope") || got != nil {
		t.Errorf("got %s, %v, want an error that names the tool", got, err)
	}
	var refused *jsonrpc.Error
	if got, err := k.Call(t.Context(), "breaks", json.RawMessage(`{}`)); !errors.As(err, &refused) || refused.Code != -32001 || refused.Message != "it broke" || got != nil {
		t.Errorf("got %s, %v, want the error of the server", got, err)
	}
}

// The error about an unknown tool names the servers that could not be listed, if there are any.
func TestUnknownToolNamesServersThatAreLost(t *testing.T) {
	whole := newKit(t, nil)
	if got := whole.call("run", `{"tool":"nope"}`).text(); !strings.Contains(got, "nope") || strings.Contains(got, "not listed") {
		t.Errorf("all servers are listed: got %q, want no word of servers", got)
	}
	part := newKit(t, func(_ *router.Options, o *downstream.Options) {
		o.Servers = append(o.Servers, downstream.ServerConfig{Name: "gone", Type: downstream.TransportStdio})
		o.Embedded["gone"] = func(context.Context) (io.ReadWriteCloser, error) { return nil, errors.New("nobody is there") }
	})
	var got string
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(got, "; not listed: gone (unavailable: "); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) { // it is starting at first
			t.Fatalf("one server is lost: got %q, want its name and why", got)
		}
		got = part.call("run", `{"tool":"nope"}`).text()
	}
	if got := part.call("run", `{"tool":"peer__nope"}`).text(); strings.Contains(got, "gone") {
		t.Errorf("a tool of another server: got %q, want no word of the lost one", got)
	}
}

// form speaks 2026-07-28 and has one tool, which needs to know a name.
func form(m mcptest.Message, write func(string)) bool {
	reply := func(result string) { write(m.Response(result) + "\n") }
	switch m.Method {
	case "initialize":
		write(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32602,"message":"no handshake here"}}` + "\n")
	case "server/discover":
		reply(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
	case "tools/call":
		if answer := jsonrpc.Get(m.Params, "inputResponses", "n", "content"); answer != nil {
			reply(`{"resultType":"complete","content":[],"structuredContent":{"given":` + string(answer) + `,"state":` + string(jsonrpc.Get(m.Params, "requestState")) + `}}`)
		} else {
			reply(`{"resultType":"input_required","inputRequests":{"n":{"method":"elicitation/create","params":{"message":"Name?"}}},"requestState":"a\/b"}`)
		}
	default:
		return false
	}
	return true
}

// What a modern server needs in the course of a call comes from the client of the query, or of run.
func TestInput(t *testing.T) {
	k := newKit(t, func(_ *router.Options, o *downstream.Options) {
		s := &mcptest.Server{OnLine: form}
		s.SetTools(`[{"name":"form",` + anything + `}]`)
		o.Servers = append(o.Servers, downstream.ServerConfig{Name: "modern", Type: downstream.TransportStdio})
		o.Embedded["modern"] = func(context.Context) (io.ReadWriteCloser, error) { return dial(s), nil }
	})
	const query = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"process_query","arguments":{"query":"q","plan":[{"tool":"form"}]}}}`
	const run = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"tool":"form"}}}`
	for _, row := range []struct{ request, caps, want string }{
		{query, `{"elicitation":{}}`, `"success":true,"result":{"given":{"name":"Ada"},"state":"a\/b"}`},
		{run, `{"elicitation":{}}`, `"structuredContent":{"given":{"name":"Ada"},"state":"a\/b"}`},
		{query, `{}`, `"result":"Error: server modern needs an answer to elicitation/create: the client cannot be asked"`},
		{run, `{}`, `"message":"server modern needs an answer to elicitation/create: the client cannot be asked"`},
	} {
		s := k.sessionOf(row.caps)
		s.answer = `"result":{"action":"accept","content":{"name":"Ada"}}`
		lines := s.ask(row.request)
		if last := lines[len(lines)-1]; !strings.Contains(last, row.want) {
			t.Errorf("%s: got %s, want %s", row.caps, last, row.want)
		}
	}
}

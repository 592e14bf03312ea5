package app_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

var ownTools = []string{"health_check", "list_available_tools", "process_query", "run", "search_available_tools"}

func names(tools map[string]json.RawMessage) []string { return slices.Sorted(maps.Keys(tools)) }

func TestOwnTools(t *testing.T) {
	r := start(t, func(o *app.Options) { o.Demo = true })
	for transport, dial := range transports {
		t.Run(transport, func(t *testing.T) {
			c := dial(t, r, "")
			tools := c.list()
			if got := names(tools); !slices.Equal(got, ownTools) {
				t.Fatalf("tools: got %v, want %v", got, ownTools)
			}
			for name, raw := range tools {
				var def struct {
					Description  string
					InputSchema  map[string]any
					OutputSchema map[string]any
				}
				if err := json.Unmarshal(raw, &def); err != nil || def.Description == "" || def.InputSchema["type"] != "object" || (def.OutputSchema == nil) != (name == "run") {
					t.Errorf("definition: got %s, want a description, an inputSchema and, but for run, an outputSchema", raw)
				}
			}
		})
	}
}

func TestRestrictedTools(t *testing.T) {
	r := start(t, func(o *app.Options) {
		o.Demo = true
		o.Config.Router.Tools = []string{router.ToolHealthCheck, router.ToolSearchTools}
	})
	c := r.dial("", nil)
	if got := names(c.list()); !slices.Equal(got, []string{"health_check", "search_available_tools"}) {
		t.Errorf("tools: got %v, want the two that are configured", got)
	}
	for _, tool := range []string{"process_query", "run", "list_available_tools"} {
		wantError(t, c.call(tool, `{"query":"q","tool":"calculate"}`, ""), -32602, "Unknown tool: "+tool, "")
	}
	if _, err := app.New(t.Context(), app.Options{Config: withTool("fly")}); err == nil || !strings.Contains(err.Error(), "fly") {
		t.Errorf("New with an unknown router tool: got %v, want an error that names it", err)
	}
}

// wantError fails the test unless the reply is this JSON-RPC error; data is raw JSON, empty for none.
func wantError(t *testing.T, r *reply, code int, message, data string) {
	t.Helper()
	var e struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
	if err := json.Unmarshal(r.Error, &e); err != nil || e.Code != code || !strings.Contains(e.Message, message) || string(e.Data) != data {
		t.Errorf("got result %.300s and error %s, want error %d with %q and data %s", r.Result, r.Error, code, message, data)
	}
}

func TestListAvailableTools(t *testing.T) {
	r := start(t, func(o *app.Options) {
		o.Demo = true
		o.Config.Servers = append(o.Config.Servers, downstream.ServerConfig{Name: "off", Type: "http", URL: "http://127.0.0.1:1", Disabled: true},
			server("down", "http://127.0.0.1:1/mcp"))
	})
	c := r.dial("", nil)
	var list struct{ Tools []router.ToolInfo }
	result := c.structured("list_available_tools", c.call("list_available_tools", `{}`, ""), &list)
	var got []string
	for _, tool := range list.Tools {
		got = append(got, tool.Server+"/"+tool.Name)
		if tool.Description == "" || tool.Schema[0] != '{' {
			t.Errorf("tool: got %+v, want a description and a schema", tool)
		}
	}
	if want := []string{"search/web_search", "calculator/calculate", "hr/query_hr", "email/send_email"}; !slices.Equal(got, want) {
		t.Errorf("tools: got %v, want %v", got, want)
	}
	want, err := json.MarshalIndent(compactTools(t, result.StructuredContent), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace(result.text()); got != string(want) {
		t.Errorf("text: got %s, want the array with an indent of 2: %s", got, want)
	}
	c.structured("list_available_tools", c.call("list_available_tools", `{"server":"hr"}`, ""), &list)
	if len(list.Tools) != 1 || list.Tools[0].Name != "query_hr" {
		t.Errorf("tools of hr: got %+v, want query_hr", list.Tools)
	}
	for arguments, want := range map[string]string{`{"server":"nope"}`: "server: Unknown server: nope", `{"server":1}`: "server", `{"server":"down"}`: "No server could be listed: down (unavailable"} {
		if got := c.refused("list_available_tools", arguments); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q in it", arguments, got, want)
		}
	}
}

func compactTools(t *testing.T, structured json.RawMessage) json.RawMessage {
	var v struct{ Tools json.RawMessage }
	if err := json.Unmarshal(structured, &v); err != nil {
		t.Fatal(err)
	}
	return v.Tools
}

func TestHealthCheck(t *testing.T) {
	p := newPeer(echoTool("echo"))
	r := start(t, func(o *app.Options) {
		model(o, scripted(t, "ok"))
		o.Config.Servers = append(o.Config.Servers, server("up", p.serve(t).URL), server("down", "http://127.0.0.1:1/mcp"),
			downstream.ServerConfig{Name: "off", Type: "http", URL: "http://127.0.0.1:1", Disabled: true})
	})
	c := r.dial("", nil)
	var h router.Health
	check := func(arguments string) *toolResult {
		h = router.Health{}
		return c.structured("health_check", c.call("health_check", arguments, ""), &h)
	}
	mcptest.Eventually(t, "the states", func() bool {
		check(`{}`)
		return h.Servers["up"].Status == downstream.StateConnected && h.Servers["down"].Status != downstream.StateConnecting
	})
	result := check(`{}`)
	var states map[string]string
	if err := json.Unmarshal([]byte(result.text()), &states); err != nil || !maps.Equal(states, map[string]string{"up": "connected", "down": "disconnected", "off": "disabled"}) {
		t.Errorf("text: got %s, want the state of each server", result.text())
	}
	if h.Status != "degraded" || h.Version != "1.2.3" || h.UptimeSeconds <= 0 || h.LLM.Planner == nil || h.LLM.Synthesizer == nil {
		t.Errorf("got %+v, want degraded, version 1.2.3 and the models", h)
	}
	up, down := h.Servers["up"], h.Servers["down"]
	if up.Transport != "http" || up.ProtocolVersion != "2025-06-18" || up.LastHealthy == nil || time.Since(*up.LastHealthy) > time.Minute || up.Breaker != "closed" || up.Sessions != 1 || up.InFlight != 0 {
		t.Errorf("up: got %+v, want a connected HTTP server", up)
	}
	for _, field := range []string{"protocol_version", "last_healthy", "last_error"} {
		if raw := jsonrpc.Get(jsonrpc.Get(jsonrpc.Get(result.StructuredContent, "servers"), "down"), field); raw == nil {
			t.Errorf("down: got no %s, want it in every state", field)
		}
	}
	if down.LastError == nil || down.LastError.Reason != "unavailable" || down.LastError.Message == "" {
		t.Errorf("down: got %+v, want the last error unavailable", down)
	}
	c.call("run", `{"tool":"up__echo"}`, "")
	if check(`{"server":"up"}`); h.Status != "healthy" || len(h.Servers) != 1 || h.Servers["up"].Tools != 1 || h.Servers["up"].Latency.P95 <= 0 {
		t.Errorf("up alone: got %+v, want healthy with one tool and a latency", h)
	}
	if check(`{"server":"down"}`); h.Status != "unhealthy" {
		t.Errorf("down alone: got %s, want unhealthy", h.Status)
	}
	if check(`{"server":"off"}`); h.Status != "healthy" {
		t.Errorf("a disabled server alone: got %s, want healthy", h.Status)
	}
	for arguments, want := range map[string]string{`{"server":"nope"}`: "server: Unknown server: nope", `{"server":[]}`: "server"} {
		if got := c.refused("health_check", arguments); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q in it", arguments, got, want)
		}
	}
	if pings := len(p.received("tools/list")); pings > 1 {
		t.Errorf("tools/list at the server: got %d, want none for a health check", pings)
	}
}

// run passes everything through, byte for byte.
func TestRun(t *testing.T) {
	const big = `{"content":[{"type":"weird","x":9007199254740993},{"type":"text","text":"<&>"}],"structuredContent":{"b":1.50,"a":9007199254740993,"z":[ ]},"isError":%v,"_meta":{"k":[9007199254740993, "<"]},"unknown":{"f" : 1}}`
	const broken = `{"code":-31999,"message":"no <luck>","data":{"n":9007199254740993,"b":[ 1 ]}}`
	r, p := withPeer(t, nil, nil,
		peerTool{"whole", object, func(*peerCall) (string, string) { return fmt.Sprintf(big, false), "" }},
		peerTool{"wrong", object, func(*peerCall) (string, string) { return fmt.Sprintf(big, true), "" }},
		peerTool{"broken", object, func(*peerCall) (string, string) { return "", broken }},
		peerTool{"odd__name:x", object, func(*peerCall) (string, string) { return fmt.Sprintf(big, false), "" }},
		textTool("strict", `"inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`, "ran"))
	for transport, dial := range transports {
		t.Run(transport, func(t *testing.T) {
			c := dial(t, r, "")
			for _, row := range []struct{ tool, want string }{
				{"whole", fmt.Sprintf(big, false)}, {"peer__whole", fmt.Sprintf(big, false)}, {"peer:whole", fmt.Sprintf(big, false)},
				{"peer.whole", fmt.Sprintf(big, false)}, {"wrong", fmt.Sprintf(big, true)}, {"odd__name:x", fmt.Sprintf(big, false)},
				{"peer__odd__name:x", fmt.Sprintf(big, false)}, {"peer:odd__name:x", fmt.Sprintf(big, false)}, {"peer.odd__name:x", fmt.Sprintf(big, false)},
			} {
				before := len(p.calls())
				got := c.call("run", `{"tool":`+quote(row.tool)+`,"parameters":{"b":1,"a":9007199254740993,"s":"<\u00e9>","n": null}}`, `{"m":9007199254740993,"api_key":"secret","progressToken":"tok"}`)
				if string(got.Result) != row.want {
					t.Errorf("%s: got %s %s, want %s", row.tool, got.Result, got.Error, row.want)
					continue
				}
				params := perCall.ReplaceAllString(p.calls()[before], "")
				name := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(row.tool, "peer__"), "peer:"), "peer.")
				if want := `{"name":` + quote(name) + `,"arguments":{"b":1,"a":9007199254740993,"s":"<\u00e9>","n": null},"_meta":{"m":9007199254740993}}`; strings.Replace(params, `,}`, `}`, 1) != want {
					t.Errorf("%s: the server got %s, want %s and a token", row.tool, params, want)
				}
			}
			// Hidden tools are callable by their full names, with the same bytes.
			if got, want := c.call("peer__whole", `{"a":1}`, ""), fmt.Sprintf(big, false); string(got.Result) != want {
				t.Errorf("peer__whole: got %s %s, want %s", got.Result, got.Error, want)
			}
			if got := c.call("run", `{"tool":"broken"}`, ""); string(got.Error) != broken {
				t.Errorf("broken: got %s, want %s", got.Error, broken)
			}
			for _, name := range []string{"nope", "peer__nope", "nope__echo", "nope:x", "peer.nope", "", " "} {
				reply := c.call("run", `{"tool":`+quote(name)+`}`, "")
				if name == "" {
					if result := c.result(reply); !result.IsError || !strings.Contains(result.text(), "tool") {
						t.Errorf("no tool: got %s, want isError that names tool", result.text())
					}
					continue
				}
				wantError(t, reply, -32602, "Unknown tool: "+name, "")
			}
			for _, name := range []string{"whole", "peer:whole", "peer.whole", "nope", "peer__nope", "nope__whole"} {
				wantError(t, c.call(name, `{}`, ""), -32602, "Unknown tool: "+name, "")
			}
			for arguments, want := range map[string]string{
				`{}`: "tool", `{"tool":7}`: "tool", `{"tool":null}`: "tool", `{"tool":"whole","parameters":[1]}`: "parameters",
				`{"tool":"whole","parameters":"{}"}`: "parameters", `{"tool":"whole","dry_run":"yes"}`: "dry_run",
			} {
				if got := c.refused("run", arguments); !strings.Contains(got, want) {
					t.Errorf("%s: got %q, want it to name %s", arguments, got, want)
				}
			}
			before := len(p.calls())
			for parameters, valid := range map[string]bool{`{"n":1}`: true, `{"n":"x"}`: false, `{}`: false} {
				var said struct {
					Tool, Server, Error string
					Arguments           json.RawMessage
					Valid               bool
				}
				result := c.result(c.call("run", `{"tool":"peer:strict","parameters":`+parameters+`,"dry_run":true}`, ""))
				if err := json.Unmarshal(result.StructuredContent, &said); err != nil || said.Tool != "strict" || said.Server != "peer" || string(said.Arguments) != parameters || said.Valid != valid || (said.Error == "") != valid {
					t.Errorf("dry run with %s: got %s, want what would be called and valid %v", parameters, result.StructuredContent, valid)
				}
			}
			if got := len(p.calls()) - before; got != 0 {
				t.Errorf("dry runs: got %d calls, want none", got)
			}
			c.wantNoStray()
		})
	}
}

// Equal bare names of two servers are handled as configured.
func TestNameConflicts(t *testing.T) {
	for _, row := range []struct {
		policy  string
		listed  []string
		results map[string]string // by name for run; "" = an error
	}{
		{catalog.ConflictNamespace, []string{"a.same", "only", "b.same"}, map[string]string{"a.same": "A", "b.same": "B", "a__same": "A", "b:same": "B", "same": "", "only": "O"}},
		{catalog.ConflictLastWins, []string{"a.same", "only", "same"}, map[string]string{"a.same": "A", "b.same": "B", "a__same": "A", "b:same": "B", "same": "B", "only": "O"}},
	} {
		t.Run(row.policy, func(t *testing.T) {
			a, b := newPeer(textTool("same", object, "A"), textTool("only", object, "O")), newPeer(textTool("same", object, "B"))
			r := start(t, func(o *app.Options) {
				o.Config.NameConflicts = row.policy
				o.Config.Servers = append(o.Config.Servers, server("a", a.serve(t).URL), server("b", b.serve(t).URL))
			})
			c := r.dial("", nil)
			var list struct{ Tools []router.ToolInfo }
			c.structured("list_available_tools", c.call("list_available_tools", `{}`, ""), &list)
			var listed []string
			for _, tool := range list.Tools {
				listed = append(listed, tool.Name)
			}
			if !slices.Equal(listed, row.listed) {
				t.Errorf("listed: got %v, want %v", listed, row.listed)
			}
			for name, want := range row.results {
				reply := c.call("run", `{"tool":`+quote(name)+`}`, "")
				if want == "" {
					wantError(t, reply, -32602, name, "")
				} else if got := c.result(reply).text(); got != want {
					t.Errorf("run %s: got %s, want %s", name, got, want)
				}
			}
		})
	}
	t.Run(catalog.ConflictError, func(t *testing.T) {
		a, b := newPeer(textTool("same", object, "A")), newPeer(textTool("same", object, "B"))
		r := prepare(t, func(o *app.Options) {
			o.Config.NameConflicts = catalog.ConflictError
			o.Config.Servers = append(o.Config.Servers, server("a", a.serve(t).URL), server("b", b.serve(t).URL))
		})
		err := r.Listen(t.Context())
		if err == nil || !strings.Contains(err.Error(), "same") || !strings.Contains(err.Error(), "a and b") {
			t.Errorf("Listen: got %v, want an error that names the tool and its servers", err)
		}
	})
	t.Run("unreachable server", func(t *testing.T) {
		a := newPeer(textTool("same", object, "A"))
		r := start(t, func(o *app.Options) {
			o.Config.NameConflicts = catalog.ConflictError
			o.Config.Servers = append(o.Config.Servers, server("a", a.serve(t).URL), server("b", "http://127.0.0.1:1/"))
		})
		if got := r.dial("", nil).result(r.dial("", nil).call("run", `{"tool":"same"}`, "")).text(); got != "A" {
			t.Errorf("run same: got %s, want A", got)
		}
		if !strings.Contains(r.logs.String(), `"level":"WARN"`) {
			t.Error("log: got no warning about the server that cannot be reached, want one")
		}
	})
}

package app_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
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

// run passes everything through, byte for byte.
func TestRun(t *testing.T) {
	const big = `{"content":[{"type":"weird","x":9007199254740993},{"type":"text","text":"<&>"}],"structuredContent":{"b":1.50,"a":9007199254740993,"z":[ ]},"isError":%v,"_meta":{"k":[9007199254740993, "<"]},"unknown":{"f" : 1}}`
	const broken = `{"code":-31999,"message":"no <luck>","data":{"n":9007199254740993,"b":[ 1 ]}}`
	r, p := withPeer(t, nil, nil,
		peerTool{"whole", object, func(*peerCall) (string, string) { return fmt.Sprintf(big, false), "" }},
		peerTool{"wrong", object, func(*peerCall) (string, string) { return fmt.Sprintf(big, true), "" }},
		peerTool{"broken", object, func(*peerCall) (string, string) { return "", broken }},
		peerTool{"odd__name:x", object, func(*peerCall) (string, string) { return fmt.Sprintf(big, false), "" }})
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
			wantError(t, c.call("run", `{"tool":"peer__nope"}`, ""), -32602, "Unknown tool: peer__nope", "")
			c.wantNoStray()
		})
	}
}

// Equal bare names of two servers are an error at the start if configured so, unless a server is out of reach.
func TestNameConflicts(t *testing.T) {
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

package app_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/router"
)

func searched(t *testing.T) (*running, *peer) {
	return withPeer(t, nil, nil,
		textTool("read_file", `"title":"R","description":"Read a file from disk","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}},"x":9007199254740993`, "contents"),
		textTool("send_mail", `"description":"Send an e-mail message",`+object, "sent"),
		textTool("weather", `"description":"Weather forecast of a city",`+object, "sunny"))
}

// On every transport the answer to a search is list_changed and then the response; the tools found are
// listed from then on, for this session alone, until the next search.
func TestSearch(t *testing.T) {
	r, _ := searched(t)
	other := r.dial("", nil)
	for transport, dial := range transports {
		t.Run(transport, func(t *testing.T) {
			c := dial(t, r, "")
			search := func(arguments string) (*reply, []string) {
				t.Helper()
				reply := c.call("search_available_tools", arguments, "")
				var found struct{ Tools []router.FoundTool }
				c.structured("search_available_tools", reply, &found)
				var names []string
				for _, f := range found.Tools {
					names = append(names, f.Name)
					if f.Server != "peer" || f.Description == "" || f.InputSchema[0] != '{' || f.Score <= 0 {
						t.Errorf("found: got %+v, want server, description, schema and score", f)
					}
				}
				return reply, names
			}
			listed := func() []string {
				return slices.DeleteFunc(names(c.list()), func(name string) bool { return slices.Contains(ownTools, name) })
			}
			changed := func(reply *reply) {
				t.Helper()
				var notes []message
				if notes = reply.notes; transport != "http" {
					notes = nil
					for len(c.loose) > 0 {
						notes = append(notes, <-c.loose)
					}
				}
				if len(notes) != 1 || notes[0].Raw != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` {
					t.Errorf("before the response: got %v, want list_changed without params, once", notes)
				}
			}
			if got := listed(); len(got) > 0 {
				t.Errorf("listed before a search: got %v, want none", got)
			}
			reply, found := search(`{"query":"read a file"}`)
			changed(reply)
			if !slices.Equal(found, []string{"peer__read_file"}) || !slices.Equal(listed(), found) {
				t.Errorf("got %v found and %v listed, want peer__read_file", found, listed())
			}
			result := c.result(reply)
			if want := "Found 1 tools matching 'read a file': "; !strings.HasPrefix(result.text(), want) {
				t.Errorf("text: got %q, want %q at its start", result.text(), want)
			}
			var flag struct {
				IsError *bool `json:"is_error"`
			}
			if err := json.Unmarshal(reply.Result, &flag); err != nil || flag.IsError == nil || *flag.IsError {
				t.Errorf("result: got %s, want is_error false in it", reply.Result)
			}
			if def := string(c.list()["peer__read_file"]); !strings.Contains(def, `"x":9007199254740993`) || !strings.Contains(def, `"title":"R"`) {
				t.Errorf("definition: got %s, want it as its server wrote it", def)
			}
			if got := c.result(c.call("peer__read_file", `{}`, "")).text(); got != "contents" {
				t.Errorf("peer__read_file: got %s, want contents", got)
			}

			reply, found = search(`{"query":"weather forecast"}`)
			changed(reply)
			if !slices.Equal(found, []string{"peer__weather"}) || !slices.Equal(listed(), found) {
				t.Errorf("next search: got %v found and %v listed, want peer__weather alone", found, listed())
			}
			if got := c.result(c.call("peer__read_file", `{}`, "")).text(); got != "contents" {
				t.Errorf("a tool that is hidden again: got %s, want contents", got)
			}

			reply, found = search(`{"query":"xylophone"}`)
			if text := c.result(reply).text(); len(found) != 0 || !strings.HasPrefix(text, "No tools found matching 'xylophone'") {
				t.Errorf("no match: got %v and %q, want no tools", found, text)
			}
			if !slices.Equal(listed(), []string{"peer__weather"}) {
				t.Errorf("listed after no match: got %v, want the set before", listed())
			}
			for len(c.loose) > 0 {
				<-c.loose
			}
			for _, arguments := range []string{`{}`, `{"query":""}`, `{"query":"  "}`, `{"query":7}`, `{"query":null}`} {
				reply := c.call("search_available_tools", arguments, "")
				if result := c.result(reply); !result.IsError || !strings.Contains(result.text(), "query") || len(reply.notes)+len(c.loose) > 0 {
					t.Errorf("%s: got %s and %d notifications, want one error result that names query", arguments, reply.Result, len(reply.notes)+len(c.loose))
				}
			}
			for _, arguments := range []string{`{"query":"a","limit":0}`, `{"query":"a","limit":"x"}`, `{"query":"a","limit":1.5}`} {
				if got := c.refused("search_available_tools", arguments); !strings.Contains(got, "limit") {
					t.Errorf("%s: got %q, want it to name limit", arguments, got)
				}
			}
			if _, found = search(`{"query":"file mail weather","limit":2}`); len(found) != 2 {
				t.Errorf("limit 2: got %v, want 2 tools", found)
			}
			if got := names(other.list()); !slices.Equal(got, ownTools) {
				t.Errorf("another session: got %v, want the router's own tools alone", got)
			}
		})
	}
}

// The POST that searches answers with a stream of two events, whether or not the client names its session.
func TestSearchStream(t *testing.T) {
	r, _ := searched(t)
	body := `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"search_available_tools","arguments":{"query":"send mail"}}}`
	for _, accept := range []string{"", "application/json, text/event-stream", "*/*"} {
		header := map[string]string{}
		if accept != "" {
			header["Accept"] = accept
		}
		resp, text := r.raw("POST", "/mcp", body, header)
		for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("Accept %q: %s: got %q, want %q", accept, name, got, want)
			}
		}
		events := strings.Split(strings.TrimSuffix(text, "\n\n"), "\n\n")
		if len(events) != 2 || events[0] != "event: message\ndata: "+`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` || !strings.HasPrefix(events[1], "event: message\ndata: "+`{"jsonrpc":"2.0","id":"x","result":{`) {
			t.Errorf("Accept %q: got %q, want list_changed and then the response", accept, text)
		}
	}
	// Callers without a session share what was found, by their address.
	if _, text := r.raw("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil); !strings.Contains(text, `"peer__send_mail"`) {
		t.Errorf("tools/list without a session: got %s, want peer__send_mail in it", text)
	}
	resp, text := r.raw("POST", "/mcp", body, map[string]string{"Accept": "application/json"})
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") || !strings.Contains(text, `"is_error":false`) {
		t.Errorf("a client that takes no stream: got %s %s, want the response as JSON", resp.Header.Get("Content-Type"), text)
	}
}

// What a caller found with a key stays with the key.
func TestSearchByKey(t *testing.T) {
	p := newPeer(textTool("weather", `"description":"Weather forecast of a city",`+object, "sunny"))
	r := start(t, func(o *app.Options) {
		o.Config.Auth.APIKeys = keys("one", "two")
		o.Config.Servers = append(o.Config.Servers, server("peer", p.serve(t).URL))
	})
	for i, key := range []string{"one", "two"} {
		header := map[string]string{"X-API-Key": key}
		if i == 0 {
			r.raw("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_available_tools","arguments":{"query":"weather"}}}`, header)
		}
		_, text := r.raw("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, header)
		if got, want := strings.Contains(text, "peer__weather"), i == 0; got != want {
			t.Errorf("key %s: peer__weather listed: got %v, want %v", key, got, want)
		}
	}
}

// The limit of names holds on every surface: a tool is called by the name that it is listed under elsewhere.
func TestNameLimit(t *testing.T) {
	long := "summarize_the_quarterly_report_of_a_department_for_its_head"
	r, _ := withPeer(t, nil, nil, textTool(long, object, "done"))
	c := r.dial("", nil)
	c.result(c.call("search_available_tools", `{"query":"summarize a report"}`, ""))
	listed := names(c.list())
	i := slices.IndexFunc(listed, func(name string) bool { return strings.HasPrefix(name, "peer__") })
	if i < 0 || len(listed[i]) != 46 {
		t.Fatalf("listed: got %q, want a name of 46 characters", listed)
	}
	for _, call := range []*reply{c.call(listed[i], `{}`, ""), c.call("run", `{"tool":"`+listed[i]+`"}`, "")} {
		if got := c.result(call).text(); got != "done" {
			t.Errorf("%s: got %s, want done", listed[i], got)
		}
	}
}

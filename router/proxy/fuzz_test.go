package proxy_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/proxy"
)

var (
	serverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*(_[A-Za-z0-9-]+)*$`)
	listable   = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
)

// neighbours are other servers, whose names are easily taken for one another's.
var neighbours = []string{"hr", "my_server", "my-server", "2x", "x2x", "HR2"}

// FuzzNames checks that every tool is listed under a name that clients accept and that leads back to it, and
// every resource under a URI that leads back to it.
func FuzzNames(f *testing.F) {
	for _, seed := range [][2]string{
		{"hr", "get_employee"}, {"everything", "trigger-long-running-operation"}, {"hr", "file:///data/a b.txt"},
		{"my_server", "demo://resource/static/document/architecture.md"}, {"2x", "x2x+test://template/{id}/data"},
		{"a", "_b__c:d.e"}, {"memory", "ünïcode"}, {"hr", "+file:///x"}, {"x2x", "urn:isbn:0451450523"},
	} {
		f.Add(seed[0], seed[1], 46, false)
		f.Add(seed[0], seed[1], 8, true)
	}
	f.Fuzz(func(t *testing.T, server, own string, limit int, scheme bool) {
		if !serverName.MatchString(server) || own == "" || limit < 8 && limit != 0 {
			t.Skip("no configuration has that")
		}
		c := proxy.Config{NameLimit: limit}
		if scheme {
			c.ResourceNames = proxy.ResourceScheme
		}
		n := proxy.NewNaming(c, append([]string{server}, neighbours...))

		full := catalog.FullName(server, own)
		if s, tool, ok := catalog.SplitFull(full); !ok || s != server || tool != own {
			t.Errorf("%q: got server %q and tool %q, %t, want %q and %q", full, s, tool, ok, server, own)
		}
		listed, found := n.Name(server, own)
		if !listable.MatchString(listed) || limit > 0 && len(listed) > limit {
			t.Errorf("%q: listed as %q, want only listable characters, %d at most", full, listed, limit)
		}
		if listed != full && !found {
			t.Errorf("%q: its alias %q is not looked for at %s", full, listed, server)
		}
		if again, _ := n.Name(server, own); again != listed {
			t.Errorf("%q: listed as %q and as %q", full, listed, again)
		}
		uri := n.URI(server, own)
		if s, u, ok := n.Split(uri); !ok || s != server || u != own {
			t.Errorf("%q: got server %q and %q, %t, want %q and %q", uri, s, u, ok, server, own)
		}
	})
}

// FuzzRewrite checks that renaming the URIs in a result leaves it JSON, and that all else keeps its value.
func FuzzRewrite(f *testing.F) {
	for method, result := range map[string]string{
		"tools/call":     `{"content":[{"type":"text","text":"uri"},{"type":"resource_link","uri":"file:///a","name":"a"},{"type":"resource","resource":{"uri":"demo://1","text":"x"}}],"isError":false}`,
		"prompts/get":    `{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"demo://\u00e9","mimeType":"text/plain","blob":"YQ=="}}}]}`,
		"resources/read": `{"contents":[{"uri":"file:///x","text":"{\"uri\":\"no\"}"},{"\u0075ri":"file:///y"},{"uri":7}],"_meta":{"n":9007199254740993}}`,
	} {
		f.Add(method, []byte(result))
	}
	n := proxy.NewNaming(proxy.Config{}, []string{"hr"})
	f.Fuzz(func(t *testing.T, method string, result []byte) {
		if jsonrpc.Valid(result) != nil || len(result) == 0 || result[0] != '{' {
			t.Skip("no result is that")
		}
		out := n.Rewrite("hr", method, result)
		if err := jsonrpc.Valid(out); err != nil {
			t.Fatalf("%s: got %s, which is no JSON: %v", result, out, err)
		}
		var before, after any
		if json.Unmarshal(result, &before) != nil || json.Unmarshal(out, &after) != nil {
			t.Skip("deeper than this check can read")
		}
		if !equalButURIs(before, after) {
			t.Errorf("got %s, want %s with other URIs", out, result)
		}
	})
}

// equalButURIs compares two JSON values and passes over the strings of members called uri.
func equalButURIs(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, value := range a {
			other, ok := b[name]
			_, text := value.(string)
			if !ok || !(name == "uri" && text) && !equalButURIs(value, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equalButURIs(a[i], b[i]) {
				return false
			}
		}
		return true
	}
	return a == b
}

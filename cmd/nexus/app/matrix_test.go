package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/bearer/bearertest"
)

var updateMatrix = flag.Bool("update", false, "rewrite the golden files")

// credential is what a client shows.
type credential struct {
	name   string
	header map[string]string
	meta   string // _meta.api_key
}

// wardrobe is a server that has everything and answers every method.
func wardrobe(t *testing.T) *peer {
	p := newPeer(textTool("get", object, "got"), textTool("put", object, "put"))
	p.OnMessage = func(ctx context.Context, m message, send func(raw string)) bool {
		results := map[string]string{
			"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"resources":{"subscribe":true},"completions":{},` +
				`"logging":{}},"serverInfo":{"name":"wardrobe","version":"1"}}`,
			"prompts/list":             `{"prompts":[{"name":"open"},{"name":"secret"}]}`,
			"resources/list":           `{"resources":[{"uri":"doc:///pub/x","name":"x"},{"uri":"doc:///key","name":"k"}]}`,
			"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"doc:///pub/{n}","name":"t"}]}`,
			"prompts/get":              `{"messages":[]}`, "resources/read": `{"contents":[]}`, "completion/complete": `{"completion":{"values":[]}}`,
			"logging/setLevel": `{}`, "acme/secret": `{"reached":true}`,
			"resources/subscribe": `{}`, "resources/unsubscribe": `{}`,
		}
		if m.Method == "Tools/Call" {
			t.Error("Tools/Call has reached a server")
		}
		if result, known := results[m.Method]; known {
			send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + `}`)
			return true
		}
		return p.handle(ctx, m, send)
	}
	return p
}

// Every path and method answers every credential as testdata/matrix.txt says. Run with -update to rewrite it, and read
// the difference.
func TestAccessMatrix(t *testing.T) {
	issuer := bearertest.New(t)
	hr, other := wardrobe(t), wardrobe(t)
	tools := auth.Filter{Allow: []string{"hr__get"}}
	r := start(t, func(o *app.Options) {
		o.Config.Servers = append(o.Config.Servers, server("hr", hr.serve(t).URL), server("other", other.serve(t).URL))
		withTokens(&o.Config, issuer)
		all := keys("all", "servers", "tools", "resources", "prompts", "ops")
		all[1].Servers = []string{"hr"}
		all[2].Tools, all[3].Tools, all[4].Tools = tools, tools, tools
		all[3].Resources.Allow, all[4].Prompts.Allow = []string{"hr__doc:///pub/*"}, []string{"hr__open"}
		all[5].Ops = true
		o.Config.Auth.APIKeys = all
		o.Config.Profiles = map[string]config.Profile{
			"small": {Servers: []string{"hr"}, Tools: tools, Surface: config.SurfaceProxy, Prompts: auth.AllowList{Allow: []string{"hr__open"}}},
		}
	})
	credentials := []credential{{name: "none"}, {name: "wrong", header: map[string]string{"X-API-Key": "nonsense"}}, {name: "wrong _meta", meta: "nonsense"},
		{name: "expired", header: bearer(issuer.Token(bearertest.Claims{"exp": 1}))},
		{name: "foreign", header: bearer(issuer.Token(bearertest.Claims{"aud": "https://elsewhere.example"}))},
		{name: "token", header: bearer(issuer.Token(nil))}, {name: "all in _meta", meta: "all"}}
	for _, key := range []string{"all", "ops", "servers", "tools", "resources", "prompts"} {
		credentials = append(credentials, credential{name: key, header: bearer(key)})
	}
	const strangers = 5 // the first credentials, which give no access
	var table strings.Builder
	last := ""
	row := func(title string, answer func(c credential) string) {
		fmt.Fprintf(&table, "%s\n", title)
		plain := func(c credential) string { return strings.ReplaceAll(answer(c), issuer.URL, "ISSUER") }
		outside := answersOf(credentials[:strangers], plain)
		if outside == last {
			outside = "    no access: as above\n"
		} else {
			last = outside
		}
		table.WriteString(outside + answersOf(credentials[strangers:], plain))
	}
	for _, path := range []string{"GET /", "GET /livez", "GET /readyz", "GET /healthz", "GET /metrics", "GET /ui/", "GET /ui/api/now", "POST /ui/mcp",
		"GET /sse", "GET /proxy/sse", "POST /messages/?session_id=x", "POST /proxy/messages/", "GET /mcp", "DELETE /mcp", "GET /proxy/mcp",
		"DELETE /servers/hr/mcp", "GET /profiles/small/mcp", "POST /profiles/none/mcp", "GET /.well-known/oauth-protected-resource", "GET /nothing"} {
		method, target, _ := strings.Cut(path, " ")
		row(path, func(c credential) string {
			body := ""
			if method == "POST" {
				body = framed("tools/list", `{}`, c.meta)
			}
			return r.brief(method, target, body, c.header)
		})
	}
	const ref = `{"ref":{"type":"ref/prompt","name":%q},"argument":{"name":"a","value":"b"}}`
	for _, path := range []string{"/mcp", "/proxy/mcp", "/servers/hr/mcp", "/servers/other/mcp", "/profiles/small/mcp"} {
		prefix := "hr__"
		if strings.HasPrefix(path, "/servers/") {
			prefix = ""
		}
		for _, m := range [][2]string{
			{"initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`},
			{"notifications/initialized", `{}`}, {"notifications/acme", `{}`},
			{"ping", `{}`}, {"server/discover", `{}`}, {"tools/list", `{}`},
			{"tools/call", `{"name":"` + prefix + `get","arguments":{}}`}, {"tools/call", `{"name":"` + prefix + `put","arguments":{}}`},
			{"tools/call", `{"name":"run","arguments":{"tool":"hr__put"}}`}, {"tools/call", `{"name":"list_available_tools","arguments":{}}`},
			{"prompts/list", `{}`}, {"prompts/get", `{"name":"` + prefix + `open"}`}, {"prompts/get", `{"name":"` + prefix + `secret"}`},
			{"resources/list", `{}`}, {"resources/templates/list", `{}`},
			{"resources/read", `{"uri":"` + prefix + `doc:///pub/x"}`}, {"resources/read", `{"uri":"` + prefix + `doc:///key"}`},
			{"resources/subscribe", `{"uri":"` + prefix + `doc:///key"}`}, {"completion/complete", fmt.Sprintf(ref, prefix+"secret")},
			{"logging/setLevel", `{"level":"info"}`}, {"tasks/list", `{}`}, {"acme/secret", `{}`}, {"Tools/Call", `{"name":"` + prefix + `put"}`},
		} {
			row("POST "+path+" "+m[0]+" "+m[1], func(c credential) string { return r.brief("POST", path, framed(m[0], m[1], c.meta), c.header) })
		}
		row("POST "+path+" batch of prompts/list and acme/secret", func(c credential) string {
			return r.brief("POST", path, "["+framed("prompts/list", `{}`, c.meta)+","+
				strings.Replace(framed("acme/secret", `{}`, c.meta), `"id":1`, `"id":2`, 1)+"]", c.header)
		})
	}
	r.raw("POST", "/mcp", framed("tools/call", `{"name":"process_query","arguments":{"query":"get it","plan":[{"tool":"hr__get","arguments":{}}]}}`, ""), bearer("all"))
	row("series of GET /metrics", func(c credential) string { return r.series(c.header) })
	const file = "testdata/matrix.txt"
	if *updateMatrix {
		if err := os.WriteFile(file, []byte(table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(table.String(), "\n")
	for i, line := range strings.Split(string(want), "\n") {
		if i >= len(got) || got[i] != line {
			t.Fatalf("%s:%d: got %q, want %q", file, i+1, strings.Join(got[min(i, len(got)):min(i+3, len(got))], "\n"), line)
		}
	}
}

// answersOf returns a line for each answer: whose it is, and what it is.
func answersOf(credentials []credential, answer func(c credential) string) string {
	var answers []string
	who := map[string][]string{}
	for _, c := range credentials {
		got := answer(c)
		if who[got] == nil {
			answers = append(answers, got)
		}
		who[got] = append(who[got], c.name)
	}
	var lines strings.Builder
	for _, got := range answers {
		names := strings.Join(who[got], ", ")
		if len(who[got]) == len(credentials) {
			names = "all of them"
		}
		fmt.Fprintf(&lines, "    %s: %s\n", names, got)
	}
	return lines.String()
}

// framed returns a message of a method, with a key in _meta unless it is empty.
func framed(method, params, key string) string {
	if key != "" {
		params = `{"_meta":{"api_key":` + quote(key) + `},` + strings.TrimPrefix(params, "{")
		params = strings.Replace(params, ",}", "}", 1)
	}
	id := `"id":1,`
	if strings.HasPrefix(method, "notifications/") {
		id = ""
	}
	return `{"jsonrpc":"2.0",` + id + `"method":` + quote(method) + `,"params":` + params + `}`
}

// brief sends a request and returns the status and what is essential in the answer.
func (r *running) brief(method, path, body string, header map[string]string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	status := fmt.Sprint(resp.StatusCode)
	if resp.StatusCode == http.StatusUnauthorized && resp.Header.Get("WWW-Authenticate") == "" {
		status += " without WWW-Authenticate"
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		text := ""
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && data != "" {
				text = data
				break
			}
		}
		if method == "GET" {
			path, _, _ := strings.Cut(text, "=")
			return status + " stream: " + path
		}
		return status + " " + essence([]byte(text))
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	if kind := resp.Header.Get("Content-Type"); len(raw) > 0 && !strings.HasPrefix(kind, "application/json") && !strings.HasPrefix(kind, "text/plain") ||
		len(raw) > 300 && method == "GET" {
		return status + " " + kind
	}
	return strings.TrimSpace(status + " " + essence(raw))
}

// series returns the status of /metrics and which of some series it has.
func (r *running) series(header map[string]string) string {
	r.t.Helper()
	resp, text := r.raw("GET", "/metrics", "", header)
	seen := []string{}
	for _, series := range []string{`nexus_server_up{server="hr"}`, `nexus_server_up{server="other"}`, "nexus_sessions", "nexus_queue_wait_seconds_count",
		"mcp_server_operation_duration_seconds_count", "mcp_client_operation_duration_seconds_count", "nexus_query_duration_seconds_count", "go_goroutines"} {
		if strings.Contains(text, "\n"+series) {
			seen = append(seen, series)
		}
	}
	return fmt.Sprintf("%d %v", resp.StatusCode, seen)
}

// essence returns an error with its code, the names in a list, or the whole of a small answer.
func essence(raw []byte) string {
	var batch []json.RawMessage
	if json.Unmarshal(raw, &batch) == nil {
		var all []string
		for _, m := range batch {
			all = append(all, essence(m))
		}
		slices.Sort(all)
		return strings.Join(all, " + ")
	}
	var m struct {
		Result map[string]json.RawMessage
		Error  *struct {
			Code    int
			Message string
		}
	}
	if json.Unmarshal(raw, &m) != nil || m.Result == nil && m.Error == nil {
		return strings.Join(strings.Fields(string(raw)), " ")
	}
	if m.Error != nil {
		return fmt.Sprintf("error %d %s", m.Error.Code, m.Error.Message)
	}
	for _, list := range []struct{ member, name string }{{"tools", "name"}, {"prompts", "name"}, {"resources", "uri"}, {"resourceTemplates", "uriTemplate"}} {
		if items, ok := m.Result[list.member]; ok {
			return list.member + ": " + namesIn(items, list.name)
		}
	}
	if m.Result["capabilities"] != nil {
		return "capabilities " + string(m.Result["capabilities"])
	}
	if structured := m.Result["structuredContent"]; structured != nil {
		var content struct{ Tools json.RawMessage }
		if json.Unmarshal(structured, &content) == nil && content.Tools != nil {
			return "structured tools: " + namesIn(content.Tools, "name")
		}
	}
	text, _ := json.Marshal(m.Result) // it was decoded
	return string(text)
}

func namesIn(items json.RawMessage, member string) string {
	var list []map[string]any
	_ = json.Unmarshal(items, &list)
	names := []string{}
	for _, item := range list {
		names = append(names, fmt.Sprint(item[member]))
	}
	return "[" + strings.Join(names, " ") + "]"
}

package tests

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// eraPair is a client and a server, each of one protocol version, with the router between them.
type eraPair struct {
	t       *testing.T
	ctx     context.Context
	client  *mcptest.Client
	server  *mcptest.Server
	restart func()
	of      string // prefix of the server's names for the client
}

// awaits reports whether something happens before ctx ends.
func (p *eraPair) awaits(happens func() bool) bool {
	for ; !happens(); time.Sleep(time.Millisecond) {
		if p.ctx.Err() != nil {
			return false
		}
	}
	return true
}

// hears reports whether the client hears of an announcement before ctx ends. It is made again from time to time, because
// the router may not listen yet.
func (p *eraPair) hears(method, part string, announce func()) bool {
	last := time.Time{}
	return p.awaits(func() bool {
		if time.Since(last) > 100*time.Millisecond {
			last = time.Now()
			announce()
		}
		return p.client.Heard(method, part)
	})
}

// try tries a feature. What is not expected to work gets little time.
func (p *eraPair) try(f feature, fails bool) bool {
	limit := mcptest.Patience
	if fails {
		limit = 300 * time.Millisecond
	}
	var end context.CancelFunc
	p.ctx, end = context.WithTimeout(p.t.Context(), limit)
	defer end()
	return f.works(p)
}

// call calls a tool. meta is raw members of _meta.
func (p *eraPair) call(tool, arguments, meta string) mcptest.Reply {
	return p.client.Do(p.ctx, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s,"vendor":{"b":1,"a":2},"_meta":{%s}}`, p.of+tool, arguments, meta))
}

// echoed reports whether the server gets what the client sends, and the client what the server adds to its result.
func (p *eraPair) echoed(sent, added string) bool {
	r := p.call("echo", `{"n":9007199254740993}`, `"example.com/ask":1`)
	return strings.Contains(r.Text(), sent) && strings.Contains(string(r.Result), added)
}

// asked reports whether the server gets the client's answer to a request.
func (p *eraPair) asked(method, params string) bool {
	r := p.call("ask", fmt.Sprintf(`{"method":%q,"params":%s}`, method, params), "")
	return r.Text() == answers[method]
}

// answers are the results for requests of servers.
var answers = map[string]string{
	"elicitation/create":     `{"action":"accept","content":{"name":"Ann"}}`,
	"sampling/createMessage": `{"role":"assistant","content":{"type":"text","text":"hi"},"model":"m"}`,
	"roots/list":             `{"roots":[{"uri":"file:///home"}]}`,
}

// feature is something that a client and a server do together.
type feature struct {
	name, about string
	works       func(p *eraPair) bool
	since       protocol.Version // the first version that has it; empty = all have it
}

var features = []feature{
	{name: "lists", about: "The client lists the tools of the server.", works: func(p *eraPair) bool {
		r := p.client.Do(p.ctx, "tools/list", "{}")
		return strings.Contains(string(r.Result), `"name":"`+p.of+`echo"`)
	}},
	{name: "calls", about: "The client calls a tool.", works: func(p *eraPair) bool { return p.echoed(`"arguments":{`, `"content":[`) }},
	{name: "progress", about: "The server reports the progress of a call.", works: func(p *eraPair) bool {
		r := p.call("slow", `{"key":"k","ms":1}`, `"progressToken":"p"`)
		return r.Outcome() == "result" && p.client.Heard("notifications/progress", `"progressToken":"p"`)
	}},
	{name: "cancelling", about: "The client cancels a call, and the server learns of it.", works: (*eraPair).cancels},
	{name: "big integers", about: "Integers beyond 2^53 arrive as they are, in both directions.", works: func(p *eraPair) bool {
		return p.echoed(`{"n":9007199254740993}`, `{"b":9007199254740993`)
	}},
	{name: "unknown members", about: "Members that no version has arrive as they are, in both directions.", works: func(p *eraPair) bool {
		return p.echoed(`"vendor":{"b":1,"a":2}`, mcptest.Vendor)
	}},
	{name: "`_meta`", about: "Members of `_meta` arrive as they are, in both directions.", works: func(p *eraPair) bool {
		return p.echoed(`"example.com/ask":1`, `"example.com/answer":1`)
	}},
	{name: "elicitation", about: "The server asks the user during a call.", since: protocol.V20250618, works: func(p *eraPair) bool {
		return p.asked("elicitation/create", `{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`)
	}},
	{name: "sampling", about: "The server asks the client's model during a call.", works: func(p *eraPair) bool {
		return p.asked("sampling/createMessage", `{"messages":[{"role":"user","content":{"type":"text","text":"Hi"}}],"maxTokens":9}`)
	}},
	{name: "roots", about: "The server asks for the client's roots during a call.", works: func(p *eraPair) bool { return p.asked("roots/list", `{}`) }},
	{name: "resource updates", about: "The server announces a change of a resource to which the client has subscribed.", works: func(p *eraPair) bool {
		if p.client.Version != mcptest.Modern { // it has subscribed where it listens
			p.client.Do(p.ctx, "resources/subscribe", fmt.Sprintf(`{"uri":%q}`, p.of+mcptest.Resource))
		}
		return p.hears("notifications/resources/updated", mcptest.Resource, p.server.Update)
	}},
	{name: "changes of lists", about: "The server announces a change of its tools.", works: func(p *eraPair) bool {
		return p.hears("notifications/tools/list_changed", "", func() { p.server.SetTools("") })
	}},
	{name: "log messages", about: "The server sends a log message of the level that the client has asked for.", works: func(p *eraPair) bool {
		level := `"io.modelcontextprotocol/logLevel":"debug"`
		if p.client.Version != mcptest.Modern {
			level = ""
			p.client.Do(p.ctx, "logging/setLevel", `{"level":"debug"}`)
		}
		p.call("log", `{}`, level)
		return p.client.Heard("notifications/message", `"logged"`)
	}},
	{name: "tasks", about: "A call becomes a task, which the client polls and whose form it answers.", since: protocol.V20260728, works: func(p *eraPair) bool {
		task, err := p.client.Begin(p.ctx, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":{}}`, p.of+"confirm_delete"))
		if err == nil {
			task, err = mcptest.Await(p.ctx, p.client, task.ID)
		}
		return err == nil && strings.Contains(string(task.Result), "Ann")
	}},
	{name: "restarts", about: "The server restarts, and the client's next call is answered as if it had not.", works: func(p *eraPair) bool {
		p.restart()
		return p.echoed(`"arguments":{`, `"content":[`)
	}},
}

func (p *eraPair) cancels() bool {
	before := p.server.Cancelled()
	key := p.client.Version + " " + p.server.Version
	ctx, hangUp := context.WithCancel(p.ctx)
	defer hangUp()
	over := make(chan struct{})
	go func() {
		defer close(over)
		p.client.DoAs(ctx, `"long"`, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":{"key":%q,"ms":60000}}`, p.of+"wait", key))
	}()
	begun := p.awaits(func() bool {
		writes, err := p.server.Ledger.Writes()
		return err == nil && writes[mcptest.Begun(key)] > 0
	})
	if p.client.Version == mcptest.Modern {
		hangUp()
	} else if err := p.client.Notify(p.ctx, "notifications/cancelled", `{"requestId":"long"}`); err != nil {
		p.t.Error(err)
	}
	cancelled := p.awaits(func() bool { return p.server.Cancelled() > before })
	hangUp()
	<-over
	return begun && cancelled
}

// fault is something that does not work yet between some versions.
type fault struct {
	feature          string
	clients, servers []protocol.Version
	why              string
}

var faults []fault

// TestCompatibility lets clients of each version work with servers of each, and checks docs/compatibility.md, which says
// what works. Run with -update to rewrite it. What a fault names must fail.
func TestCompatibility(t *testing.T) {
	t.Parallel()
	versions := protocol.Versions()
	servers, config := map[protocol.Version]*eraPair{}, ""
	for _, version := range versions {
		s := &mcptest.Server{Version: string(version), Ledger: mcptest.Ledger{Path: filepath.Join(t.TempDir(), "ledger")}}
		h := httptest.NewServer(s)
		defer h.Close()
		defer h.CloseClientConnections()
		url := h.URL
		if version == protocol.V20241105 {
			url += "/sse"
		}
		config += fmt.Sprintf(", %q: {url: %q}", version, url)
		servers[version] = &eraPair{server: s, restart: func() { s.Forget(); h.CloseClientConnections() }}
	}
	r := serve(t, "mcpServers: {"+config[2:]+"}")
	last := len(features) - 1 // a server that has just restarted is left out of lists
	for _, some := range [][]feature{features[:last], features[last:]} {
		for _, client := range versions {
			for _, server := range versions {
				p := *servers[server]
				end := p.connect(t, r.url, client, server)
				for _, f := range some {
					if !f.possible(client, server) {
						continue
					}
					why := f.fault(client, server)
					if works := p.try(f, why != ""); works != (why == "") {
						t.Errorf("%s, client %s, server %s: got that it works: %t, want %t (%s)", f.name, client, server, works, !works, why)
					}
				}
				end()
			}
		}
	}
	if page := compatibility(versions); *update {
		if err := os.WriteFile("../docs/compatibility.md", page, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if read(t, "docs/compatibility.md") != string(page) {
		t.Errorf("docs/compatibility.md is not what the test has found; run with -update to rewrite it:\n%s", page)
	}
}

// connect connects a client to the server through the router. end ends the client.
func (p *eraPair) connect(t *testing.T, router string, client, server protocol.Version) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	transport := &http.Transport{}
	p.t = t
	p.client = &mcptest.Client{
		URL: fmt.Sprintf("%s/servers/%s/mcp", router, server), HTTP: &http.Client{Transport: transport}, Version: string(client),
		Capabilities: `{"roots":{},"sampling":{}}`, Answers: func(m mcptest.Message) string { return answers[m.Method] },
	}
	switch {
	case client >= protocol.V20260728:
		p.client.Capabilities = `{"roots":{},"sampling":{},"elicitation":{},"extensions":{"` + protocol.ExtensionTasks + `":{}}}`
	case client >= protocol.V20250618:
		p.client.Capabilities = `{"roots":{},"sampling":{},"elicitation":{}}`
	}
	var done <-chan struct{}
	var err error
	switch {
	case client == protocol.V20241105:
		p.client.URL, p.of = router+"/proxy/sse", string(server)+"__"
		done, err = p.client.OpenSSE(ctx)
	case client == protocol.V20260728:
		done, err = p.client.Listen(ctx, mcptest.Resource)
	default:
		if err = p.client.Initialize(ctx); err == nil {
			done, err = p.client.Listen(ctx, "")
		}
	}
	if err != nil {
		t.Fatalf("client %s, server %s: %v", client, server, err)
	}
	return func() {
		if p.client.Session != "" {
			_ = p.client.Close(ctx) // the router forgets it in time
		}
		cancel()
		<-done
		transport.CloseIdleConnections()
	}
}

// possible reports whether both versions have a feature.
func (f feature) possible(client, server protocol.Version) bool {
	return min(client, server) >= f.since
}

// fault returns why a feature does not work yet between two versions; empty if it does.
func (f feature) fault(client, server protocol.Version) string {
	for _, of := range faults {
		if of.feature == f.name && slices.Contains(of.clients, client) && slices.Contains(of.servers, server) {
			return of.why
		}
	}
	return ""
}

// compatibility returns the page.
func compatibility(versions []protocol.Version) []byte {
	page := strings.Builder{}
	page.WriteString(compatibilityHead)
	row := func(cells ...string) { page.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	head := []string{"client"}
	for _, server := range versions {
		head = append(head, "server "+string(server))
	}
	row(head...)
	row(slices.Repeat([]string{"---"}, len(head))...)
	for _, client := range versions {
		cells := []string{string(client)}
		for _, server := range versions {
			var without []string
			for _, f := range features {
				if !f.possible(client, server) || f.fault(client, server) != "" {
					without = append(without, f.name)
				}
			}
			cells = append(cells, strings.TrimSuffix("all but "+strings.Join(without, ", "), " but "))
		}
		row(cells...)
	}
	page.WriteString("\n## What is tried\n\n")
	row("", "what works")
	row("---", "---")
	for _, f := range features {
		row(f.name, f.about)
	}
	page.WriteString("\n## What does not work\n\n")
	row("", "client", "server", "why")
	row("---", "---", "---", "---")
	for _, f := range features {
		if f.since != "" {
			row(f.name, "all", "before "+string(f.since), "the specification has it since "+string(f.since))
			row(f.name, "before "+string(f.since), "all", "as above")
		}
	}
	list := func(of []protocol.Version) string {
		first, last := string(of[0]), string(of[len(of)-1])
		switch len(of) {
		case len(versions):
			return "all"
		case 1:
			return first
		}
		return first + " to " + last
	}
	for _, of := range faults {
		row(of.feature, list(of.clients), list(of.servers), "not built yet: "+of.why)
	}
	return []byte(page.String())
}

const compatibilityHead = `# Compatibility

The router speaks all protocol versions to clients and to servers, so that a client of one version works with a server
of another. A test tries that with a client and a server of each version over HTTP (2024-11-05: HTTP+SSE, the others:
streamable HTTP), and writes this page.

## What works

`

package poison

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/internal/telemetry"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// peer is a server of the world. Its fields are set before it serves.
type peer struct {
	mcptest.Server
	settings     string // in the configuration, after the URL
	tools        string // JSON array
	instructions string
	// answer returns the result of a tool call. ask sends a request to the client and returns its answer.
	answer func(tool, arguments string, ask func(method, params string) mcptest.Message) (result string)
}

// received is a message that reached a server.
type received struct{ server, method, tool, arguments, raw string }

// world is a router before servers, with a model that obeys.
type world struct {
	t     *testing.T
	base  string
	http  *http.Client
	log   mcptest.Log
	model *obedient
	peers map[string]*peer

	mu      sync.Mutex
	traffic []received
}

// keys of the callers. All questions are asked with the first one.
var keys = []string{"the key of the user", "the key of somebody else"}

// newWorld starts a router with settings, a part of its configuration in YAML.
func newWorld(t *testing.T, settings string, peers map[string]*peer) *world {
	t.Helper()
	w := &world{t: t, http: &http.Client{Timeout: 5 * time.Minute}, model: &obedient{}, peers: peers}
	t.Cleanup(w.http.CloseIdleConnections)
	m := llmtest.New(t)
	m.Script(w.model.reply)
	var file strings.Builder
	fmt.Fprintf(&file, "listen: 127.0.0.1:0\nstate: %q\nrate_limit: {requests: 10000, per: 60s}\n%s\n", t.TempDir(), settings)
	file.WriteString("proxy: {list_deadline: 5m}\nquery: {timeout: 5m}\n") // what is late counts as absent
	fmt.Fprintf(&file, "llm: {planner: {base_url: %q, model: m, api_key: k}}\nauth:\n  api_keys:\n", m.BaseURL)
	for i, key := range keys {
		fmt.Fprintf(&file, "  - {name: key%d, sha256: %x}\n", i, sha256.Sum256([]byte(key)))
	}
	file.WriteString("mcpServers:\n")
	for _, name := range slices.Sorted(maps.Keys(peers)) {
		fmt.Fprintf(&file, "  %s: {url: %q, connect_timeout: 5m%s}\n", name, w.serve(name, peers[name]), peers[name].settings)
	}
	path := filepath.Join(t.TempDir(), "nexus.yaml")
	if err := os.WriteFile(path, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load([]string{path}, config.Options{Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatalf("%v\n%s", err, file.String())
	}
	opts := app.Options{Config: cfg, Version: "1"}
	if opts.Logger, _, err = telemetry.NewLogger(telemetry.LogConfig{Level: "info", Format: "text"}, &w.log, nil); err != nil {
		t.Fatal(err)
	}
	a, err := app.New(t.Context(), opts)
	if err == nil {
		err = a.Listen(t.Context())
	}
	if err != nil {
		t.Fatalf("starting the router: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), mcptest.Patience)
		defer cancel()
		if err := a.Stop(ctx); err != nil {
			t.Errorf("Stop: got %v, want nil", err)
		}
	})
	w.base = "http://" + a.Addr()
	return w
}

// serve serves a peer, keeps what reaches it, and returns its URL.
func (w *world) serve(name string, p *peer) string {
	var replies sync.Map // of clients, by id
	if p.tools != "" {
		p.SetTools(p.tools)
	}
	p.OnHTTP = func(_ http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		var header strings.Builder
		_ = r.Header.Write(&header) // to a builder
		w.mu.Lock()
		defer w.mu.Unlock()
		w.traffic = append(w.traffic, received{name, m.Method, m.Call().Name, string(m.Call().Arguments), r.URL.String() + "\n" + header.String() + m.Raw})
		return false
	}
	p.OnMessage = func(ctx context.Context, m mcptest.Message, send func(string)) bool {
		switch m.Method {
		case "initialize":
			quoted, _ := json.Marshal(p.instructions) // strings always marshal
			send(m.Response(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{}},"serverInfo":{"name":"` + name + `","version":"1"},"instructions":` + string(quoted) + `}`))
		case "tools/call":
			send(m.Response(p.answer(m.Call().Name, string(m.Call().Arguments), func(method, params string) mcptest.Message {
				id, answered := `"ask `+string(m.ID)+`"`, make(chan mcptest.Message, 1)
				replies.Store(id, answered)
				send(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`)
				select {
				case reply := <-answered:
					return reply
				case <-ctx.Done():
					return mcptest.Message{}
				}
			})))
		case "":
			if answered, ok := replies.LoadAndDelete(string(m.ID)); ok {
				answered.(chan mcptest.Message) <- m
			}
		default:
			return false
		}
		return true
	}
	srv := httptest.NewServer(&p.Server)
	w.t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	return srv.URL + "/mcp"
}

// received returns what has reached the servers.
func (w *world) received() []received {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.traffic)
}

// forget forgets what has reached the servers.
func (w *world) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.traffic = nil
}

// eventually polls until ok holds.
func (w *world) eventually(what string, ok func() bool) { mcptest.Eventually(w.t, what, ok) }

// person is a client of a surface and its user.
type person struct {
	w      *world
	path   string
	era    string // protocol version; empty = a client that says nothing about itself
	key    string
	action string                      // what the user says to a form: accept, decline or cancel; empty = the client has no forms
	choose func(message string) string // instead of action; may be nil

	session string
	asked   []mcptest.Message // requests of the router
}

const modernEra = "2026-07-28"

// meet returns a client of a path.
func (w *world) meet(path, era, action string) *person {
	p := &person{w: w, path: path, era: era, key: keys[0], action: action}
	p.begin()
	return p
}

// begin opens a session, where the era has them.
func (p *person) begin() {
	era := p.era
	if era != "" && era != modernEra {
		resp, _ := p.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+era+`","capabilities":`+p.capabilities()+`,"clientInfo":{"name":"poison","version":"1"}}}`, nil)
		p.session = resp.Get("Mcp-Session-Id")
		p.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil)
	}
}

func (p *person) capabilities() string {
	if p.action == "" && p.choose == nil {
		return `{}`
	}
	return `{"elicitation":{"form":{},"url":{}},"sampling":{}}`
}

// call calls a tool and returns the result, or the error.
func (p *person) call(tool string, arguments any) (result, failure json.RawMessage) {
	return p.request("tools/call", map[string]any{"name": tool, "arguments": arguments})
}

// request sends a request and answers what is asked meanwhile.
func (p *person) request(method string, params map[string]any) (result, failure json.RawMessage) {
	header := map[string]string{}
	if p.era == modernEra {
		header = map[string]string{"Mcp-Protocol-Version": modernEra, "Mcp-Method": method}
		for _, name := range []string{"name", "uri"} {
			if v, ok := params[name].(string); ok {
				header["Mcp-Name"] = v
			}
		}
		params["_meta"] = json.RawMessage(`{"io.modelcontextprotocol/protocolVersion":"` + modernEra + `","io.modelcontextprotocol/clientCapabilities":` + p.capabilities() + `}`)
	}
	for {
		body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
		if err != nil {
			p.w.t.Fatal(err)
		}
		_, reply := p.post(string(body), header)
		var more struct {
			Type   string                     `json:"resultType"`
			Inputs map[string]mcptest.Message `json:"inputRequests"`
			State  json.RawMessage            `json:"requestState"`
		}
		_ = json.Unmarshal(reply.Result, &more) // then it is a result
		if more.Type != "input_required" {
			return reply.Result, reply.Error
		}
		answers := map[string]json.RawMessage{}
		for key, question := range more.Inputs {
			answers[key] = json.RawMessage(p.answer(question))
		}
		params["inputResponses"], params["requestState"] = answers, more.State
	}
}

// answer is what the user says to a request of the router.
func (p *person) answer(m mcptest.Message) string {
	p.asked = append(p.asked, m)
	switch m.Method {
	case "elicitation/create":
		action := p.action
		if p.choose != nil {
			action = p.choose(textOf(m.Params, "message"))
		}
		return `{"action":"` + action + `","content":{}}`
	case "sampling/createMessage":
		return `{"role":"assistant","content":{"type":"text","text":"no"},"model":"m"}`
	}
	return `{"roots":[]}`
}

// post sends a message and reads the response, if there is one.
func (p *person) post(body string, header map[string]string) (http.Header, mcptest.Message) {
	t := p.w.t
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.w.base+p.path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("X-Api-Key", p.key)
	if p.session != "" {
		req.Header.Set("Mcp-Session-Id", p.session)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := p.w.http.Do(req)
	if err != nil {
		t.Fatalf("%s: %v\n%s", body, err, p.w.log.String())
	}
	defer resp.Body.Close()
	var reply mcptest.Message
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = json.Unmarshal(raw, &reply) // a 202 has no body
		return resp.Header, reply
	}
	_ = mcptest.Events(resp.Body, func(_, data string) { // the stream ends with the response
		var m mcptest.Message
		switch err := json.Unmarshal([]byte(data), &m); {
		case err != nil:
			t.Errorf("got the event %q: %v", data, err)
		case m.Method != "" && m.ID != nil:
			p.post(m.Response(p.answer(m)), nil)
		case m.Method == "":
			reply = m
		}
	})
	return resp.Header, reply
}

// textOf returns a string member of an object, "" if it has none.
func textOf(raw []byte, name string) (text string) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(raw, &members)
	_ = json.Unmarshal(members[name], &text)
	return text
}

// answered is the structured content of process_query, and all of its result.
type answered struct {
	Answer        string          `json:"answer"`
	NeedsApproval bool            `json:"needs_approval"`
	Plan          json.RawMessage `json:"plan"`
	Steps         []struct {
		ID      string
		Tool    string
		Server  string
		Success bool
		Skipped bool
		Result  json.RawMessage
		Error   *struct{ Reason, Message string }
	}
	Warnings []string
	Content  json.RawMessage // the blocks
}

// ask asks a question; plan may be nil.
func (p *person) ask(question string, plan json.RawMessage) (a answered) {
	arguments := map[string]any{"query": question}
	if plan != nil {
		arguments["plan"] = plan
	}
	result, failure := p.call("process_query", arguments)
	var whole struct {
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
	}
	if err := json.Unmarshal(result, &whole); err != nil || whole.Structured == nil {
		p.w.t.Fatalf("%q: got %s %s, want an answer\n%s", question, result, failure, p.w.log.String())
	}
	if err := json.Unmarshal(whole.Structured, &a); err != nil {
		p.w.t.Fatal(err)
	}
	a.Content = whole.Content
	return a
}

// failures returns why steps failed.
func (a answered) failures() string {
	var why []string
	for _, s := range a.Steps {
		if s.Error != nil {
			why = append(why, s.Tool+": "+s.Error.Reason+": "+s.Error.Message)
		}
	}
	return strings.Join(why, "\n")
}

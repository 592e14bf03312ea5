package app_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// planted makes secrets with characters that every notation escapes, and keeps them.
type planted []string

func (p *planted) secret(name string) redact.Secret {
	s := `k"` + name + `<&/+ 7~` + fmt.Sprint(len(*p))
	*p = append(*p, s)
	return redact.Secret(s)
}

// repeated is what a careless server makes of a text: it is in there in each notation.
func repeated(s string) string {
	return fmt.Sprintf("%s %q %s %s %s %s %s", s, s, quote(s), url.QueryEscape(s), strings.ToLower(url.PathEscape(s)),
		html.EscapeString(s), base64.StdEncoding.EncodeToString([]byte("user:"+s)))
}

// want fails the test if an output has a planted secret, or six bytes of one, in any notation.
func (p planted) want(t *testing.T, where, output string) {
	t.Helper()
	output = strings.ReplaceAll(output, `\`, "")
	for i, s := range p {
		part := s[2 : len(s)-7]
		for _, part := range []string{part, strings.Trim(strings.ReplaceAll(quote(part), `\`, ""), `"`), base64.RawStdEncoding.EncodeToString([]byte("user:" + s))[8:len(s)]} {
			if at := strings.Index(output, part); at >= 0 {
				t.Errorf("%s: got a part of the secret %d, %q, in %s", where, i, part, output[max(0, at-200):min(len(output), at+100)])
			}
		}
	}
}

// Nothing that the router says about a failure has a secret of its configuration: not to clients, not in the log at any
// level, not in the health, on the page or in the history, and not to a model.
func TestFailuresHoldNoSecrets(t *testing.T) {
	var p planted
	headers := func(name string) map[string]redact.Secret {
		return map[string]redact.Secret{"X-Own": p.secret(name)}
	}
	echo := func(r *http.Request) string { return repeated(r.Header.Get("X-Own")) }
	failing := func(answer func(w http.ResponseWriter, r *http.Request, id string)) http.Handler {
		peer := newPeer(textTool("fails", object, ""))
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(strings.NewReader(string(raw)))
			var m message
			if json.Unmarshal(raw, &m) == nil && m.Method == "tools/call" || m.Method == "resources/read" {
				answer(w, r, string(m.ID))
				return
			}
			peer.ServeHTTP(w, r)
		})
	}
	mcp := func(answer func(w http.ResponseWriter, r *http.Request, id string)) string {
		s := httptest.NewServer(failing(answer))
		t.Cleanup(s.Close)
		return s.URL
	}
	broken := func(answer http.HandlerFunc) string {
		s := httptest.NewServer(answer)
		t.Cleanup(s.Close)
		return s.URL
	}
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	tls.Config.ErrorLog = nil
	t.Cleanup(tls.Close)
	secret := p.secret("oauth")
	authority := &mcptest.OAuth{Clients: map[string]string{"me": string(secret)}}
	authority.OnToken = func(w http.ResponseWriter, form url.Values) bool {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":"invalid_client","error_description":%s}`, quote(strings.Repeat("x", 170)+repeated(string(secret))+form.Encode()))
		return true
	}
	t.Cleanup(mcptest.ServeOAuth(authority, http.NotFoundHandler()))
	issuing := &mcptest.OAuth{Clients: map[string]string{"me": string(secret)}}
	t.Cleanup(mcptest.ServeOAuth(issuing, failing(func(w http.ResponseWriter, r *http.Request, id string) {
		_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":%s}}`, id, quote("issued "+repeated(token)))
	})))
	withUser := func(address string) string {
		return strings.Replace(address, "://", "://"+url.UserPassword("operator", string(p.secret("user"))).String()+"@", 1)
	}
	servers := []downstream.ServerConfig{
		{Name: "error", URL: mcp(func(w http.ResponseWriter, r *http.Request, id string) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":%s,"data":{"sent":[%s]}}}`, id, quote(echo(r)), quote(echo(r)))
		}), Headers: headers("error")},
		{Name: "result", URL: mcp(func(w http.ResponseWriter, r *http.Request, id string) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"isError":true,"content":[{"type":"text","text":%s}]}}`, id, quote(echo(r)))
		}), Headers: headers("result")},
		{Name: "nested", URL: mcp(func(w http.ResponseWriter, r *http.Request, id string) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":%s}}`, id, quote("bad "+quote(r.Header.Get("X-Own"))))
		}), Headers: headers("nested")},
		{Name: "status", URL: mcp(func(w http.ResponseWriter, r *http.Request, _ string) {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, echo(r))
		}), Headers: headers("status")},
		{Name: "explained", URL: mcp(func(w http.ResponseWriter, r *http.Request, id string) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":%s}}`, id, quote(echo(r)))
		}), Headers: headers("explained")},
		{Name: "kind", URL: mcp(func(w http.ResponseWriter, r *http.Request, _ string) {
			w.Header().Set("Content-Type", "text/"+strings.Repeat("x", 80)+r.Header.Get("X-Own"))
		}), Headers: map[string]redact.Secret{"X-Own": "the-kind-of-secret-7"}},
		{Name: "handshake", URL: broken(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":%s}}`, quote(echo(r)))
		}), Headers: headers("handshake")},
		{Name: "away", URL: broken(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://other.invalid/?"+url.Values{"own": r.Header["X-Own"]}.Encode(), http.StatusTemporaryRedirect)
		}), Headers: headers("away")},
		{Name: "closed", URL: withUser("http://127.0.0.1:1/mcp")},
		{Name: "untrusted", URL: withUser(tls.URL)},
		{Name: "stream", URL: withUser("http://127.0.0.1:1/sse"), Type: downstream.TransportSSE},
		{Name: "login", URL: authority.URL + "/mcp", Auth: &oauth.Config{ClientID: "me", ClientSecret: secret, Flow: oauth.FlowClientCredentials}},
		{Name: "issued", URL: issuing.URL + "/mcp", Auth: &oauth.Config{ClientID: "me", ClientSecret: secret, Flow: oauth.FlowClientCredentials}},
		{Name: "child", Type: downstream.TransportStdio, Command: "sh", Args: []string{"-c", `printf '%5000s' "$PW" >&2; echo " cannot connect to $DSN as $PW" >&2; exit 1`},
			Env: map[string]redact.Secret{"PW": p.secret("child"), "DSN": redact.Secret("postgres://" + url.UserPassword("app", string(p.secret("dsn"))).String() + "@db/x")}},
	}
	for i := range servers {
		if servers[i].Type == "" {
			servers[i].Type = downstream.TransportHTTP
		}
	}
	var steps []string
	for i, s := range servers {
		steps = append(steps, fmt.Sprintf(`{"id":"a%d","tool":"%s__fails","arguments":{}}`, i, s.Name))
	}
	plan := `{"steps":[` + strings.Join(steps, ",") + `]}`
	m := scripted(t, "Nothing worked.", plan, plan)
	r := start(t, func(o *app.Options) {
		model(o, m)
		o.Config.LLM.Planner.APIKey = p.secret("model")
		o.Config.Log.Level, o.Config.Execution.Attempts = "trace", 1
		o.Config.Servers = servers
	})
	c := r.dial("", nil)
	told := string(c.call("list_available_tools", `{}`, "").Result)
	for range 2 {
		told += string(c.call("process_query", `{"query":"q"}`, "").Result)
	}
	call := `{"jsonrpc":"2.0","id":1,"method":"%s","params":{"name":"%[2]s__fails","uri":"%[2]s__x:y","arguments":{}}}`
	for _, s := range servers {
		reply := c.call("run", `{"tool":"`+s.Name+`__fails"}`, "")
		told += string(reply.Result) + string(reply.Error)
		for _, request := range []string{fmt.Sprintf(call, "tools/call", s.Name), fmt.Sprintf(call, "resources/read", s.Name)} {
			_, text := r.raw("POST", "/proxy/mcp", request, nil)
			told += text
		}
	}
	p.want(t, "clients", told)
	if strings.Contains(told, "access-") || !strings.Contains(told, "issued "+redact.Mark) {
		t.Errorf("clients: got %s, want the token of an authorization server masked", told)
	}
	for _, kept := range []string{"the-kind", "-secret"} { // on both sides of the cut
		if strings.Contains(told, kept) {
			t.Errorf("clients: got a part of a secret, %s", kept)
		}
	}
	if !strings.Contains(told, redact.Mark) || !strings.Contains(told, "cannot connect to") {
		t.Errorf("clients: got %s, want the failures without secrets", told)
	}
	for _, path := range []string{"/healthz", "/ui/api/now", "/ui/api/servers", "/ui/api/servers/child", "/ui/api/settings", "/ui/api/queries", "/ui/api/queries/1", "/ui/api/queries/2", "/metrics"} {
		_, text := r.raw("GET", path, "", nil)
		p.want(t, path, text)
	}
	p.want(t, "health_check", string(c.call("health_check", `{}`, "").Result))
	for _, q := range m.Requests() {
		p.want(t, "prompt", string(q.Body))
	}
	r.stop(deadline)
	p.want(t, "log", r.logs.String())
	file, err := os.ReadFile(filepath.Join(r.opts.Config.State, "history.db"))
	if err != nil {
		t.Fatal(err)
	}
	p.want(t, "history", string(file))
}

// A model that refuses the key and repeats it is quoted without it.
func TestModelFailuresHoldNoSecrets(t *testing.T) {
	var p planted
	key, header := p.secret("key"), p.secret("header")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		sent := repeated(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")) + repeated(r.Header.Get("X-Own"))
		fmt.Fprintf(w, `{"error":{"message":%s}}`, quote("wrong: "+sent))
	}))
	t.Cleanup(s.Close)
	r := start(t, func(o *app.Options) {
		o.Demo, o.Config.Log.Level = true, "trace"
		o.Config.LLM = &config.LLM{Planner: llm.Config{BaseURL: s.URL, Model: "m", APIKey: key, Headers: map[string]redact.Secret{"X-Own": header}}}
	})
	c := r.dial("", nil)
	told := string(c.call("process_query", `{"query":"15% of 20"}`, "").Result)
	told += string(c.call("health_check", `{}`, "").Result)
	_, now := r.raw("GET", "/ui/api/now", "", nil)
	r.stop(deadline)
	p.want(t, "clients", told+now)
	p.want(t, "log", r.logs.String())
	if !strings.Contains(told, "wrong: "+redact.Mark) {
		t.Errorf("got %s, want the words of the model without the key", told)
	}
}

// What looks like a credential in a result is in no prompt, in no history and in no log, but the result and the steps
// that use it have it.
func TestCredentialsInResults(t *testing.T) {
	found := []string{"ghp_0123456789abcdefghijABCDEFGHIJ012345", "AKIAIOSFODNN7EXAMPLE", "hunter2-k3y", "sk-proj-0123456789abcdefghij",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"}
	text := "use " + found[0] + " or " + found[1] + " and " + found[3] + ", password=" + found[2] + ", " + found[4] + "."
	peer := newPeer(textTool("read", object+`,"annotations":{"readOnlyHint":true}`, text), echoTool("echo"))
	m := scripted(t, "Done.", `{"steps":[{"id":"a","tool":"read","arguments":{}}],"more":true}`, `[{"id":"b","tool":"echo","arguments":{"text":"$a"}}]`)
	r := start(t, func(o *app.Options) {
		model(o, m)
		o.Config.Log.Level = "trace"
		o.Config.Servers = []downstream.ServerConfig{server("peer", peer.serve(t).URL)}
	})
	a := r.dial("", nil).query(`{"query":"use ` + found[0] + `"}`)
	if len(a.Steps) != 2 || !strings.Contains(string(a.Steps[0].Result), found[2]) || !strings.Contains(fmt.Sprint(peer.calls()), text) {
		t.Errorf("got %+v and the calls %v, want the whole result in both", a.Steps, peer.calls())
	}
	r.history("", nil, 1)
	_, stored := r.raw("GET", "/ui/api/queries/1", "", nil)
	r.stop(deadline)
	file, err := os.ReadFile(filepath.Join(r.opts.Config.State, "history.db"))
	if err != nil {
		t.Fatal(err)
	}
	outputs := map[string]string{"page": stored, "history": string(file), "log": r.logs.String()}
	for i, q := range m.Requests() {
		outputs[fmt.Sprint("prompt ", i)] = string(q.Body)
	}
	for where, output := range outputs {
		for _, credential := range found {
			if strings.Contains(output, credential) {
				t.Errorf("%s: got %s in %s", where, credential, output)
			}
		}
	}
	if len(outputs) != 6 || !strings.Contains(outputs["prompt 2"], "use "+redact.Mark) {
		t.Errorf("got %d outputs and the prompt %s, want three prompts with the rest of the result", len(outputs), outputs["prompt 2"])
	}
}

// A reload changes the secrets. Those before stay known, because servers of the former configuration may still fail.
func TestReloadedSecrets(t *testing.T) {
	var p planted
	peer := newPeer(peerTool{"fails", object, func(*peerCall) (string, string) {
		return `{"isError":true,"content":[{"type":"text","text":` + quote(strings.Join(p, " and ")) + `}]}`, ""
	}})
	url := peer.serve(t).URL
	configured := func(name string) []downstream.ServerConfig {
		s := server("peer", url)
		s.Headers = map[string]redact.Secret{"X-Own": p.secret(name)}
		return []downstream.ServerConfig{s}
	}
	r := start(t, func(o *app.Options) { o.Config.Servers = configured("before") })
	cfg := r.opts.Config
	cfg.Servers = configured("after")
	if err := r.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	got := string(r.dial("", nil).call("run", `{"tool":"peer__fails"}`, "").Result)
	if !strings.Contains(got, redact.Mark+" and "+redact.Mark) {
		t.Errorf("got %s, want neither secret", got)
	}
}

// An answer shows no image by itself, neither as it grows nor without a model.
func TestAnswersHoldNoImages(t *testing.T) {
	const image = "![x](https://evil.example/?d=1) and <img src='https://evil.example/?d=2'>"
	const links = "[x](https://evil.example/?d=1) and [image](https://evil.example/?d=2)"
	peer := newPeer(textTool("read", object+`,"annotations":{"readOnlyHint":true}`, image))
	url := peer.serve(t).URL
	for name, m := range map[string]*llmtest.Server{"model": scripted(t, "See "+image+".", `[{"tool":"read","arguments":{}}]`), "digest": nil} {
		t.Run(name, func(t *testing.T) {
			r := start(t, func(o *app.Options) {
				if m != nil {
					model(o, m)
				}
				o.Config.Servers = []downstream.ServerConfig{server("peer", url)}
			})
			reply := r.dial("", nil).call("process_query", `{"query":"q","plan":[{"tool":"read","arguments":{}}]}`, `{"progressToken":"t"}`)
			var told string
			for _, note := range reply.notes {
				told += string(note.Params)
			}
			var got struct {
				Content           []struct{ Text string }
				StructuredContent struct {
					Answer string
					Steps  []struct{ Result string }
				}
			}
			if err := json.Unmarshal(reply.Result, &got); err != nil {
				t.Fatal(err)
			}
			answer := got.StructuredContent.Answer
			if !strings.Contains(answer, links) || got.Content[0].Text != answer || strings.Contains(told, "![") || strings.Contains(told, "<img") {
				t.Errorf("got %s and the progress %s, want links in place of the images", reply.Result, told)
			}
			if got.StructuredContent.Steps[0].Result != image {
				t.Errorf("got the result %s, want it unchanged", got.StructuredContent.Steps[0].Result)
			}
		})
	}
}

package app_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/bearer/bearertest"
	"github.com/agenticnexus/agenticnexus/internal/pins"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// mailbox is a server where everybody has tools of their own, behind an authorization server.
func mailbox(t *testing.T, o *mcptest.OAuth) downstream.ServerConfig {
	t.Helper()
	t.Cleanup(mcptest.ServeOAuth(o, mcptest.Mailbox()))
	c := server("mail", o.URL+"/mcp")
	c.Auth = &oauth.Config{Scope: oauth.ScopePerCaller}
	return c
}

// withMail configures a mailbox and two keys.
func withMail(t *testing.T, o *mcptest.OAuth) func(*app.Options) {
	mail := mailbox(t, o)
	return func(opts *app.Options) {
		opts.Config.Servers = append(opts.Config.Servers, mail)
		opts.Config.Auth.APIKeys = keys("k1", "k2")
	}
}

// browser is a person's browser.
type browser struct {
	t *testing.T
	*mcptest.Browser
}

func newBrowser(t *testing.T, person string) *browser {
	b := mcptest.NewBrowser(person)
	t.Cleanup(b.CloseIdleConnections)
	return &browser{t, b}
}

// text returns the page that a response has.
func (b *browser) text(resp *http.Response, err error) (int, string) {
	b.t.Helper()
	status, page, err := mcptest.Page(resp, err)
	if err != nil {
		b.t.Fatal(err)
	}
	return status, page
}

// enter shows a key on the page at an address, and goes where that leads.
func (b *browser) enter(address, key string) (status int, page string) {
	b.t.Helper()
	status, page, err := b.Enter(address, key)
	if err != nil {
		b.t.Fatal(err)
	}
	return status, page
}

// logIn is like enter, for a login that succeeds.
func (b *browser) logIn(address, key string) {
	b.t.Helper()
	if status, page := b.enter(address, key); status != http.StatusOK || !strings.Contains(page, "Logged in to mail") {
		b.t.Fatalf("got %d %s, want that the login succeeds", status, page)
	}
}

var loginLink = regexp.MustCompile(`https?://[^ ,"]+/login/mail`)

// wantLink returns the address in an error that asks for a login.
func wantLink(t *testing.T, r *reply) string {
	t.Helper()
	link := loginLink.FindString(string(r.Error) + string(r.Result))
	if link == "" || strings.Contains(string(r.Result), "mail of") {
		t.Fatalf("got %s %s, want an error with the address of the login", r.Error, r.Result)
	}
	return link
}

func wantText(t *testing.T, r *reply, want string) {
	t.Helper()
	if r.Error != nil || !strings.Contains(string(r.Result), want) {
		t.Errorf("got %s %s, want %q", r.Error, r.Result, want)
	}
}

// awaitPage returns the page that a client is asked to show.
func awaitPage(t *testing.T, asked <-chan string) string {
	t.Helper()
	select {
	case address := <-asked:
		return address
	case <-time.After(deadline):
		t.Fatal("the client was not asked to show a page")
		return ""
	}
}

func tools(c *client) string {
	var list struct{ Tools []struct{ Name string } }
	_ = json.Unmarshal(c.do("tools/list", "{}").Result, &list) // what does not fit has no names
	return fmt.Sprint(list.Tools)
}

// Each caller logs in itself, sees its own tools and calls with its own token, on every surface.
func TestLoginOfEachCaller(t *testing.T) {
	o := &mcptest.OAuth{}
	r := start(t, withMail(t, o))
	for path, prefix := range map[string]string{"/proxy/mcp": "mail__", "/servers/mail/mcp": ""} {
		c := r.dialAt(path, "", bearer("k2"))
		if got, want := tools(c), "[{"+prefix+"login}]"; got != want {
			t.Errorf("%s: got the tools %s before the login, want %s", path, got, want)
		}
	}
	one, two := r.dialAt("/proxy/mcp", "", bearer("k1")), r.dialAt("/proxy/mcp", "", bearer("k2"))
	newBrowser(t, "ann").logIn(wantLink(t, one.call("mail__login", "{}", "")), "k1")
	wantText(t, one.call("mail__whoami", "{}", ""), "mail of ann")
	link := wantLink(t, two.call("mail__whoami", "{}", ""))
	if got := tools(one); got != "[{mail__whoami} {mail__of_ann}]" {
		t.Errorf("got the tools %s after the login, want those of ann", got)
	}
	if got := tools(two); got != "[{mail__login}]" {
		t.Errorf("got the tools %s of another caller, want none but the login", got)
	}
	newBrowser(t, "bob").logIn(link, "k2")
	wantText(t, two.call("mail__whoami", "{}", ""), "mail of bob")
	wantText(t, one.call("mail__whoami", "{}", ""), "mail of ann")
	run := func(key, tool string) *reply {
		return r.dial("", bearer(key)).call("run", `{"tool":"`+tool+`"}`, "")
	}
	wantText(t, run("k1", "mail__of_ann"), "mail of ann")
	wantText(t, run("k2", "mail__whoami"), "mail of bob")
	if got := run("k2", "mail__of_ann"); got.Error == nil && !strings.Contains(string(got.Result), "isError") {
		t.Errorf("got %s, want that a tool of another caller is unknown", got.Result)
	}
	query := func(key string) *reply {
		return r.dial("", bearer(key)).call("process_query", `{"query":"x","plan":{"steps":[{"id":"a","tool":"mail__whoami","arguments":{}}]}}`, "")
	}
	wantText(t, query("k1"), "mail of ann")
	wantText(t, query("k2"), "mail of bob")
	if _, text := r.raw("GET", "/healthz", "", bearer("k1")); !strings.Contains(text, "login per caller") || !strings.Contains(text, `"healthy"`) {
		t.Errorf("got the health %s, want that the server is healthy with a login per caller", text)
	}
	if log := r.logs.String(); regexp.MustCompile(`(access|refresh|code)-\d`).MatchString(log) {
		t.Error("log: want no token and no code")
	}
}

// What a caller finds by words is what it sees itself.
func TestSearchOfEachCaller(t *testing.T) {
	r := start(t, withMail(t, &mcptest.OAuth{}))
	newBrowser(t, "ann").logIn(r.base+"/login/mail", "k1")
	newBrowser(t, "bob").logIn(r.base+"/login/mail", "k2")
	for key, person := range map[string]string{"k1": "ann", "k2": "bob"} {
		c := r.dial("", bearer(key))
		found := c.call("search_available_tools", `{"query":"whose mailbox is it"}`, "")
		wantText(t, found, "mail__whoami")
		if n := strings.Count(string(found.Result), `"name":"mail__whoami"`); n != 1 {
			t.Errorf("%s: found the tool %d times, want once", key, n)
		}
		for other, foreign := range map[string]bool{"ann": person != "ann", "bob": person != "bob"} {
			got := c.call("search_available_tools", `{"query":"mail of_`+other+`"}`, "")
			if strings.Contains(string(got.Result), `"name":"mail__of_`+other) == foreign {
				t.Errorf("%s: got %s for of_%s", key, got.Result, other)
			}
		}
	}
}

// A client that can show a page does so, and its call waits for the login.
func TestLoginByElicitation(t *testing.T) {
	const caps = `{"elicitation":{"form":{},"url":{}}}`
	o := &mcptest.OAuth{}
	r := start(t, withMail(t, o))
	for key, dial := range map[string]func() *client{
		"k1": func() *client { return r.dialAt("/proxy/mcp", caps, bearer("k1")) },
		"k2": func() *client { return r.dialModern("/proxy/mcp", caps) },
	} {
		c := dial()
		asked := make(chan string, 1)
		c.answer = func(m message) string {
			var p struct{ Mode, URL, ElicitationID string }
			if m.Method != "elicitation/create" || json.Unmarshal(m.Params, &p) != nil || p.Mode != "url" || (p.ElicitationID == "") != (key == "k2") {
				t.Errorf("got %s %s, want an elicitation with a URL", m.Method, m.Params)
			}
			asked <- p.URL
			return `{"action":"accept"}`
		}
		call, _ := c.start("tools/call", callParams("mail__whoami", "{}", `{"api_key":"`+key+`"}`))
		newBrowser(t, "user of "+key).logIn(awaitPage(t, asked), key)
		wantText(t, c.wait(call), "mail of user of "+key)
		if notes := fmt.Sprint(call.notes); strings.Contains(notes, "notifications/elicitation/complete") != (key == "k1") {
			t.Errorf("%s: got the notifications %s, want that the elicitation is complete, before 2026-07-28", key, notes)
		}
	}
}

// The page serves nobody else than the caller whose key it is shown, and the browser that began.
func TestLoginPageRefuses(t *testing.T) {
	o := &mcptest.OAuth{}
	r := start(t, withMail(t, o))
	one, two := r.dialAt("/proxy/mcp", "", bearer("k1")), r.dialAt("/proxy/mcp", "", bearer("k2"))
	link := wantLink(t, one.call("mail__whoami", "{}", ""))
	for name, row := range map[string]struct {
		address, key string
		want         int
	}{
		"no key": {link, "", 401}, "a wrong key": {link, "nonsense", 401}, "an unknown server": {r.base + "/login/none", "k1", 404},
	} {
		if status, page := newBrowser(t, "x").enter(row.address, row.key); status != row.want {
			t.Errorf("%s: got %d %s, want %d", name, status, page, row.want)
		}
	}
	// On http, browsers tell where a form is from by Origin alone, which is null if the form's page hides its address.
	if resp, _ := r.raw("GET", "/login/mail", "", nil); resp.Header.Get("Referrer-Policy") != "same-origin" {
		t.Errorf("got the Referrer-Policy %q, want same-origin", resp.Header.Get("Referrer-Policy"))
	}
	for _, header := range []map[string]string{
		{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"},
	} {
		header["Content-Type"] = "application/x-www-form-urlencoded"
		if resp, _ := r.raw("POST", "/login/mail", "key=k1", header); resp.StatusCode != 403 {
			t.Errorf("a form of another site: got %d, want 403", resp.StatusCode)
		}
	}
	// The link that k1 got, opened by another person with another key, logs in that person for that key alone.
	newBrowser(t, "bob").logIn(link, "k2")
	wantText(t, two.call("mail__whoami", "{}", ""), "mail of bob")
	wantLink(t, one.call("mail__whoami", "{}", ""))
	// A response is good once, in the browser that began, with its state.
	ann := newBrowser(t, "ann")
	var back string
	ann.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
		if strings.HasSuffix(req.URL.Path, "/callback") {
			back = req.URL.String()
			return http.ErrUseLastResponse
		}
		return nil
	}
	ann.enter(link, "k1")
	state := regexp.MustCompile(`state=[^&]*`)
	for name, address := range map[string]string{"no state": state.ReplaceAllString(back, ""), "a forged state": state.ReplaceAllString(back, "state=abc")} {
		if status, page := ann.text(ann.Get(address)); status != 400 {
			t.Errorf("%s: got %d %s, want 400", name, status, page)
		}
	}
	if status, page := newBrowser(t, "eve").text(http.Get(back)); status != 400 {
		t.Errorf("another browser: got %d %s, want 400", status, page)
	}
	wantLink(t, one.call("mail__whoami", "{}", ""))
	if status, page := ann.text(ann.Get(back)); status != 200 {
		t.Errorf("got %d %s, want a login", status, page)
	}
	if status, page := ann.text(ann.Get(back)); status != 400 {
		t.Errorf("the response again: got %d %s, want 400", status, page)
	}
	wantText(t, one.call("mail__whoami", "{}", ""), "mail of ann")
}

// A login that is denied, and one with a provider that is down, end the call that waits for it.
func TestLoginFails(t *testing.T) {
	o := &mcptest.OAuth{}
	deny := func(answer url.Values) {
		answer.Del("code")
		answer.Set("error", "access_denied")
	}
	o.Back = deny
	r := start(t, withMail(t, o))
	c := r.dialAt("/proxy/mcp", `{"elicitation":{"url":{}}}`, bearer("k1"))
	asked := make(chan string, 1)
	c.answer = func(m message) string {
		var p struct{ URL string }
		_ = json.Unmarshal(m.Params, &p)
		asked <- p.URL
		return `{"action":"accept"}`
	}
	call, _ := c.start("tools/call", callParams("mail__whoami", "{}", ""))
	if status, page := newBrowser(t, "ann").enter(awaitPage(t, asked), "k1"); status != 502 || !strings.Contains(page, "access_denied") {
		t.Errorf("got %d %s, want what the provider says", status, page)
	}
	if got := c.wait(call); !strings.Contains(string(got.Error), "access_denied") {
		t.Errorf("got %s %s, want why nobody has logged in", got.Error, got.Result)
	}
	c.answer = func(message) string { return `{"action":"decline"}` }
	if got := c.call("mail__whoami", "{}", ""); !strings.Contains(string(got.Error), "declined") {
		t.Errorf("got %s %s, want that the user declined", got.Error, got.Result)
	}
}

// The tool that logs in needs no approval where others do.
func TestLoginToolIsNotPinned(t *testing.T) {
	mail := withMail(t, &mcptest.OAuth{})
	r := start(t, func(opts *app.Options) {
		mail(opts)
		opts.Config.Tools.Pin = pins.Enforce
	})
	newBrowser(t, "ann").logIn(r.base+"/login/mail", "k1")
	one, two := r.dialAt("/proxy/mcp", "", bearer("k1")), r.dialAt("/proxy/mcp", "", bearer("k2"))
	if got := tools(one); !strings.Contains(got, "of_ann") {
		t.Errorf("got the tools %s, want those of the first list", got)
	}
	if got := tools(two); got != "[{mail__login}]" {
		t.Errorf("got the tools %s, want the login", got)
	}
	newBrowser(t, "bob").logIn(wantLink(t, two.call("mail__login", "{}", "")), "k2")
	wantText(t, two.call("mail__whoami", "{}", ""), "mail of bob")
	if got := tools(two); got != "[{mail__whoami}]" {
		t.Errorf("got the tools %s, want only those that are approved", got)
	}
	if got := r.dialAt("/mcp", "", bearer("k1")).call("health_check", "{}", ""); strings.Contains(string(got.Result), "of_bob") {
		t.Errorf("got %s, want no tools of another caller", got.Result)
	}
}

// Tokens are sealed in the state folder, survive a restart, and are of nobody when the key of a caller changes.
func TestLoginsAreKept(t *testing.T) {
	o := &mcptest.OAuth{}
	state := t.TempDir()
	mail := mailbox(t, o)
	run := func(change func(*config.Config)) *running {
		return start(t, func(opts *app.Options) {
			opts.Config.State = state
			opts.Config.Servers = append(opts.Config.Servers, mail)
			opts.Config.Auth.APIKeys = keys("k1", "k2")
			if change != nil {
				change(&opts.Config)
			}
		})
	}
	r := run(nil)
	newBrowser(t, "ann").logIn(r.base+"/login/mail", "k1")
	r.stop(deadline)
	files, err := filepath.Glob(filepath.Join(state, "tokens", "callers", "mail.*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("got %v, %v, want one file", files, err)
	}
	text, err := os.ReadFile(files[0])
	info, _ := os.Stat(files[0])
	if err != nil || info.Mode().Perm() != 0o600 || regexp.MustCompile(`access|refresh|k1|http`).Match(text) {
		t.Errorf("got %q, %v, want a sealed file of mode 0600", text, err)
	}
	r = run(nil)
	wantText(t, r.dialAt("/proxy/mcp", "", bearer("k1")).call("mail__whoami", "{}", ""), "mail of ann")
	wantLink(t, r.dialAt("/proxy/mcp", "", bearer("k2")).call("mail__whoami", "{}", ""))
	r.reload(func(cfg *config.Config) {
		cfg.Servers = append(cfg.Servers, mail)
		cfg.Auth.APIKeys = keys("other", "k2")
		cfg.Auth.APIKeys[0].Name = "k1"
	})
	wantLink(t, r.dialAt("/proxy/mcp", "", bearer("other")).call("mail__whoami", "{}", ""))
	r.stop(deadline)
	r = run(func(cfg *config.Config) { cfg.TokenKey = "another key, of thirty-two characters" })
	wantLink(t, r.dialAt("/proxy/mcp", "", bearer("k1")).call("mail__whoami", "{}", ""))
}

// Many callers log in, call, list and are logged out at random, while the configuration is reloaded: no call and no list
// ever is that of another caller.
func TestNoCallUsesAnothersToken(t *testing.T) {
	const callers, steps = 4, 40
	o := &mcptest.OAuth{}
	mail := mailbox(t, o)
	names := make([]string, callers)
	for i := range names {
		names[i] = fmt.Sprintf("key%d", i)
	}
	configure := func(cfg *config.Config, timeout int) {
		own := mail
		own.Timeout = time.Duration(timeout) * time.Minute // another configuration
		cfg.Servers = append(cfg.Servers, own)
		cfg.Auth.APIKeys = keys(names...)
	}
	r := start(t, func(opts *app.Options) { configure(&opts.Config, 1) })
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	var all sync.WaitGroup
	var served atomic.Int64
	for i, key := range names {
		random := mathrand.New(mathrand.NewPCG(uint64(seed), uint64(i)))
		person := newBrowser(t, "user-of-"+key)
		proxied, asked := r.dialAt("/proxy/mcp", "", bearer(key)), r.dial("", bearer(key))
		modern := r.dialModern("/servers/mail/mcp", "{}")
		meta := `{"api_key":"` + key + `"}`
		all.Go(func() {
			for range steps {
				var got *reply
				switch random.IntN(12) {
				case 0:
					if status, page := person.enter(r.base+"/login/mail", key); status != 200 && status != 429 {
						t.Errorf("login: got %d %s", status, page)
					}
				case 1:
					o.Forget(false) // access tokens of all: the next calls refresh
				case 2:
					if random.IntN(4) == 0 {
						o.Forget(true)
					}
				case 3:
					r.reload(func(cfg *config.Config) { configure(cfg, 1+random.IntN(3)) })
				case 4:
					got = proxied.do("tools/list", "{}")
				case 5, 6:
					got = modern.call("whoami", "{}", meta)
				case 7, 8:
					got = asked.call("run", `{"tool":"mail__whoami"}`, "")
				default:
					got = proxied.call("mail__whoami", "{}", "")
				}
				if got == nil {
					continue
				}
				for _, user := range mcptest.Owners(string(got.Result) + string(got.Error)) {
					served.Add(1)
					if user != "user-of-"+key {
						t.Errorf("%s got %s %s", key, got.Result, got.Error)
					}
				}
			}
		})
	}
	all.Wait()
	if served.Load() == 0 {
		t.Error("no call was served, want some")
	}
}

// A caller whose tokens are revoked, and one whose token lacks a scope, is asked to log in again, and gets what it needs.
func TestLoginAgain(t *testing.T) {
	o := &mcptest.OAuth{}
	needs := atomic.Pointer[string]{}
	o.Needs = func(*http.Request) string {
		if scope := needs.Load(); scope != nil {
			return *scope
		}
		return ""
	}
	r := start(t, withMail(t, o))
	c, ann := r.dialAt("/proxy/mcp", "", bearer("k1")), newBrowser(t, "ann")
	ann.logIn(r.base+"/login/mail", "k1")
	wantText(t, c.call("mail__whoami", "{}", ""), "mail of ann")
	o.Forget(false)
	wantText(t, c.call("mail__whoami", "{}", ""), "mail of ann")
	if got := o.Count("refresh_token"); got == 0 {
		t.Error("got no refresh, want one")
	}
	o.Forget(true)
	link := wantLink(t, c.call("mail__whoami", "{}", ""))
	ann.logIn(link, "k1")
	wantText(t, c.call("mail__whoami", "{}", ""), "mail of ann")
	write := "write"
	needs.Store(&write)
	link = wantLink(t, c.call("mail__whoami", "{}", ""))
	ann.logIn(link, "k1")
	wantText(t, c.call("mail__whoami", "{}", ""), "mail of ann")
}

// A login that cannot begin, because the provider is down, says so; a caller has only so many at a time.
func TestLoginCannotBegin(t *testing.T) {
	o := &mcptest.OAuth{NoMeta: 500}
	r := start(t, withMail(t, o))
	if status, page := newBrowser(t, "ann").enter(r.base+"/login/mail", "k1"); status != 502 || !strings.Contains(page, "cannot begin") {
		t.Errorf("got %d %s, want that the login cannot begin", status, page)
	}
	other := &mcptest.OAuth{}
	r = start(t, withMail(t, other))
	stay := newBrowser(t, "ann")
	stay.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for range 5 {
		if status, page := stay.enter(r.base+"/login/mail", "k1"); status != 303 {
			t.Fatalf("got %d %s, want a redirect", status, page)
		}
	}
	if status, _ := stay.enter(r.base+"/login/mail", "k1"); status != 429 {
		t.Errorf("got %d for another login of the caller, want 429", status)
	}
	if status, _ := stay.enter(r.base+"/login/mail", "k2"); status != 303 {
		t.Errorf("got %d for a login of another caller, want a redirect", status)
	}
}

// A key that a reload removes is of no use for a login that has begun.
func TestLoginOfRemovedKey(t *testing.T) {
	o := &mcptest.OAuth{}
	mail := mailbox(t, o)
	r := start(t, func(opts *app.Options) {
		opts.Config.Servers = append(opts.Config.Servers, mail)
		opts.Config.Auth.APIKeys = keys("k1", "k2")
	})
	o.Back = func(url.Values) {
		r.reload(func(cfg *config.Config) {
			cfg.Servers = append(cfg.Servers, mail)
			cfg.Auth.APIKeys = keys("k2")
		})
	}
	if status, page := newBrowser(t, "ann").enter(r.base+"/login/mail", "k1"); status != 502 || !strings.Contains(page, "not valid any more") {
		t.Errorf("got %d %s, want that the key is not valid", status, page)
	}
	if got := o.Count("authorization_code"); got != 0 {
		t.Errorf("got %d requests for a token, want none", got)
	}
}

// A login that has begun for another address of the server than the configuration now has is not stored.
func TestLoginOfMovedServer(t *testing.T) {
	o := &mcptest.OAuth{}
	mail := mailbox(t, o)
	r := start(t, func(opts *app.Options) {
		opts.Config.Servers = append(opts.Config.Servers, mail)
		opts.Config.Auth.APIKeys = keys("k1")
	})
	o.Back = func(url.Values) {
		r.reload(func(cfg *config.Config) {
			moved := mail
			moved.URL += "/moved"
			cfg.Servers = append(cfg.Servers, moved)
			cfg.Auth.APIKeys = keys("k1")
		})
	}
	if status, page := newBrowser(t, "ann").enter(r.base+"/login/mail", "k1"); status != 502 || !strings.Contains(page, "has changed") {
		t.Errorf("got %d %s, want that the server has changed", status, page)
	}
}

// published sends requests to the router's public address to the router.
type published struct {
	http.RoundTripper
	router string // HOST:PORT
}

// RoundTrip implements http.RoundTripper.
func (p published) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "https" {
		r = r.Clone(r.Context())
		r.URL.Scheme, r.URL.Host, r.Host = "http", p.router, p.router
	}
	return p.RoundTripper.RoundTrip(r)
}

// The subject of access tokens logs in on the public address of the router, and another token of the subject serves.
func TestLoginOfTokenSubject(t *testing.T) {
	issuer := bearertest.New(t)
	mail := mailbox(t, &mcptest.OAuth{})
	r := start(t, func(opts *app.Options) {
		opts.Config.Servers = append(opts.Config.Servers, mail)
		withTokens(&opts.Config, issuer)
	})
	token := func(subject string) map[string]string {
		return bearer(issuer.Token(bearertest.Claims{"sub": subject, "jti": rand.Text()}))
	}
	ann := r.dialAt("/servers/mail/mcp", "", token("ann"))
	link := wantLink(t, ann.call("whoami", "{}", ""))
	if link != bearertest.Audience+"/login/mail" {
		t.Errorf("got the page %s, want it on the address of the audience", link)
	}
	b := newBrowser(t, "ann")
	b.Transport = published{b.Transport, r.Addr()}
	b.logIn(link, strings.TrimPrefix(token("ann")["Authorization"], "Bearer "))
	wantText(t, ann.call("whoami", "{}", ""), "mail of ann")
	wantText(t, r.dialAt("/proxy/mcp", "", token("ann")).call("mail__whoami", "{}", ""), "mail of ann")
	wantLink(t, r.dialAt("/proxy/mcp", "", token("bob")).call("mail__whoami", "{}", ""))
	for endpoint, want := range map[string]int{"/mcp": 200, "/proxy/sse": 200, "/servers/mail/mcp": 200, "/servers/other/mcp": 401} {
		one := issuer.Token(bearertest.Claims{"sub": "cid", "jti": rand.Text(), "aud": bearertest.Audience + endpoint})
		if status, page := b.enter(link, one); status != want {
			t.Errorf("a token for %s: got %d %s, want %d", endpoint, status, page, want)
		}
	}
}

// A client on stdio is no caller that could log in.
func TestLoginNeedsCaller(t *testing.T) {
	r := prepare(t, withMail(t, &mcptest.OAuth{}))
	c, end := r.dialStdio("")
	if got := c.call("run", `{"tool":"mail__whoami"}`, ""); strings.Contains(string(got.Result), "mail of") ||
		!strings.Contains(string(got.Error)+string(got.Result), "neither an API key nor an access token") {
		t.Errorf("got %s %s, want that there is no caller", got.Error, got.Result)
	}
	if err := end(); err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

// Clients of the official SDK show the page, in either era.
func TestLoginByOfficialSDK(t *testing.T) {
	r := start(t, withMail(t, &mcptest.OAuth{}))
	for key, version := range map[string]string{"k1": "2025-11-25", "k2": "2026-07-28"} {
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		asked := make(chan string, 1)
		client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
			Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}},
			ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked <- req.Params.URL
				return &mcp.ElicitResult{Action: "accept"}, nil
			},
		})
		session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: r.base + "/proxy/mcp",
			HTTPClient: &http.Client{Transport: mcptest.WithKey(transport, key)}}, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		t.Cleanup(func() { session.Close() })
		called := make(chan string, 1)
		go func() {
			result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "mail__login", Arguments: map[string]any{}})
			called <- fmt.Sprint(err, result != nil && !result.IsError)
		}()
		newBrowser(t, "user of "+key).logIn(awaitPage(t, asked), key)
		if got := <-called; got != "<nil> true" {
			t.Errorf("%s: got %s, want that the call succeeds after the login", version, got)
		}
		list, err := session.ListTools(ctx, nil)
		if err != nil || len(list.Tools) != 2 {
			t.Errorf("%s: got %v, %v, want the tools of the user", version, list, err)
		}
	}
}

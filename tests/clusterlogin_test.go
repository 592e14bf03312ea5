package tests

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
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

	"github.com/agenticnexus/agenticnexus/tests/clustertest"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// mailCluster starts n replicas before a mailbox, for the callers ann and bob, whose keys are their names.
func mailCluster(t *testing.T, o *mcptest.OAuth, n int) *replicated {
	t.Helper()
	t.Cleanup(mcptest.ServeOAuth(o, mcptest.Mailbox()))
	return clusterOf(t, n, fmt.Sprintf("{url: %q, auth: {scope: per_caller}}", o.URL+"/mcp"),
		fmt.Sprintf("auth: {api_keys: [{name: ann, sha256: %x}, {name: bob, sha256: %x}]}",
			sha256.Sum256([]byte("ann")), sha256.Sum256([]byte("bob"))))
}

// client returns a client of a caller, which sends the pages that it is asked to show.
func (c *replicated) client(router, key string) (client *mcptest.Client, pages chan string) {
	pages = make(chan string, 10)
	return &mcptest.Client{
		URL: router + "/proxy/mcp", HTTP: &http.Client{Transport: mcptest.WithKey(c.http.Transport, key)},
		Capabilities: `{"elicitation":{"url":{}}}`,
		Answers: func(m mcptest.Message) string {
			var p struct{ URL string }
			if json.Unmarshal(m.Params, &p) != nil || p.URL == "" {
				c.t.Errorf("got %s %s, want an elicitation with a URL", m.Method, m.Params)
			}
			pages <- p.URL
			return `{"action":"accept"}`
		},
	}, pages
}

// caller opens a session of a client at a replica, which hears of changes.
func (c *replicated) caller(r *clustertest.Replica, key string) (client *mcptest.Client, pages chan string) {
	c.t.Helper()
	client, pages = c.client(r.URL(), key)
	if err := client.Initialize(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	done, err := client.Listen(ctx, "")
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { cancel(); <-done })
	return client, pages
}

// whoami begins a call that tells whose mailbox it is.
func (c *replicated) whoami(client *mcptest.Client) <-chan mcptest.Reply {
	done := make(chan mcptest.Reply, 1)
	go func() {
		ctx, cancel := context.WithTimeout(c.t.Context(), patience)
		defer cancel()
		done <- client.Call(ctx, "work__whoami", "{}")
	}()
	return done
}

func wantMail(t *testing.T, got mcptest.Reply, of string) {
	t.Helper()
	if got.Text() != "mail of "+of {
		t.Errorf("got %s %s, want the mail of %s", got.Error, got.Result, of)
	}
}

// at returns the address of a page at another router.
func pageAt(t *testing.T, page, router string) string {
	t.Helper()
	u, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	return router + u.Path
}

// enter shows a key on a page, from a browser of a person, which meets any replica.
func (c *replicated) enter(person, page, key string) (status int, text string) {
	c.t.Helper()
	b := mcptest.NewBrowser(person)
	defer b.CloseIdleConnections()
	status, text, err := b.Enter(page, key)
	if err != nil {
		c.t.Fatal(err)
	}
	return status, text
}

// A caller's browser meets any replica behind a balancer, its calls wait at others, and all of them know the login.
func TestCluster_Logins(t *testing.T) {
	t.Parallel()
	o := &mcptest.OAuth{}
	var needs, back atomic.Value
	needs.Store("")
	back.Store(func(url.Values) {})
	o.Needs = func(*http.Request) string { return needs.Load().(string) }
	o.Back = func(answer url.Values) { back.Load().(func(url.Values))(answer) }
	c := mailCluster(t, o, 2)
	one, other := c.replicas[0], c.replicas[1]
	annOne, pages := c.caller(one, "ann")
	annOther, others := c.caller(other, "ann")
	bob, bobs := c.caller(other, "bob")
	list := func(client *mcptest.Client) string {
		return string(client.Do(t.Context(), "tools/list", "{}").Result)
	}
	for _, client := range []*mcptest.Client{annOne, annOther, bob} {
		if got := list(client); !strings.Contains(got, "work__login") || strings.Contains(got, "whoami") {
			t.Errorf("got the tools %s before the login", got)
		}
	}

	// A login that fails ends the call at whose replica its page is, wherever the browser comes.
	back.Store(func(answer url.Values) { answer.Del("code"); answer.Set("error", "access_denied") })
	call := c.whoami(annOne)
	if status, text := c.enter("ann", pageAt(t, <-pages, c.front), "ann"); status != http.StatusBadGateway {
		t.Errorf("got %d %s, want that the login fails", status, text)
	}
	if got := <-call; !strings.Contains(string(got.Error), "access_denied") {
		t.Errorf("got %s %s, want why the login has failed", got.Error, got.Result)
	}
	back.Store(func(url.Values) {})

	// Calls of the caller wait at both replicas, and one of another caller. One login serves the caller's alone.
	calls := []<-chan mcptest.Reply{c.whoami(annOne), c.whoami(annOther)}
	bobCall, bobPage := c.whoami(bob), pageAt(t, <-bobs, c.front)
	<-others
	if status, text := c.enter("ann", pageAt(t, <-pages, c.front), "ann"); status != http.StatusOK {
		t.Fatalf("got %d %s, want a login", status, text)
	}
	for _, call := range calls {
		wantMail(t, <-call, "ann")
	}
	for _, client := range []*mcptest.Client{annOne, annOther} {
		mcptest.Eventually(t, "list_changed at "+client.URL, func() bool {
			return client.Heard("notifications/tools/list_changed", "")
		})
		if got := list(client); !strings.Contains(got, "work__of_ann") {
			t.Errorf("got the tools %s after the login, want those of ann", got)
		}
	}
	if got := list(bob); !strings.Contains(got, "work__login") || strings.Contains(got, "whoami") {
		t.Errorf("got the tools %s of another caller, want the login", got)
	}
	if status, text := c.enter("bob", bobPage, "bob"); status != http.StatusOK {
		t.Fatalf("got %d %s, want a login", status, text)
	}
	wantMail(t, <-bobCall, "bob")

	// One replica renews a token for all.
	o.Forget(false)
	wantMail(t, <-c.whoami(annOne), "ann")
	wantMail(t, <-c.whoami(annOther), "ann")
	wantMail(t, <-c.whoami(bob), "bob")
	if o.Count("refresh_token") != 2 || o.Count("reuse") != 0 {
		t.Errorf("got %d renewals and %d refresh tokens used again, want 2 and none", o.Count("refresh_token"), o.Count("reuse"))
	}

	// What a call lacks, its replica asks for, wherever the browser comes.
	needs.Store("write")
	call = c.whoami(annOther)
	if status, text := c.enter("ann", pageAt(t, <-others, one.URL()), "ann"); status != http.StatusOK {
		t.Errorf("got %d %s, want a login", status, text)
	}
	wantMail(t, <-call, "ann")
	wantMail(t, <-c.whoami(annOne), "ann")
	needs.Store("")

	// The command shows the logins, without secrets, and ends one at all replicas.
	out, code := c.nexus("auth", "status", "--config", c.config)
	for _, want := range []string{`work of ann +code +logged in since`, `work of bob +code +logged in since`} {
		if !regexp.MustCompile(want).MatchString(out) || code != 0 || strings.Contains(out, "access-") {
			t.Errorf("auth status: got %q and exit code %d, want %s", out, code, want)
		}
	}
	if out, code := c.nexus("auth", "logout", "work", "--key", "ann", "--config", c.config); code != 0 || o.Count("revoke") != 2 {
		t.Errorf("auth logout: got %q, exit code %d and %d revocations, want one of each token", out, code, o.Count("revoke"))
	}
	for _, client := range []*mcptest.Client{annOne, annOther} {
		mcptest.Eventually(t, "no tools of ann at "+client.URL, func() bool {
			got := list(client)
			return strings.Contains(got, "work__login") && !strings.Contains(got, "whoami")
		})
	}
	wantMail(t, <-c.whoami(bob), "bob")

	// Requests of a client of 2026-07-28 meet any replica.
	modern, shown := c.client(c.front, "ann")
	modern.Version = mcptest.Modern
	call = c.whoami(modern)
	if status, text := c.enter("ann", <-shown, "ann"); status != http.StatusOK {
		t.Errorf("got %d %s, want a login", status, text)
	}
	wantMail(t, <-call, "ann")

	// The command also ends the login of a key that is no longer configured.
	c.edit(fmt.Sprintf(", {name: bob, sha256: %x}", sha256.Sum256([]byte("bob"))), "")
	if out, code := c.nexus("auth", "logout", "work", "--key", "bob", "--config", c.config); code != 0 || o.Count("revoke") != 4 {
		t.Errorf("auth logout: got %q, exit code %d and %d revocations, want two more", out, code, o.Count("revoke"))
	}
	for i, log := range c.logs {
		if regexp.MustCompile(`(access|refresh|code)-\d`).MatchString(log.String()) {
			t.Errorf("the log of %s has a token or a code", c.replicas[i].Name)
		}
	}
}

// Callers log in, call and list at all replicas at random, while tokens end: no call and no list is that of another one.
func TestCluster_NoCallUsesAnothersToken(t *testing.T) {
	t.Parallel()
	const steps = 40
	o := &mcptest.OAuth{}
	c := mailCluster(t, o, 2)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var all sync.WaitGroup
	var served atomic.Int64
	for i, key := range []string{"ann", "bob"} {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		var clients []*mcptest.Client
		for _, r := range c.replicas {
			client, _ := c.caller(r, key)
			client.Capabilities = "{}" // it only gets the address
			if err := client.Initialize(t.Context()); err != nil {
				t.Fatal(err)
			}
			clients = append(clients, client)
		}
		all.Go(func() {
			for range steps {
				var got mcptest.Reply
				switch client := clients[random.IntN(2)]; random.IntN(8) {
				case 0, 1:
					if status, text := c.enter(key, c.front+"/login/work", key); status != http.StatusOK {
						t.Errorf("login: got %d %s", status, text)
					}
				case 2:
					o.Forget(false)
				case 3:
					got = client.Do(t.Context(), "tools/list", "{}")
				default:
					got = <-c.whoami(client)
				}
				for _, user := range mcptest.Owners(string(got.Result) + string(got.Error)) {
					served.Add(1)
					if user != key {
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
	if o.Count("reuse") != 0 {
		t.Errorf("got %d refresh tokens used again, want none", o.Count("reuse"))
	}
}

// A login that has begun ends with its replica. The next one begins elsewhere, also on the page of the old one.
func TestCluster_LoginWhoseReplicaDies(t *testing.T) {
	t.Parallel()
	o := &mcptest.OAuth{}
	c := mailCluster(t, o, 2)
	one, other := c.replicas[0], c.replicas[1]
	ann, pages := c.caller(one, "ann")
	lost := c.whoami(ann)
	page := pageAt(t, <-pages, other.URL())
	o.Back = func(url.Values) { one.Kill() }
	mcptest.Eventually(t, "the death of "+one.Name+" to show", func() bool {
		status, text := c.enter("ann", page, "ann")
		switch {
		case status == http.StatusBadRequest && strings.Contains(text, "belongs to no login"):
			return true
		case status == http.StatusOK: // a login that has begun after the death
			return true
		case status != http.StatusServiceUnavailable:
			t.Fatalf("got %d %s", status, text)
		}
		return false
	})
	<-lost
	if status, text := c.enter("ann", page, "ann"); status != http.StatusOK {
		t.Errorf("got %d %s, want a login", status, text)
	}
	ann, _ = c.caller(other, "ann")
	wantMail(t, <-c.whoami(ann), "ann")
}

// Without NATS those who have logged in go on, and others are told that nobody can log in now.
func TestCluster_LoginWithoutNATS(t *testing.T) {
	t.Parallel()
	c := mailCluster(t, &mcptest.OAuth{}, 2)
	one, other := c.replicas[0], c.replicas[1]
	ann, _ := c.caller(one, "ann")
	bob, pages := c.caller(one, "bob")
	if status, text := c.enter("ann", other.URL()+"/login/work", "ann"); status != http.StatusOK {
		t.Fatalf("got %d %s, want a login", status, text)
	}
	wantMail(t, <-c.whoami(ann), "ann")
	call := c.whoami(bob)
	page := <-pages
	c.nats.Stop()
	wantMail(t, <-c.whoami(ann), "ann")
	if status, text := c.enter("bob", page, "bob"); status != http.StatusBadGateway || !strings.Contains(text, "cannot be reached") {
		t.Errorf("got %d %s, want that the state cannot be reached", status, text)
	}
	if got := <-call; !strings.Contains(string(got.Error), "cannot be reached") {
		t.Errorf("got %s %s, want why the login has failed", got.Error, got.Result)
	}
	wantMail(t, <-c.whoami(ann), "ann")
}

// The logins of callers at a router that ran alone go on when it becomes a replica.
func TestCluster_TakesOverLogins(t *testing.T) {
	t.Parallel()
	c := mailCluster(t, &mcptest.OAuth{}, 0)
	clustered := fmt.Sprintf("cluster: {nats: {url: %q}}\n", c.nats.URL())
	c.edit(clustered, "")
	one, other := c.replica("r1"), c.replica("r2")
	c.start(one)
	if status, text := c.enter("ann", one.URL()+"/login/work", "ann"); status != http.StatusOK {
		t.Fatalf("got %d %s, want a login", status, text)
	}
	one.Stop()
	c.edit("mcpServers", clustered+"mcpServers")
	for _, r := range []*clustertest.Replica{one, other} {
		c.start(r)
		ann, _ := c.caller(r, "ann")
		wantMail(t, <-c.whoami(ann), "ann")
		bob, pages := c.caller(r, "bob")
		ctx, cancel := context.WithCancel(t.Context())
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			bob.Call(ctx, "work__whoami", "{}")
		}()
		<-pages
		cancel()
		<-asked
	}
	state := filepath.Join(c.dir, one.Name, ".local", "state", "agenticnexus")
	if files, err := os.ReadDir(filepath.Join(state, "tokens", "callers")); err != nil || strings.Contains(fmt.Sprint(files), ".json ") {
		t.Errorf("got the files %v (%v), want no tokens", files, err)
	}
}

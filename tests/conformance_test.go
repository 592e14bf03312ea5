package tests

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/tests/clustertest"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// impossible are the checks of 2026-07-28 that fail in front of a server without it, and why no router can mend that.
// Names are those of scenarios, or of checks in them.
var impossible = map[string]string{
	"input-required-result-basic-elicitation": "requests of handshake servers have no keys, and the check wants its own",
	"input-required-result-capability-check": "a handshake server learns of capabilities once in its session, which " +
		"clients of 2026-07-28 share",
	"server-stateless sep-2575-server-rejects-undeclared-capability": "as before; the tool asks for nothing and reads the " +
		"capabilities of the session",
	"server-stateless sep-2575-missing-capability-http-400": "it needs the error of the check before",
}

// The official conformance suites against the everything-server of go-sdk. Through one router it must pass all that it
// passes directly, and through a balancer in front of three replicas the same checks as through one router. In front of
// the server without 2026-07-28, it must pass what the server with it passes, but for what is impossible.
func TestConformance(t *testing.T) {
	t.Parallel()
	c := others(t)
	file := filepath.Join(t.TempDir(), "everything-server")
	build := exec.Command("go", "build", "-o", file, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the everything-server: %v\n%s", err, out)
	}
	handshake := func() string { return everythingServer(t, file, true) }
	modern := everythingServer(t, file, false)
	suites := []struct {
		name, server string
		pack         string // folder in node_modules
		args         []string
		url, direct  string // of the server behind the router, and of the one to compare with
		impossible   map[string]string
	}{
		// The third suite meets a server without 2026-07-28, the last one a server without a handshake; those between
		// meet a server of both eras.
		{"all", "work", "@modelcontextprotocol/conformance", []string{"--suite", "all"}, handshake(), "", nil},
		{"2025-11-25", "old", "conformance-next", []string{"--requirements", "2025-11-25"}, handshake(), "", nil},
		{"2026-07-28", "bridged", "conformance-next", []string{"--requirements", "2026-07-28"}, handshake(), modern, impossible},
		{"2026-07-28 at both", "both", "conformance-next", []string{"--requirements", "2026-07-28"}, modern, "", nil},
		{"2025-11-25 at both", "both-old", "conformance-next", []string{"--requirements", "2025-11-25"}, modern, "", nil},
		{"2026-07-28 at the server too", "modern", "conformance-next", []string{"--requirements", "2026-07-28"},
			refusesHandshake(t, modern), modern, nil},
	}
	servers := ""
	for _, s := range suites {
		servers += fmt.Sprintf(", %s: {url: %q}", s.server, s.url)
	}
	servers = strings.TrimPrefix(servers, ", work: ")
	router, replicas := serve(t, "mcpServers: {work: "+servers+"}"), clusterOf(t, 3, servers)
	for _, tt := range suites {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := "/servers/" + tt.server + "/mcp"
			scores := func(url string) (map[string]score, []string) { return c.conformance(t, tt.pack, url, tt.args, 20) }
			// The suites wait 1.5 s for some notifications, so on a busy machine a difference counts only if it comes twice.
			for try := 1; ; try++ {
				directly, _ := scores(cmp.Or(tt.direct, tt.url))
				through, failures := scores(router.url + path)
				balanced, more := scores(replicas.balancer.URL() + path)
				var worse []string
				fails := map[string]bool{} // of what is impossible
				for name, want := range directly {
					if through[name].passed >= want.passed && through[name].failed <= want.failed {
						continue
					}
					scenario, _, _ := strings.Cut(name, " ")
					switch {
					case tt.impossible[name] != "":
						fails[name] = true
					case tt.impossible[scenario] != "":
						fails[scenario] = true
					default:
						worse = append(worse, name)
					}
				}
				if len(worse) == 0 && len(fails) == len(tt.impossible) && maps.Equal(balanced, through) {
					return
				}
				t.Logf("worse: %q; impossible: %v of %d\ndirectly: %v\nthrough one router: %v, %q\nthrough the balancer: %v, %q", worse, fails, len(tt.impossible), directly, through, failures, balanced, more)
				if try == 2 {
					t.Fatal("got other passes through the router than directly, or through the balancer than through one router")
				}
			}
		})
	}
}

// The scenarios of the tasks extension against a server that has all of it. Through the router, alone and as one of all
// servers, it must pass what it passes directly.
func TestConformance_Tasks(t *testing.T) {
	t.Parallel()
	c := others(t)
	s := httptest.NewServer(&mcptest.Server{Version: mcptest.Modern, OnHTTP: mcptest.CheckHeaders})
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	router := serve(t, "mcpServers: {tasks: {url: "+s.URL+"}}\nproxy: {resource_names: scheme}") // valid URIs
	for _, scenario := range []string{"tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields",
		"tasks-request-state-removal", "tasks-mrtr-input", "tasks-request-headers", "tasks-dispatch-and-envelope",
		"tasks-required-task-error", "tasks-mrtr-composition"} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			args := []string{"--scenario", scenario, "--spec-version", mcptest.Modern, "--force"}
			directly, failures := c.conformance(t, "conformance-next", s.URL, args, 1)
			if len(directly) == 0 || len(failures) > 0 {
				t.Errorf("directly: got %v, %q, want no failure", directly, failures)
			}
			for _, url := range []string{router.url + "/servers/tasks/mcp", prefixing(t, router.url+"/proxy/mcp", "tasks__")} {
				if through, failures := c.conformance(t, "conformance-next", url, args, 1); !maps.Equal(through, directly) {
					t.Errorf("%s: got %v, %q, want %v as directly", url, through, failures, directly)
				}
			}
		})
	}
}

// prefixing returns the URL of a server that passes on all, with a prefix before the names of tools that are called.
func prefixing(t *testing.T, server, prefix string) string {
	t.Helper()
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	pass := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL, r.Out.Host = to, to.Host
		body, _ := io.ReadAll(r.In.Body) // a client that has gone reads no answer
		if name := r.In.Header.Get("Mcp-Name"); jsonrpc.Text(jsonrpc.Get(body, "method")) == "tools/call" {
			params := jsonrpc.Get(body, "params")
			named := jsonrpc.Set(params, "name", []byte(jsonrpc.StringID(prefix+jsonrpc.Text(jsonrpc.Get(params, "name")))))
			body = jsonrpc.Set(body, "params", named)
			r.Out.Header.Set("Mcp-Name", prefix+name)
		}
		r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}}
	s := httptest.NewServer(pass)
	t.Cleanup(s.Close)
	return s.URL
}

// score counts the checks of a scenario with one id.
type score struct{ passed, failed int }

var scenarioFolder = regexp.MustCompile(`^server-(\S+)-\d{4}-\d\d-\d\dT\S+$`)

// conformance runs a version of the suite against a server, with at least some scenarios. It returns the scores by
// scenario and check, and why checks did not pass.
func (c counterparts) conformance(
	t *testing.T, pack, server string, args []string, least int,
) (map[string]score, []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*patience)
	defer cancel()
	suite, results := filepath.Join(c.folder, "node_modules", filepath.FromSlash(pack), "dist", "index.js"), t.TempDir()
	cmd := exec.CommandContext(ctx, c.node, append([]string{suite, "server", "--url", server, "--output-dir", results}, args...)...)
	cmd.Dir = results
	out, err := cmd.CombinedOutput() // it fails with any check, which the scores tell
	files, _ := filepath.Glob(filepath.Join(results, "*", "checks.json"))
	scores, failures := map[string]score{}, []string{}
	for _, file := range files {
		var checks []struct{ ID, Status, ErrorMessage string }
		scenario := scenarioFolder.FindStringSubmatch(filepath.Base(filepath.Dir(file)))
		if text, err := os.ReadFile(file); err != nil || json.Unmarshal(text, &checks) != nil || scenario == nil {
			t.Fatalf("%s: got %s, %v", file, text, err)
		}
		for _, check := range checks {
			if check.ErrorMessage != "" {
				failures = append(failures, fmt.Sprintf("%s %s: %s", scenario[1], check.ID, check.ErrorMessage))
			}
			name := scenario[1] + " " + check.ID
			s := scores[name]
			switch check.Status {
			case "SUCCESS":
				s.passed++
			case "FAILURE":
				s.failed++
			}
			scores[name] = s
		}
	}
	if len(files) < least {
		t.Fatalf("got %d scenarios (%v), want all:\n%s", len(files), err, out)
	}
	return scores, failures
}

// everythingServer starts go-sdk's server for the suite, with or without sessions, and returns its URL.
func everythingServer(t *testing.T, program string, sessions bool) string {
	t.Helper()
	address := freeAddress(t)
	cmd := exec.Command(program, "-http", address, fmt.Sprintf("-stateless=%t", !sessions))
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		_ = cmd.Wait()         // with the signal
		if t.Failed() {
			t.Logf("log of the everything-server:\n%s", &log)
		}
	})
	mcptest.Eventually(t, "the everything-server to listen", func() bool {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
	return "http://" + address
}

// refusesHandshake returns the URL of a server that passes on all but initialize.
func refusesHandshake(t *testing.T, server string) string {
	t.Helper()
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(to)
	pass.FlushInterval = -1
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a client that has gone reads no answer
		var m mcptest.Message
		if json.Unmarshal(body, &m) == nil && m.Method == "initialize" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`, m.ID)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// freeAddress returns an address of the loopback that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	port, err := clustertest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return "127.0.0.1:" + strconv.Itoa(port)
}

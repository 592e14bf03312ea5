package tests

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/agenticnexus/agenticnexus/tests/clustertest"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// excuse names checks that fail through the router though they pass directly.
type excuse struct {
	Checks                 []string // scenarios, or checks in them
	Suites, Servers, Paths []string // empty = all
	Reason                 string
}

// excused returns the names in testdata/conformance.yaml for a suite that meets a server on a path.
func excused(t *testing.T, suite, server, path string) (names []string) {
	t.Helper()
	var all []excuse
	text, err := os.ReadFile(filepath.Join("testdata", "conformance.yaml"))
	if err := errors.Join(err, yaml.UnmarshalWithOptions(text, &all, yaml.Strict())); err != nil {
		t.Fatal(err)
	}
	has := func(list []string, name string) bool { return len(list) == 0 || slices.Contains(list, name) }
	for _, e := range all {
		if e.Reason == "" {
			t.Errorf("%q have no reason", e.Checks)
		}
		if has(e.Suites, suite) && has(e.Servers, server) && has(e.Paths, path) {
			names = append(names, e.Checks...)
		}
	}
	return names
}

// The official conformance suites against the everything-server of go-sdk: one of both eras, one with sessions only, one
// that refuses the handshake, and one over stdio. On the path of the server, on that of all servers, and through a
// balancer in front of three replicas, all passes that passes directly, but for what testdata/conformance.yaml names.
func TestConformance(t *testing.T) {
	t.Parallel()
	c := others(t)
	file, err := everythingServer()
	if err != nil {
		t.Fatal(err)
	}
	both, sessions := sdkServer(t, file, false), sdkServer(t, file, true)
	servers := []struct{ name, config, like string }{ // like is what passes directly in the handshake eras
		{"both", fmt.Sprintf("{url: %q}", both), both},
		{"sessions", fmt.Sprintf("{url: %q}", sessions), sessions},
		{"refuses", fmt.Sprintf("{url: %q}", refusesHandshake(t, both)), both},
		{"stdio", fmt.Sprintf("{command: %q}", file), sessions},
	}
	replicas := clusterOf(t, 3, servers[0].config+", sessions: "+servers[1].config+", refuses: "+servers[2].config)
	for _, suite := range []struct {
		name, pack string // pack is a folder in node_modules
		args       []string
	}{
		{"all", "@modelcontextprotocol/conformance", []string{"--suite", "all"}},
		{"2025-11-25", "conformance-next", []string{"--requirements", "2025-11-25"}},
		{"2026-07-28", "conformance-next", []string{"--requirements", "2026-07-28"}},
	} {
		t.Run(suite.name, func(t *testing.T) {
			t.Parallel()
			scores := func(t *testing.T, url string) (map[string]score, []string) {
				t.Helper()
				return c.conformance(t, suite.pack, url, suite.args, 20)
			}
			directly := map[string]map[string]score{}
			for _, url := range []string{both, sessions} {
				directly[url], _ = scores(t, url)
			}
			for _, server := range servers {
				t.Run(server.name, func(t *testing.T) {
					t.Parallel()
					like := server.like
					if suite.name == "2026-07-28" {
						like = both
					}
					r := serve(t, "mcpServers: {suite: "+server.config+"}")
					paths := map[string]string{"alone": r.url + "/servers/suite/mcp", "all": unprefixed(t, r.url+"/proxy/mcp", "suite")}
					if name := server.name; name != "stdio" {
						paths["balancer"] = replicas.balancer.URL() + "/servers/" + strings.Replace(name, "both", "work", 1) + "/mcp"
					}
					for path, url := range paths {
						// The suites wait 1.5 s for some notifications, so on a busy machine a failure counts only if it comes twice.
						for try := 1; ; try++ {
							through, failures := scores(t, url)
							worse, needless := compare(directly[like], through, excused(t, suite.name, server.name, path))
							if len(worse)+len(needless) == 0 {
								break
							}
							t.Logf("%s: worse: %q; excused, but passed: %q\ndirectly: %v\nthrough: %v, %q", path, worse, needless, directly[like], through, failures)
							if try == 2 {
								t.Errorf("%s: got other passes than directly", path)
								break
							}
						}
					}
				})
			}
		})
	}
}

// compare returns the checks that do worse through the router and have no excuse, and the excuses that none needs.
func compare(directly, through map[string]score, excuses []string) (worse, needless []string) {
	needless = slices.Clone(excuses)
	for name, want := range directly {
		if got := through[name]; got.passed >= want.passed && got.failed <= want.failed {
			continue
		}
		scenario, _, _ := strings.Cut(name, " ")
		if !slices.Contains(excuses, name) && !slices.Contains(excuses, scenario) {
			worse = append(worse, name)
		}
		needless = slices.DeleteFunc(needless, func(e string) bool { return e == name || e == scenario })
	}
	return worse, needless
}

// The scenarios of the tasks extension against a server that has all of it. Through the router, alone and as one of all
// servers, it must pass what it passes directly.
func TestConformance_Tasks(t *testing.T) {
	t.Parallel()
	c := others(t)
	s := httptest.NewServer(&mcptest.Server{Version: mcptest.Modern, OnHTTP: mcptest.CheckHeaders})
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	router := serve(t, "mcpServers: {tasks: {url: "+s.URL+"}}")
	run := func(t *testing.T, url string) (map[string]score, []string) {
		t.Helper()
		scores, failures := c.conformance(t, "conformance-next", url, []string{"--requirements", mcptest.Modern}, 20)
		foreign := func(name string) bool { return !strings.HasPrefix(name, "tasks-") }
		maps.DeleteFunc(scores, func(name string, _ score) bool { return foreign(name) })
		return scores, slices.DeleteFunc(failures, foreign)
	}
	directly, failures := run(t, s.URL)
	for name, got := range directly {
		if got.failed > 0 {
			t.Errorf("directly: got a failure of %s: %q", name, failures)
		}
	}
	if len(directly) < 30 {
		t.Errorf("directly: got %d checks of tasks, want all", len(directly))
	}
	for path, url := range map[string]string{
		"alone": router.url + "/servers/tasks/mcp", "all": unprefixed(t, router.url+"/proxy/mcp", "tasks"),
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			if through, failures := run(t, url); !maps.Equal(through, directly) {
				t.Errorf("got %v, %q, want %v as directly", through, failures, directly)
			}
		})
	}
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

// sdkServer starts go-sdk's server for the suite, with or without sessions, and returns its URL.
func sdkServer(t *testing.T, program string, sessions bool) string {
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

// freeAddress returns an address of the loopback that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	port, err := clustertest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return "127.0.0.1:" + strconv.Itoa(port)
}

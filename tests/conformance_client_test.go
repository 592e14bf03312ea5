package tests

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// Variables that make the test binary the client that the conformance suite tests: go-sdk's, with the
// router on its way to the suite's server.
const (
	driverProgram = "NEXUS_TEST_DRIVER" // path of nexus
	driverClient  = "NEXUS_TEST_CLIENT" // path of go-sdk's client
	suiteScenario = "MCP_CONFORMANCE_SCENARIO"
)

// The suite's client scenarios that are not about authorization pass through the router as they do with
// go-sdk's client alone.
func TestClientConformance(t *testing.T) {
	t.Parallel()
	c := others(t)
	env := driverEnv(t)
	for _, tt := range []struct {
		version, scenario string
		passes            int // checks, as with the client alone
	}{
		{"2025-11-25", "initialize", 1},
		{"2025-11-25", "tools_call", 2},
		{"2025-11-25", "elicitation-sep1034-client-defaults", 5},
		{"2025-11-25", "sse-retry", 3},
		{"2025-11-25", "json-schema-2020-12-preservation", 9},
		{"2026-07-28", "tools_call", 2},
		{"2026-07-28", "request-metadata", 6},
		{"2026-07-28", "http-standard-headers", 9},
		{"2026-07-28", "http-custom-headers", 18},
		{"2026-07-28", "sep-2322-client-request-state", 5},
		{"2026-07-28", "http-invalid-tool-headers", 12},
		{"2026-07-28", "json-schema-ref-no-deref", 1},
		{"2026-07-28", "json-schema-2020-12-preservation", 9},
	} {
		t.Run(tt.version+" "+tt.scenario, func(t *testing.T) {
			got, out, err := c.clientConformance(t, tt.version, tt.scenario, env)
			if err != nil || got.failed > 0 || got.passed < tt.passes {
				t.Errorf("got %d passed and %d failed (%v) through the router, want %d and none:\n%s", got.passed, got.failed, err, tt.passes, out)
			}
		})
	}
}

// driverEnv makes the test binary the client under test.
func driverEnv(t *testing.T) []string {
	t.Helper()
	client, err := everythingClient()
	if err != nil {
		t.Fatal(err)
	}
	return []string{driverProgram + "=" + program, driverClient + "=" + client}
}

var listeningLine = regexp.MustCompile(`msg=listening address=(\S+)`)

var clientScore = regexp.MustCompile(`(?m)^Passed: (\d+)/\d+, (\d+) failed`)

// clientConformance runs a scenario of the suite against drive and returns its score, and an error if not all
// was well.
func (c counterparts) clientConformance(t *testing.T, version, scenario string, env []string) (score, string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	suite := filepath.Join(c.folder, "node_modules", "conformance-next", "dist", "index.js")
	// The suite would wait for half a minute, which is too short while other tests run.
	args := []string{suite, "client", "--command", os.Args[0], "--scenario", scenario, "--timeout", "100000"}
	if version != extension {
		args = append(args, "--spec-version", version)
	}
	cmd := exec.CommandContext(ctx, c.node, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	m := clientScore.FindSubmatch(out)
	if m == nil {
		t.Fatalf("got no score (%v):\n%s", err, out)
	}
	return score{atoi(t, string(m[1])), atoi(t, string(m[2]))}, string(out), err
}

// drive is the client under test: it runs go-sdk's client against nexus, which has the suite's server behind
// it, and returns the exit code. It does what nexus says where that refuses for want of a login.
func drive(server string) int {
	if err := driveTo(server); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func driveTo(server string) error {
	dir, err := os.MkdirTemp("", "nexus-drive-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	auth, err := authFor(os.Getenv(suiteScenario), os.Getenv("MCP_CONFORMANCE_CONTEXT"), dir)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "nexus.yaml")
	text := fmt.Sprintf("state: %q\nmcpServers: {suite: {url: %q%s}}", dir, server, auth)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	nexus := exec.Command(os.Getenv(driverProgram), "serve", "--listen", "127.0.0.1:0", "--config", file)
	nexus.Dir = dir
	log, err := nexus.StderrPipe()
	if err != nil {
		return err
	}
	if err := nexus.Start(); err != nil {
		return err
	}
	listening := make(chan string, 1)
	go func() {
		defer close(listening)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			fmt.Fprintln(os.Stderr, lines.Text())
			if m := listeningLine.FindStringSubmatch(lines.Text()); m != nil {
				listening <- m[1]
			}
		}
	}()
	err = errors.New("nexus ended before it listened")
	if address, ok := <-listening; ok {
		err = runClient("http://"+address+"/servers/suite/mcp", file)
	}
	_ = nexus.Process.Signal(syscall.SIGTERM) // if it has ended, Wait says how
	for range listening {
	}
	return errors.Join(err, nexus.Wait())
}

// runClient runs the suite's scenario with go-sdk's client for it. That client leaves out tools with invalid headers
// itself, so that it could not tell whether the router does: a client that calls all tools takes its place.
func runClient(url, config string) error {
	if os.Getenv(suiteScenario) == "http-invalid-tool-headers" {
		return callAll(url)
	}
	for range 4 {
		var out bytes.Buffer
		client := exec.Command(os.Getenv(driverClient), url)
		if os.Getenv(suiteScenario) == "auth/client-credentials-basic" || os.Getenv(suiteScenario) == "auth/client-credentials-jwt" {
			client.Env = append(os.Environ(), suiteScenario+"=auth/metadata-default") // that the client knows; it does the same
		}
		client.Stdout, client.Stderr = io.MultiWriter(os.Stdout, &out), io.MultiWriter(os.Stderr, &out)
		err := client.Run()
		advice := loginAdvice.FindStringSubmatch(out.String())
		if err == nil || advice == nil {
			return err
		}
		login := exec.Command(os.Getenv(driverProgram), append(strings.Fields(advice[1]), "--config", config)...)
		if err := openPages(login, os.Stderr); err != nil {
			return err
		}
	}
	return errors.New("the client is refused after every login")
}

// callAll calls all tools that a server lists.
func callAll(url string) error {
	client := mcptest.Client{URL: url, HTTP: http.DefaultClient, Version: mcptest.Modern}
	list := client.Do(context.Background(), "tools/list", "{}")
	var listed struct{ Tools []mcptest.Call }
	if err := errors.Join(list.Err, json.Unmarshal(list.Result, &listed)); err != nil {
		return err
	}
	for _, tool := range listed.Tools {
		if called := client.Call(context.Background(), tool.Name, `{}`); called.Err != nil {
			return called.Err
		}
	}
	return nil
}

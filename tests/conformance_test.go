package tests

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// The official conformance suite against the everything-server of go-sdk: through the router it must pass
// all that it passes directly.
func TestConformance(t *testing.T) {
	t.Parallel()
	c := others(t)
	direct := everythingServer(t)
	r := serve(t, fmt.Sprintf("mcpServers: {everything: {url: %q}}", direct))
	for _, tt := range []struct {
		name string
		pack string // folder in node_modules
		args []string
	}{
		{"all", "@modelcontextprotocol/conformance", []string{"--suite", "all"}},
		{"2025-11-25", "conformance-next", []string{"--requirements", "2025-11-25"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want, _ := c.conformance(t, tt.pack, direct, tt.args)
			got, out := c.conformance(t, tt.pack, r.url+"/servers/everything/mcp", tt.args)
			for scenario, w := range want {
				if g := got[scenario]; g.passed < w.passed || g.failed > w.failed {
					t.Errorf("%s: got %d passed and %d failed through the router, want %d and %d as directly",
						scenario, g.passed, g.failed, w.passed, w.failed)
				}
			}
			if t.Failed() {
				t.Logf("through the router:\n%s", out)
			}
		})
	}
}

// score counts the checks of a scenario.
type score struct{ passed, failed int }

var scoreLine = regexp.MustCompile(`(?m)^[✓✗] (\S+): (\d+) passed, (\d+) failed`)

// conformance runs a version of the suite against a server and returns the scores by scenario.
func (c counterparts) conformance(t *testing.T, pack, url string, args []string) (map[string]score, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*patience)
	defer cancel()
	suite := filepath.Join(c.folder, "node_modules", filepath.FromSlash(pack), "dist", "index.js")
	cmd := exec.CommandContext(ctx, c.node, append([]string{suite, "server", "--url", url}, args...)...)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput() // it fails with any check, which the scores tell
	scores := map[string]score{}
	for _, m := range scoreLine.FindAllSubmatch(out, -1) {
		scores[string(m[1])] = score{atoi(t, string(m[2])), atoi(t, string(m[3]))}
	}
	if len(scores) < 20 {
		t.Fatalf("got %d scenarios (%v), want the whole suite:\n%s", len(scores), err, out)
	}
	return scores, string(out)
}

// everythingServer builds and starts go-sdk's server for the suite, with sessions, and returns its URL.
func everythingServer(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "everything-server")
	build := exec.Command("go", "build", "-o", file, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the everything-server: %v\n%s", err, out)
	}
	address := freeAddress(t)
	cmd := exec.Command(file, "-http", address, "-stateless=false")
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

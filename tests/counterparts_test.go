package tests

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// counterparts are installed programs of others.
type counterparts struct {
	t      *testing.T
	folder string // holds node_modules
	node   string
}

// others returns the programs that NEXUS_COUNTERPARTS points to, or skips the test.
func others(t *testing.T) counterparts {
	t.Helper()
	folder := os.Getenv("NEXUS_COUNTERPARTS")
	if folder == "" {
		t.Skip("needs programs of others: run npm ci in tests/counterparts and set NEXUS_COUNTERPARTS to that folder")
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	c := counterparts{t: t, folder: folder, node: filepath.Join(folder, "node_modules", "node", "bin", "node")}
	if _, err := os.Stat(c.node); err != nil {
		t.Fatalf("NEXUS_COUNTERPARTS is set, but node is not there; run npm ci in it: %v", err)
	}
	return c
}

// script returns the path of a file of a package.
func (c counterparts) script(name, file string) string {
	return filepath.Join(c.folder, "node_modules", "@modelcontextprotocol", name, filepath.FromSlash(file))
}

// everything returns the path of server-everything.
func (c counterparts) everything() string { return c.script("server-everything", "dist/index.js") }

// Paths of go-sdk's programs for the conformance suites.
var (
	everythingServer = sync.OnceValues(func() (string, error) { return buildOfSDK("everything-server") })
	everythingClient = sync.OnceValues(func() (string, error) { return buildOfSDK("everything-client") })
)

// buildOfSDK builds a program of go-sdk beside nexus, without the race detector, which would watch go-sdk.
func buildOfSDK(name string) (string, error) {
	file := filepath.Join(filepath.Dir(program), name)
	build := exec.Command("go", "build", "-race=false", "-o", file, "github.com/modelcontextprotocol/go-sdk/conformance/"+name)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", name, err, out)
	}
	return file, nil
}

// listener is a server of others that listens on the loopback.
type listener struct {
	c         counterparts
	transport string
	port      int
	cmd       *exec.Cmd
}

// listen starts server-everything with a transport, sse or streamableHttp, on a free port.
func (c counterparts) listen(transport string) *listener {
	c.t.Helper()
	l := &listener{c: c, transport: transport}
	c.t.Cleanup(func() { l.kill() })
	l.start()
	return l
}

// start starts the server, on the port that it had before.
func (l *listener) start() {
	t := l.c.t
	t.Helper()
	out := &mcptest.Log{}
	l.cmd = exec.Command(l.c.node, "--require", filepath.Join(l.c.folder, "loopback.cjs"), l.c.everything(), l.transport)
	l.cmd.Env = []string{"PORT=" + strconv.Itoa(l.port)}
	l.cmd.Stdout, l.cmd.Stderr = out, out
	if err := l.cmd.Start(); err != nil {
		t.Fatalf("starting server-everything: %v", err)
	}
	port := regexp.MustCompile(`loopback port (\d+)`)
	mcptest.Eventually(t, "server-everything to listen", func() bool { return port.MatchString(out.String()) })
	l.port = atoi(t, port.FindStringSubmatch(out.String())[1])
}

// kill ends the server without warning.
func (l *listener) kill() {
	if l.cmd != nil && l.cmd.Process != nil {
		_ = l.cmd.Process.Kill() // it may have ended by itself
		_ = l.cmd.Wait()         // with the signal
	}
	l.cmd = nil
}

// url is where clients of the server connect.
func (l *listener) url() string {
	path := "/mcp"
	if l.transport == "sse" {
		path = "/sse"
	}
	return "http://127.0.0.1:" + strconv.Itoa(l.port) + path
}

// inspect runs the Inspector's command line and returns what it prints.
func (c counterparts) inspect(args ...string) []byte {
	c.t.Helper()
	out, stderr, code := c.inspector(args...)
	if code != 0 {
		c.t.Fatalf("inspector --cli %s: got exit code %d, want 0\n%s%s", strings.Join(args, " "), code, out, stderr)
	}
	return out
}

func (c counterparts) inspector(args ...string) (stdout, stderr []byte, code int) {
	c.t.Helper()
	cmd := exec.Command(c.node, slices.Concat([]string{c.script("inspector", "clients/launcher/build/index.js"), "--cli"}, args)...)
	dir := c.t.TempDir()
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + filepath.Dir(c.node) + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + dir}
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatalf("starting the Inspector: %v", err)
	}
	return out.Bytes(), log.Bytes(), cmd.ProcessState.ExitCode()
}

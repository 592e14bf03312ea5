package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// browser makes fetch take addresses without a host, as in a page of the router.
const browser = `const fetched = globalThis.fetch;
globalThis.fetch = (address, options) => fetched(new URL(address, %q), options);
`

// The client program in the documentation of search notifications, byte for byte, hears of the change before
// the result.
func TestSearchProgram(t *testing.T) {
	t.Parallel()
	c := others(t)
	r := serve(t, fmt.Sprintf("mcpServers: {files: {command: %q, args: [%q, %q]}}", c.node, c.script("server-filesystem", "dist/index.js"), t.TempDir()))
	mcptest.Eventually(t, "the server to be connected", func() bool { return strings.Contains(r.log.String(), "connected to server") })
	page := filepath.Join(t.TempDir(), "page.mjs")
	if err := os.WriteFile(page, fmt.Appendf(nil, browser, r.url), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(c.node, "--import", page, filepath.Join("testdata", "search.mjs")).CombinedOutput()
	changed, result, found := strings.Cut(string(out), "\n")
	if err != nil || changed != "Tools changed, should refresh tool list" || !found || !strings.HasPrefix(result, "Search results:") || !strings.Contains(result, "tools matching 'file operations'") {
		t.Errorf("got %v and\n%s\nwant word of the change, then the results", err, out)
	}
}

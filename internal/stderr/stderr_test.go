package stderr_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/stderr"
)

// testdata has what real programs wrote to their error output when they ended.
func TestCause(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"node-throw":        "TypeError: Cannot read properties of undefined (reading 'port')",
		"node-missing":      "Error: Cannot find module '/srv/missing.js'",
		"node-esm":          "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'not-a-package-here' imported from /srv/bad.mjs",
		"node-rejection":    "Error: API_KEY is required",
		"node-syntax":       "SyntaxError: Function statements require a function name",
		"python-chained":    "RuntimeError: cannot read settings",
		"python-group":      "KeyError: 'TOKEN'",
		"python-module":     "/usr/bin/python3: No module named nope_mod",
		"go-panic":          "panic: assignment to entry in nil map",
		"sh":                "sh: 1: nope_cmd: not found",
		"bash":              "bash: line 1: nope_cmd: command not found",
		"bash-folder":       "bash: line 1: cd: /nope: No such file or directory",
		"npx-unknown":       "npm error 404 Not Found - GET https://registry.npmjs.org/@modelcontextprotocol%2fserver-does-not-exist-at-all",
		"npm-script":        `npm error Missing script: "nothing"`,
		"npx-package-throw": "Error: no DATABASE_URL given",
		"usage":             "Note: Allowed directories can be provided via:",
	} {
		text, err := os.ReadFile(filepath.Join("testdata", file+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		var tail stderr.Tail
		for line := range strings.Lines(string(text)) {
			tail.Add(line)
		}
		if got := tail.Cause(); got != want {
			t.Errorf("%s: got %q, want %q", file, got, want)
		}
	}
	var none stderr.Tail
	if got := none.Cause(); got != "" {
		t.Errorf("of no lines: got %q", got)
	}
}

// A Tail keeps the last lines within its bounds.
func TestTail(t *testing.T) {
	t.Parallel()
	var tail stderr.Tail
	for i := range 1000 {
		tail.Add(fmt.Sprintf("line %d\n", i))
		tail.Add(" \n")
	}
	last := tail.Last()
	if len(last) != 50 || last[0] != "line 950" || last[49] != "line 999" {
		t.Errorf("got %d lines, %q to %q; want the last 50", len(last), last[0], last[len(last)-1])
	}
	for range 10 {
		tail.Add(strings.Repeat("x", 4000))
	}
	if got := len(strings.Join(tail.Last(), "")); got > 16<<10 {
		t.Errorf("got %d bytes, want at most 16 KiB", got)
	}
	(*stderr.Tail)(nil).Add("nothing keeps it")
}

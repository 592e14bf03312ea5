package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestReasons: docs/queries.md explains every reason why a step may fail, and no other; those of a link are among them.
func TestReasons(t *testing.T) {
	page, err := os.ReadFile("../docs/queries.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Why a step failed")
	table, _, _ = strings.Cut(table, "\n## ")
	var explained []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(table, -1) {
		explained = append(explained, m[1])
	}
	reasons := reasonsOf(t, "../internal/plan")
	slices.Sort(explained)
	slices.Sort(reasons)
	if !slices.Equal(explained, reasons) {
		t.Errorf("docs/queries.md explains %q, want those of package plan, %q", explained, reasons)
	}
	links := reasonsOf(t, "../downstream/link")
	if len(links) == 0 {
		t.Error("package link has no reasons, want some")
	}
	for _, r := range links {
		if !slices.Contains(reasons, r) {
			t.Errorf("package link has the reason %s, which package plan has not", r)
		}
	}
}

// reasonsOf returns the values of a package's constants named Reason….
func reasonsOf(t *testing.T, dir string) (reasons []string) {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
				return true
			}
			if value, ok := spec.Values[0].(*ast.BasicLit); ok {
				if text, err := strconv.Unquote(value.Value); err == nil {
					reasons = append(reasons, text)
				}
			}
			return true
		})
	}
	return reasons
}

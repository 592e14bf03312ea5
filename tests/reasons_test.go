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

// TestReasons: docs/queries.md explains every reason why a step may fail, and no other; packages have none of their own.
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
	reasons := constants(t, "../internal/reason", "")
	slices.Sort(explained)
	slices.Sort(reasons)
	if len(reasons) == 0 || !slices.Equal(explained, reasons) {
		t.Errorf("docs/queries.md explains %q, want those of package reason, %q", explained, reasons)
	}
	for _, dir := range []string{"../internal/plan", "../downstream/link", "../downstream/server", "../downstream"} {
		if own := constants(t, dir, "Reason"); len(own) > 0 {
			t.Errorf("%s has the reasons %q, want them in package reason", dir, own)
		}
	}
}

// constants returns the literal values of a package's constants with a prefix.
func constants(t *testing.T, dir, prefix string) (values []string) {
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
			if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, prefix) {
				return true
			}
			if value, ok := spec.Values[0].(*ast.BasicLit); ok {
				if text, err := strconv.Unquote(value.Value); err == nil {
					values = append(values, text)
				}
			}
			return true
		})
	}
	return values
}

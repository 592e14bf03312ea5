package tests

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/agenticnexus/agenticnexus"

// arrow says what the packages at and below from may import of ours. The arrow with the longest matching
// from counts. A pattern is a package, or with "/..." that package and all below it; "!" takes away.
type arrow struct {
	from  string
	allow []string
}

func arrows() []arrow {
	const anything = "..."
	return []arrow{
		// Leaves.
		{"internal/plan", []string{"internal/lru", "internal/plan/expression", "internal/reason", "internal/schema", "internal/texts"}},
		{"internal/search", []string{"internal/lru", "internal/schema", "internal/texts"}},
		{"internal/llm", []string{"internal/llm/...", "internal/breaker", "internal/redact", "internal/texts", "internal/sse", "internal/pattern"}},
		{"internal/lines", nil},
		{"internal/sse", []string{"internal/lines"}},
		{"downstream/admission", nil},
		{"internal/breaker", nil},
		{"downstream/catalog", []string{"downstream/link", "internal/jsonrpc", "internal/plan", "internal/reason", "internal/texts"}},
		{"downstream/server", []string{"downstream/...", "!downstream", "internal/atomicfile", "internal/breaker", "internal/http1", "internal/jsonrpc", "internal/pins", "internal/plan", "internal/protocol", "internal/reason", "internal/safe", "internal/redact", "internal/stderr", "internal/texts", "internal/tracing"}},
		{"internal/http1", nil},
		{"internal/jsonrpc", nil},
		{"internal/history", []string{"internal/limit"}},
		{"internal/atomicfile", nil},
		{"internal/change", []string{"internal/atomicfile", "internal/texts"}},
		{"internal/jsonc", nil},
		{"internal/lru", nil},
		{"internal/pattern", nil},
		{"internal/pins", []string{"internal/atomicfile", "internal/jsonrpc", "internal/shared", "internal/texts", "internal/pattern"}},
		{"internal/protocol", nil},
		{"internal/shared", []string{"internal/lru"}},
		{"internal/cluster", []string{"internal/http1", "internal/lru", "internal/safe", "internal/shared"}},
		{"internal/shared/jetstream", []string{"internal/shared", "internal/texts"}},
		{"internal/reason", nil},
		{"internal/redact", []string{"internal/pattern"}},
		{"internal/schema", nil},
		{"internal/stderr", []string{"internal/pattern"}},
		{"internal/plan/expression", []string{"internal/texts"}},
		{"internal/texts", nil},
		{"internal/trust", []string{"internal/lru", "internal/plan/expression"}},
		{"internal/audit", []string{"internal/atomicfile"}},
		{"internal/auth", []string{"internal/bearer", "internal/lru", "internal/redact", "internal/texts"}},
		{"internal/bearer", []string{"internal/lru"}},
		{"internal/limit", []string{"internal/shared"}},
		{"internal/telemetry", []string{"internal/telemetry/...", "internal/jsonrpc", "internal/redact", "internal/tracing"}},
		{"internal/tracing", []string{"internal/jsonrpc", "internal/texts"}},
		{"internal", []string{"internal/..."}},
		{"cmd/nexus/clients", []string{"internal/jsonc", "internal/pattern"}},
		{"cmd/nexus/registry", []string{"internal/texts", "internal/pattern"}},
		{"cmd/nexus/batch", []string{"cmd/nexus/batch/...", "cmd/nexus/tape", "internal/llm", "internal/texts"}},
		{"cmd/nexus/batch/cases", []string{"internal/plan/expression", "internal/texts"}},
		{"cmd/nexus/batch/results", []string{"internal/atomicfile"}},
		{"cmd/nexus/batch/stats", nil},
		{"cmd/nexus/batch/report", []string{"cmd/nexus/batch/results", "cmd/nexus/batch/stats", "internal/plan", "internal/texts", "internal/pattern"}},
		// The three that never know each other.
		{"planner", []string{"planner/...", "internal/...", "!internal/auth", "!internal/limit", "!internal/telemetry/..."}},
		{"synth", []string{"synth/...", "internal/...", "!internal/search", "!internal/auth", "!internal/limit", "!internal/telemetry/..."}},
		{"downstream", []string{"downstream/...", "internal/...", "!internal/llm/...", "!internal/search", "!internal/auth", "!internal/limit", "!internal/telemetry/..."}},
		// What holds them together.
		{"router/edge", []string{"router/edge/...", "internal/cluster", "internal/jsonrpc", "internal/lines", "internal/protocol", "internal/reason", "internal/auth", "internal/limit", "internal/safe", "internal/texts", "internal/tracing"}},
		{"router/edge/inbound", []string{"internal/jsonrpc", "internal/protocol", "internal/limit"}},
		{"router/edge/output", []string{"internal/jsonrpc", "internal/limit"}},
		{"router/edge/sessionid", []string{"router/edge/inbound", "internal/jsonrpc", "internal/protocol"}},
		{"router/execution", []string{"downstream/...", "internal/...", "!internal/auth", "!internal/limit", "!internal/llm/...", "!internal/search"}},
		{"router", []string{"router/...", "!router", "planner/...", "synth/...", "downstream/...", "internal/..."}},
		{"config", []string{"config/...", "planner/...", "downstream/...", "router/...", "internal/..."}},
		{"cmd/nexus/app", []string{anything}},
		{"cmd", []string{anything}},
		{"tests", []string{anything}},
	}
}

func below(pkg, root string) bool { return pkg == root || strings.HasPrefix(pkg, root+"/") }

func (a arrow) allows(pkg string) bool {
	allowed := false
	for _, pattern := range a.allow {
		pattern, denies := strings.CutPrefix(pattern, "!")
		root, tree := strings.CutSuffix(pattern, "/...")
		if pattern == "..." || pkg == root || tree && below(pkg, root) {
			allowed = !denies
		}
	}
	return allowed
}

// arrowOf returns the arrow with the longest matching from.
func arrowOf(pkg string) (best arrow, ok bool) {
	for _, a := range arrows() {
		if below(pkg, a.from) && len(a.from) >= len(best.from) {
			best, ok = a, true
		}
	}
	return best, ok
}

// source is one Go file of the module, parsed up to its imports.
type source struct {
	pkg  string // folder below the module, "." for the root
	name string
	file *ast.File
}

func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	root := ".."
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() {
			if name != root && (strings.HasPrefix(base, ".") || base == "testdata" || base == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return fmt.Errorf("parsing %s: %w", name, err)
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		all = append(all, source{pkg: path.Dir(filepath.ToSlash(relative)), name: base, file: file})
		return nil
	})
	if err != nil {
		t.Fatalf("reading the tree: %v", err)
	}
	return all
}

func (s source) isTest() bool { return strings.HasSuffix(s.name, "_test.go") }

// imports returns the packages of ours that the file imports, relative to the module.
func (s source) imports() []string {
	var ours []string
	for _, spec := range s.file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		if relative, ok := strings.CutPrefix(name, module+"/"); ok {
			ours = append(ours, relative)
		}
	}
	return ours
}

// TestImports checks the arrows for everything but tests, which may use real parts of other packages.
func TestImports(t *testing.T) {
	for _, s := range sources(t) {
		if s.isTest() {
			continue
		}
		a, ok := arrowOf(s.pkg)
		if !ok {
			t.Errorf("%s/%s: got a package without an arrow, want one in this file", s.pkg, s.name)
			continue
		}
		for _, imported := range s.imports() {
			if !a.allows(imported) {
				t.Errorf("%s/%s imports %s, want only %s", s.pkg, s.name, imported, strings.Join(a.allow, ", "))
			}
		}
	}
}

// TestArrows checks the arrows themselves on examples.
func TestArrows(t *testing.T) {
	for _, row := range []struct {
		from, to string
		want     bool
	}{
		{"internal/plan", "internal/redact", false},
		{"internal/llm", "internal/redact", true},
		{"internal/llm", "internal/plan", false},
		{"internal/llm/llmtest", "internal/llm", true},
		{"planner/rules", "internal/search", true},
		{"planner", "downstream", false},
		{"planner", "internal/limit", false},
		{"synth", "internal/plan", true},
		{"synth", "planner", false},
		{"downstream/link", "internal/jsonrpc", true},
		{"downstream", "internal/llm", false},
		{"internal/protocol", "internal/jsonrpc", false},
		{"router", "internal/auth", true},
		{"router", "planner", true},
		{"router", "config", false},
		{"router/execution", "router/edge", false},
		{"router/execution", "planner", false},
		{"router/edge", "router", false},
		{"router/edge", "cmd/nexus/app", false},
		{"router/edge", "internal/auth", true},
		{"router/edge", "router/edge/output", true},
		{"router/edge/output", "router/edge", false},
		{"cmd/nexus/app", "config", true},
		{"cmd/nexus/app", "router", true},
		{"config", "router", true},
		{"config", "cmd/nexus/app", false},
		{"cmd/nexus", "config", true},
		{"internal/demo", "internal/texts", true},
		{"internal/demo", "downstream", false},
	} {
		a, _ := arrowOf(row.from)
		if got := a.allows(row.to); got != row.want {
			t.Errorf("%s importing %s: got allowed %t, want %t", row.from, row.to, got, row.want)
		}
	}
}

// TestPackageDocs checks that every package says what it promises, in one place.
func TestPackageDocs(t *testing.T) {
	docs := map[string][]string{}
	for _, s := range sources(t) {
		if s.isTest() {
			continue
		}
		found := docs[s.pkg]
		if s.file.Doc != nil && strings.TrimSpace(s.file.Doc.Text()) != "" {
			found = append(found, s.name)
			if name := s.file.Name.Name; name != "main" && !strings.HasPrefix(s.file.Doc.Text(), "Package "+name+" ") {
				t.Errorf("%s/%s: got a package comment that begins otherwise, want \"Package %s …\"", s.pkg, s.name, name)
			}
		}
		docs[s.pkg] = found
	}
	for pkg, files := range docs {
		if len(files) != 1 {
			slices.Sort(files)
			t.Errorf("%s: got package comments in %d files %v, want exactly one", pkg, len(files), files)
		}
	}
}

package tests

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxUpward is how many references between files of downstream may point to a higher layer.
const maxUpward = 12

// layers are the files of downstream, the lowest first. Each is a layer of its own.
func layers() []string {
	return []string{
		// Values.
		"config.go", "names.go", "timing.go", "latency.go", "messages.go", "failure.go", "identity.go",
		// Tools, and what servers list.
		"tool.go", "listing.go", "options.go",
		// What clients have asked of servers.
		"client.go", "subscriptions.go",
		// One server, as all its sessions share it.
		"monitor.go", "endpoint.go", "mail.go",
		// One session with a server.
		"slot.go", "supervise.go", "lists.go",
		// All sessions with one server, and all servers.
		"server.go", "reload.go",
		// The tools of all servers.
		"owners.go", "catalog.go", "shelves.go", "directory.go",
		// Requests and their middleware.
		"request.go", "toolcall.go", "admit.go", "mrtr.go", "attempt.go", "retry.go", "subscribe.go", "timelimit.go",
		"call.go",
		// What servers send, and the public surface.
		"inbound.go", "dial.go", "sessions.go", "manager.go", "status.go",
	}
}

// TestLayers counts the identifiers of higher layers that each file of downstream refers to.
func TestLayers(t *testing.T) {
	const pkg = module + "/downstream"
	level := map[string]int{}
	for i, name := range layers() {
		level[name] = i
	}
	p := check(t, pkg, filepath.Join("..", "downstream"))
	var names []string
	for _, file := range p.files {
		names = append(names, p.name(file))
	}
	if want := slices.Sorted(slices.Values(layers())); !slices.Equal(names, want) {
		t.Errorf("got the files %v, want a layer for each: %v", names, want)
	}
	upward := map[string]bool{}
	for id, to := range p.info.Uses {
		if to.Pkg() == nil || to.Pkg().Path() != pkg || !to.Pos().IsValid() {
			continue
		}
		from, target := p.name(id), p.name(to)
		if level[from] < level[target] {
			upward[fmt.Sprintf("%s refers to %s of %s", from, p.describe(to), target)] = true
		}
	}
	all := make([]string, 0, len(upward))
	for reference := range upward {
		all = append(all, reference)
	}
	slices.Sort(all)
	if len(all) > maxUpward {
		t.Errorf("got %d references upward, want at most %d:\n%s", len(all), maxUpward, strings.Join(all, "\n"))
	}
	t.Logf("%d references upward:\n%s", len(all), strings.Join(all, "\n"))
}

// checked is a package with its types, without its tests.
type checked struct {
	fset  *token.FileSet
	files []*ast.File
	info  types.Info
}

// check parses and types the package in a folder.
func check(t *testing.T, pkg, folder string) *checked {
	t.Helper()
	p := &checked{fset: token.NewFileSet(), info: types.Info{Uses: map[*ast.Ident]types.Object{}}}
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(p.fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		p.files = append(p.files, file)
	}
	conf := types.Config{Importer: importer.ForCompiler(p.fset, "gc", exports(t, folder))}
	if _, err := conf.Check(pkg, p.fset, p.files, &p.info); err != nil {
		t.Fatalf("checking %s: %v", pkg, err)
	}
	return p
}

// exports returns where the export data of a package's imports is.
func exports(t *testing.T, folder string) importer.Lookup {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", ".")
	list.Dir = folder
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list %s: %v", folder, err)
	}
	files := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		pkg, file, _ := strings.Cut(lines.Text(), "\t")
		files[pkg] = file
	}
	return func(pkg string) (io.ReadCloser, error) { return os.Open(files[pkg]) }
}

func (p *checked) name(at interface{ Pos() token.Pos }) string {
	return filepath.Base(p.fset.Position(at.Pos()).Filename)
}

// describe names what is declared; a method with its receiver.
func (p *checked) describe(o types.Object) string {
	if f, ok := o.(*types.Func); ok {
		if receiver := f.Signature().Recv(); receiver != nil {
			return strings.TrimPrefix(types.TypeString(receiver.Type(), func(*types.Package) string { return "" }), "*") + "." + o.Name()
		}
	}
	return o.Name()
}

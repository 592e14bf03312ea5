package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Bounds of code outside of tests.
const (
	maxMethods = 20 // of a type
	maxFields  = 15 // of a struct, outside of settings
)

// TestSizes checks that types have no more than 20 methods and 15 fields.
func TestSizes(t *testing.T) {
	got := map[string]int{}
	for _, s := range sources(t) {
		if s.isTest() {
			continue
		}
		name := filepath.Join("..", filepath.FromSlash(s.pkg), s.name)
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					got[s.pkg+"."+receiver(d)+": methods"]++
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if spec, ok := spec.(*ast.TypeSpec); ok {
						if fields, ok := spec.Type.(*ast.StructType); ok && !isSettings(fields) {
							got[s.pkg+"."+spec.Name.Name+": fields"] = fields.Fields.NumFields()
						}
					}
				}
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(got)) {
		bound := map[string]int{"methods": maxMethods, "fields": maxFields}[what[strings.LastIndex(what, " ")+1:]]
		if got[what] > bound {
			t.Errorf("%s: got %d, want at most %d", what, got[what], bound)
		}
	}
}

// isSettings reports whether the struct is a part of the configuration: each field is a key of YAML files.
func isSettings(s *ast.StructType) bool {
	return !slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool {
		return f.Tag == nil || !strings.HasPrefix(f.Tag.Value, "`yaml:")
	})
}

// receiver returns the name of a method's type.
func receiver(d *ast.FuncDecl) string {
	of := d.Recv.List[0].Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

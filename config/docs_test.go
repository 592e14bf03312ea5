package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
)

// The documentation has a row for every key, in backquotes and with its path.
func TestDocumentationHasEveryKey(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		if cell, ok := strings.CutPrefix(line, "| `"); ok {
			key, _, _ := strings.Cut(cell, "`")
			rows[key] = true
		}
	}
	var check func(path string, of reflect.Type)
	check = func(path string, of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct {
			if !rows[path] {
				t.Errorf("docs/configuration.md has no row for `%s`", path)
			}
			return
		}
		if path == "auth.api_keys" || path == "auth.oauth.claims" || strings.HasPrefix(path, "llm.") { // tables of their own
			path = ""
		}
		for i := range of.NumField() {
			switch key := of.Field(i).Tag.Get("yaml"); {
			case key == "-":
			case path == "":
				check(key, of.Field(i).Type)
			default:
				check(path+"."+key, of.Field(i).Type)
			}
		}
	}
	check("", reflect.TypeFor[config.Settings]())
	check("", reflect.TypeFor[downstream.ServerConfig]())
}

// The rules in the documentation are valid.
func TestDocumentedPolicy(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "policy.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rules, _ := strings.Cut(string(text), "```yaml\n")
	rules, _, _ = strings.Cut(rules, "```")
	servers := "mcpServers: {billing: {command: x}, mail: {command: x}, hr: {command: x}}\n"
	cfg := load(t, environment(), filepath.Join(write(t, "settings.yaml", servers+rules), "settings.yaml"))
	if len(cfg.Policy) != 3 {
		t.Errorf("got %+v, want three rules", cfg.Policy)
	}
}

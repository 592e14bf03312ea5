package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/config"
)

// FuzzLoad feeds arbitrary files to Load: no panic, no hang, and one line of text per problem.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/good/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(files, "testdata/bad.txt") {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for block := range strings.SplitSeq(string(data), "\n=> ") {
			f.Add([]byte(block), filepath.Ext(file) == ".json")
		}
	}
	for _, seed := range []string{"a: &a\n", "<<: *a", "? [a]\n: b", "&a *a", "!!str", "- &x\n- *x", "{\"a\":1,}", "/*", "\"\\", "a: |\n", "${", "mcpServers:\n  a: {<<: [1]}\n"} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	folder := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte, isJSON bool) {
		file := filepath.Join(folder, "f.yaml")
		if isJSON {
			file = filepath.Join(folder, "f.json")
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		report, err := config.Check([]string{file}, testdataEnvironment())
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("took %v", took)
		}
		if err == nil {
			_ = report.String()
			return
		}
		var wrong *config.Error
		if !errors.As(err, &wrong) {
			t.Fatalf("Check = %v (%T), want a *config.Error", err, err)
		}
		if strings.ContainsAny(wrong.Error(), "\r\n") || wrong.Message == "" {
			t.Errorf("mistake %q is not one line", wrong)
		}
	})
}

// FuzzImport feeds arbitrary files to Import: what it writes must load, with the servers that were there and the new.
func FuzzImport(f *testing.F) {
	f.Add([]byte(client), []byte("mcpServers:\n  old: {command: x}\n"))
	f.Add([]byte(`{"servers": {"a": {"url": "http://localhost/mcp"}}}`), []byte("# x\n"))
	f.Add([]byte(`{"mcpServers": {"null": {"command": "~", "env": {"<<": "*a"}}}}`), []byte("mcpServers: null\nlisten: a\n"))
	folder := f.TempDir()
	f.Fuzz(func(t *testing.T, from, to []byte) {
		client, servers := filepath.Join(folder, "client.json"), filepath.Join(folder, "servers.yaml")
		for file, data := range map[string][]byte{client: from, servers: to} {
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		before, err := config.Load([]string{servers}, testdataEnvironment())
		if err != nil {
			return
		}
		done, err := config.Import(t.Context(), client, folder)
		if err != nil {
			return
		}
		var names []string
		if old := serverNames(before); old != "" {
			names = append(names, old)
		}
		want := strings.Join(append(names, done.Added...), " ")
		after, err := config.Load([]string{servers}, testdataEnvironment())
		if err != nil {
			if !strings.Contains(read(t, servers), "${") { // a variable may have a wrong value
				t.Fatalf("what was written does not load: %v\n%s", err, read(t, servers))
			}
			return
		}
		if got := serverNames(after); got != want {
			t.Fatalf("servers %q, want %q", got, want)
		}
	})
}

package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/change"
)

func apply(t *testing.T, changes ...*change.Change) {
	t.Helper()
	for _, c := range changes {
		if c == nil {
			continue
		}
		if err := c.Apply(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDisable(t *testing.T) {
	for _, c := range []struct{ name, file, before, disabled, enabled string }{
		{
			"block", "servers.yaml",
			"# top\nmcpServers:\n  a: # first\n    command: x\n    # last of a\n\n  # about b\n  b: {command: y}\n",
			"# top\nmcpServers:\n  a: # first\n    command: x\n    # last of a\n    disabled: true\n\n  # about b\n  b: {command: y}\n",
			"# top\nmcpServers:\n  a: # first\n    command: x\n    # last of a\n    disabled: false\n\n  # about b\n  b: {command: y}\n",
		},
		{
			"flow", "servers.yml",
			"mcpServers:\n  ü: {command: y}\n  a:  {command: x, args: [\n    y ], } # é\nlisten: 127.0.0.1:1\n",
			"mcpServers:\n  ü: {command: y}\n  a:  {disabled: true, command: x, args: [\n    y ], } # é\nlisten: 127.0.0.1:1\n",
			"mcpServers:\n  ü: {command: y}\n  a:  {disabled: false, command: x, args: [\n    y ], } # é\nlisten: 127.0.0.1:1\n",
		},
		{
			"value is there", "servers.yaml",
			"mcpServers:\n  a:\n    disabled:   \"false\" # for now\n    command: x\n",
			"mcpServers:\n  a:\n    disabled:   true # for now\n    command: x\n",
			"mcpServers:\n  a:\n    disabled:   false # for now\n    command: x\n",
		},
		{
			"text of several lines at the end", "servers.yaml",
			"mcpServers:\r\n  a:\r\n    command: sh\r\n    args:\r\n    - |\r\n      # one\r\n\r\n      two\r\n",
			"mcpServers:\r\n  a:\r\n    command: sh\r\n    args:\r\n    - |\r\n      # one\r\n\r\n      two\r\n    disabled: true\r\n",
			"mcpServers:\r\n  a:\r\n    command: sh\r\n    args:\r\n    - |\r\n      # one\r\n\r\n      two\r\n    disabled: false\r\n",
		},
		{
			"lines of both kinds", "servers.yaml",
			"mcpServers:\r\n  a:\n    command: sh\nlisten: 127.0.0.1:1",
			"mcpServers:\r\n  a:\n    command: sh\n    disabled: true\r\nlisten: 127.0.0.1:1",
			"mcpServers:\r\n  a:\n    command: sh\n    disabled: false\r\nlisten: 127.0.0.1:1",
		},
		{
			"carriage returns alone", "servers.yaml",
			"mcpServers:\r  a:\r    command: sh\rlisten: 127.0.0.1:1\r",
			"mcpServers:\r  a:\r    command: sh\r    disabled: true\nlisten: 127.0.0.1:1\r",
			"mcpServers:\r  a:\r    command: sh\r    disabled: false\nlisten: 127.0.0.1:1\r",
		},
		{
			"flow everywhere", "servers.yaml",
			"{mcpServers: {b: {command: y}, a: {command: x}}}\n", "", "",
		},
		{
			"one line", "servers.yaml",
			"mcpServers: {b: {command: y}, a: {command: x}}\n",
			"mcpServers: {b: {command: y}, a: {disabled: true, command: x}}\n",
			"mcpServers: {b: {command: y}, a: {disabled: false, command: x}}\n",
		},
		{
			"JSON in YAML", "servers.yaml",
			"{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"}\n  }\n}\n",
			"{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\",\n      \"disabled\": true\n    }\n  }\n}\n",
			"{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\",\n      \"disabled\": false\n    }\n  }\n}\n",
		},
		{
			"JSON of a client", "servers.json",
			"{\n  // mine\n  \"mcp\": {\"servers\": {\n    \"a\": {\n      \"command\": \"x\"\n    }\n  }}\n}\n",
			"{\n  // mine\n  \"mcp\": {\"servers\": {\n    \"a\": {\n      \"command\": \"x\",\n      \"disabled\": true\n    }\n  }}\n}\n",
			"{\n  // mine\n  \"mcp\": {\"servers\": {\n    \"a\": {\n      \"command\": \"x\",\n      \"disabled\": false\n    }\n  }}\n}\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := write(t, c.file, c.before)
			for _, step := range []struct {
				disabled bool
				want     string
			}{{false, c.before}, {true, c.disabled}, {true, c.disabled}, {false, c.enabled}} {
				change, err := config.Disable(folder, "a", step.disabled)
				if c.disabled == "" && step.disabled {
					if err == nil || !strings.Contains(err.Error(), "write mcpServers as an indented block") {
						t.Errorf("Disable = %v, want an error that says what to write", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				apply(t, change)
				if got := read(t, filepath.Join(folder, c.file)); got != step.want {
					t.Fatalf("Disable(%v): got\n%s\nwant\n%s", step.disabled, got, step.want)
				}
			}
		})
	}
}

func TestRemove(t *testing.T) {
	for _, c := range []struct{ name, file, before, after string }{
		{
			"first", "servers.yaml",
			"# top\nmcpServers:\n  # about a\n  a:\n    command: x\n    # inside\n\n  # about b\n  b: {command: y} # b\n",
			"# top\nmcpServers:\n  # about a\n\n  # about b\n  b: {command: y} # b\n",
		},
		{
			"last", "servers.yaml",
			"mcpServers:\n  b: {command: y}\n  a: {command: x, args: [\n  ]}\n\n# about listen\nlisten: 127.0.0.1:1\n",
			"mcpServers:\n  b: {command: y}\n\n# about listen\nlisten: 127.0.0.1:1\n",
		},
		{
			"only", "servers.yaml",
			"mcpServers: # mine\r\n  a:\r\n    command: sh\r\n    args: [\"-c\", \"# x\r\n      y\"]",
			"mcpServers: {} # mine\r\n",
		},
		{
			"only, with a byte order mark and lines of both kinds", "servers.yaml",
			"\ufeffmcpServers:\r\n  a: {command: x}\nlisten: 127.0.0.1:1\r\n", "\ufeffmcpServers: {}\r\nlisten: 127.0.0.1:1\r\n",
		},
		{"only, with carriage returns alone", "servers.yaml", "mcpServers: # mine\r  a: {command: x}\r", "mcpServers: {} # mine\r"},
		{"one line", "servers.yaml", "mcpServers: {b: {command: y}, a: {command: x}}\n", ""},
		{
			"JSON", "servers.json",
			"{\"mcpServers\": {\n  \"a\": {\"command\": \"x\"}, // a\n  \"b\": {\"command\": \"y\"}\n}}\n",
			"{\"mcpServers\": { // a\n  \"b\": {\"command\": \"y\"}\n}}\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := write(t, c.file, c.before)
			removal, err := config.Remove(filepath.Join(folder, c.file), "a")
			if c.after == "" {
				if err == nil || !strings.Contains(err.Error(), "write mcpServers as an indented block") {
					t.Errorf("Remove = %v, want an error that says what to write", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			apply(t, removal.File)
			if got := read(t, filepath.Join(folder, c.file)); got != c.after {
				t.Errorf("got\n%s\nwant\n%s", got, c.after)
			}
			load(t, config.Options{}, folder)
			if _, err := config.Remove(folder, "a"); err == nil || !strings.Contains(err.Error(), `has no server "a"; it has`) {
				t.Errorf("a second time: %v, want an error that names the others", err)
			}
		})
	}
}

// A change that leaves a mistake behind is refused; one in a configuration that has a mistake already is not.
func TestChangesLeaveNoMistake(t *testing.T) {
	const servers = "mcpServers:\n  hr: {command: x}\n  it: {command: y}\n"
	const keys = "auth:\n  api_keys:\n    - {name: a, env: A_KEY}\n    - name: b\n      env: B_KEY\n      servers: [hr]\n"
	t.Setenv("A_KEY", "abcdefghijklmnopqrstuvwxyz")
	t.Setenv("B_KEY", "abcdefghijklmnopqrstuvwxyy")
	for _, row := range []struct{ name, settings, remove, problem, warning string }{
		{"of a profile", "profiles: {support: {servers: [hr]}}\n", "hr", "hr", ""},
		{"of a rule", "policy:\n  - {when: 'server == \"hr\"', then: deny}\n", "hr", "hr", ""},
		{"of a key, which is a warning", keys, "hr", "", "settings.yaml:6:17: auth.api_keys[1].servers[0] names no server"},
		{
			"of a limit, which is a warning", keys + "rate_limit: {tools: [it__a, x__b]}\n", "it", "",
			"settings.yaml:7:22: rate_limit.tools[0] names no server and limits nothing",
		},
		{"of nothing", keys + "rate_limit: {tools: [x__b]}\n", "it", "", ""},
		{"a mistake before", "listen: x\n" + keys, "hr", "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			folder := write(t, "servers.yaml", servers, "settings.yaml", row.settings)
			for _, into := range []string{folder, filepath.Join(folder, "servers.yaml")} {
				removal, err := config.Remove(into, row.remove)
				switch {
				case row.problem == "" && err != nil:
					t.Errorf("got %v", err)
				case row.problem == "":
					if got := strings.Join(removal.Warnings, "|"); got != row.warning && got != folder+"/"+row.warning {
						t.Errorf("got the warnings %q, want %q", got, row.warning)
					}
				case err == nil || strings.Contains(err.Error(), "\n") ||
					!strings.Contains(err.Error(), "change that first: "+folder+"/settings.yaml:") || !strings.Contains(err.Error(), row.problem):
					t.Errorf("got %v, want where %s is named", err, row.problem)
				}
			}
			if c, err := config.Disable(folder, "hr", true); err != nil || c == nil {
				t.Errorf("Disable = %v, %v", c, err)
			}
		})
	}
}

// Warnings about other names are not those of a removal, also if their lines move.
func TestRemoveInOneFile(t *testing.T) {
	file := filepath.Join(write(t, "all.yaml", "mcpServers:\n  a: {command: x}\n  b: {command: y}\nrate_limit: {tools: [b__x, c__x]}\n"), "all.yaml")
	for name, want := range map[string]string{"a": "", "b": file + ":3:22: rate_limit.tools[0] names no server and limits nothing"} {
		removal, err := config.Remove(file, name)
		if err != nil || strings.Join(removal.Warnings, "|") != want {
			t.Errorf("%s: got %+v, %v, want %q", name, removal, err, want)
		}
	}
}

// TestRemoveCredentials: what Add has put into secrets.env goes, unless another entry or file uses it.
func TestRemoveCredentials(t *testing.T) {
	const text = `{"mcpServers": {"a": {"url": "http://h/mcp", "headers": {
		"Authorization": "Bearer hunter2x", "X-Odd": "Zk83nd", "X-Region": "eu", "X-Shared": "Pq7shared", "X-Asked": "asked"}}}}`
	const odd = "[a]" // as a pattern, it is the name of another folder
	folder := filepath.Join(write(t, odd+"/servers.yaml", "", odd+"/secrets.env", "# mine\nOTHER=1\n"), odd)
	added, err := config.Add("client.json", []byte(text), folder, "asked")
	if err != nil {
		t.Fatal(err)
	}
	servers, err := added.Servers()
	if err != nil || len(servers) != 1 || servers[0].Headers["X-Odd"] != "Zk83nd" || servers[0].Headers["Authorization"] != "Bearer hunter2x" {
		t.Errorf("Servers = %+v, %v; want the values of the variables", servers, err)
	}
	apply(t, added.Files...)
	secrets, servers2 := filepath.Join(folder, "secrets.env"), filepath.Join(folder, "servers.yaml")
	want := "# mine\nOTHER=1\nA_AUTHORIZATION=hunter2x\nA_X_ODD=Zk83nd\nA_X_SHARED=Pq7shared\nA_X_ASKED=asked\n"
	if got := read(t, secrets); got != want {
		t.Fatalf("secrets.env is\n%s\nwant\n%s", got, want)
	}
	if got := read(t, servers2); !strings.Contains(got, "X-Region: eu\n") {
		t.Errorf("servers.yaml is\n%s\nwant an ordinary header in it", got)
	}
	if err := os.WriteFile(filepath.Join(folder, "settings.yaml"), []byte("state: \"${A_X_SHARED:-x}\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	removal, err := config.Remove(folder, "a")
	if err != nil {
		t.Fatal(err)
	}
	change, err := removal.Secrets()
	if err != nil {
		t.Fatal(err)
	}
	apply(t, removal.File, change)
	if got, want := read(t, secrets), "# mine\nOTHER=1\nA_X_SHARED=Pq7shared\n"; got != want {
		t.Errorf("secrets.env is\n%s\nwant\n%s", got, want)
	}
}

// FuzzEdit: whatever the form of a file, it is changed as wanted or not at all.
func FuzzEdit(f *testing.F) {
	for _, text := range []string{
		"mcpServers:\n  b: {command: y}\n  a: # x\n    command: |\n      x\n", "mcpServers:\r\n  ? a\r\n  : {command: x}\r\n",
		"{mcpServers: {a: {command: x}}}", "mcpServers: {\n a: {command: x, }\n}", "\ufeffmcpServers:\n\ta: 1", "mcpServers:\n  \"a\": &x {}\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(write(t, "servers.yaml", text), "servers.yaml")
		before, err := config.Load([]string{file}, config.Options{})
		if err != nil {
			return
		}
		for _, s := range before.Servers {
			change, err := config.Disable(file, s.Name, !s.Disabled)
			if err != nil || s.Unusable != "" {
				continue
			}
			apply(t, change)
			now := load(t, config.Options{}, file)
			for i, other := range now.Servers {
				if was := before.Servers[i].Disabled; other.Disabled == was && other.Name == s.Name || other.Disabled != was && other.Name != s.Name {
					t.Fatalf("%s is disabled: %v, in\n%s\nbefore:\n%s", other.Name, other.Disabled, read(t, file), text)
				}
			}
			if removal, err := config.Remove(file, s.Name); err == nil {
				apply(t, removal.File)
				if now := load(t, config.Options{}, file); len(now.Servers) != len(before.Servers)-1 {
					t.Fatalf("%d servers are left in\n%s\nbefore:\n%s", len(now.Servers), read(t, file), text)
				}
			}
			return
		}
	})
}

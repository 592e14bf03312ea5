package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/config"
)

const client = `{
  // a comment
  "globalShortcut": "x",
  "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "@scope/pkg", "8080", "on", "two\nlines", "a: b # c"], "cwd": "work", "autoApprove": ["x"]},
    "My__Server ": {"serverUrl": "https://hr.example.com/sse", "headers": {"Authorization": "Bearer hunter2"}, "disabled": true},
    "input": {"type": "streamable-http", "url": "https://x.example.com/mcp", "headers": {"A": "${input:api-key}", "B": "${env:TOKEN}"}, "surprise": 1}
  }
}`

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestImportIntoNothing(t *testing.T) {
	folder := write(t, "client.json", client)
	into := filepath.Join(folder, "config")
	done, err := config.Import(t.Context(), filepath.Join(folder, "client.json"), into)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(into, "servers.yaml")
	if done.File != file || !slices.Equal(done.Added, []string{"files", "My_Server", "input"}) || len(done.Skipped) > 0 {
		t.Errorf("Import = %+v, want three servers in %s", done, file)
	}
	summary := done.String()
	for _, want := range []string{
		"added files, My_Server and input", "autoApprove", `"My__Server " is now called "My_Server"`, "surprise is not known", "environment variable API_KEY",
	} {
		if !strings.Contains(summary, want) {
			t.Errorf("summary %q lacks %q", summary, want)
		}
	}
	if strings.Contains(summary, "hunter2") {
		t.Errorf("summary %q shows a secret", summary)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("mode = %o, want 600", got)
	}
	cfg := load(t, environment("API_KEY", "swordfish", "TOKEN", "sesame"), into)
	if got := serverNames(cfg); got != "files My_Server input" {
		t.Fatalf("servers %q", got)
	}
	files, hr, input := cfg.Servers[0], cfg.Servers[1], cfg.Servers[2]
	if want := []string{"-y", "@scope/pkg", "8080", "on", "two\nlines", "a: b # c"}; !slices.Equal(files.Args, want) || files.Cwd != filepath.Join(folder, "work") {
		t.Errorf("files = %+v, want args %q in the client's folder", files, want)
	}
	if hr.Type != "sse" || !hr.Disabled || hr.Headers["Authorization"].Reveal() != "Bearer hunter2" {
		t.Errorf("My_Server = %+v, want a disabled sse server with its literal header", hr)
	}
	if input.Type != "http" || input.Headers["A"].Reveal() != "swordfish" || input.Headers["B"].Reveal() != "sesame" {
		t.Errorf("input = %+v, want variables for the client's references", input)
	}

	before := read(t, file)
	again, err := config.Import(t.Context(), filepath.Join(folder, "client.json"), into)
	if err != nil || len(again.Added) > 0 || len(again.Skipped) != 3 || read(t, file) != before {
		t.Errorf("a second time: %+v, %v; want everything skipped and the file unchanged", again, err)
	}
	if !strings.Contains(again.String(), "nothing to add") {
		t.Errorf("summary = %q, want it to say that nothing was added", again)
	}
}

func TestImportKeepsWhatIsThere(t *testing.T) {
	const one = `{"mcpServers": {"new": {"command": "x"}, "old": {"command": "other"}}}`
	for _, c := range []struct{ name, before, after string }{
		{
			"comments and order",
			"# top\nmcpServers:\n    # about old\n    old: {command: x} # here\n\n# about listen\nlisten: 127.0.0.1:1\n",
			"# top\nmcpServers:\n    # about old\n    old: {command: x} # here\n    new:\n      command: x\n\n# about listen\nlisten: 127.0.0.1:1\n",
		},
		{
			"no newline at the end",
			"mcpServers:\n  old:\n    command: x",
			"mcpServers:\n  old:\n    command: x\n  new:\n    command: x\n",
		},
		{
			"carriage returns",
			"mcpServers:\r\n  old: {command: x}\r\n",
			"mcpServers:\r\n  old: {command: x}\r\n  new:\r\n    command: x\r\n",
		},
		{
			"a byte order mark and lines of both kinds",
			"\ufeffmcpServers:\r\n  old: {command: x}\n\r\nlisten: 127.0.0.1:1\n",
			"\ufeffmcpServers:\r\n  old: {command: x}\n  new:\r\n    command: x\r\n\r\nlisten: 127.0.0.1:1\n",
		},
		{
			"comments only",
			"mcpServers:\n  # hr: {command: x}\n",
			"mcpServers:\n  # hr: {command: x}\n  new:\n    command: x\n  old:\n    command: other\n",
		},
		{
			"empty",
			"mcpServers: # none\n",
			"mcpServers: # none\n  new:\n    command: x\n  old:\n    command: other\n",
		},
		{
			"empty, with braces",
			"mcpServers: {} # none\n",
			"mcpServers: # none\n  new:\n    command: x\n  old:\n    command: other\n",
		},
		{
			"no servers yet",
			"listen: 127.0.0.1:1\n",
			"listen: 127.0.0.1:1\n\nmcpServers:\n  new:\n    command: x\n  old:\n    command: other\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := write(t, "client.json", one, "servers.yml", c.before)
			if _, err := config.Import(t.Context(), filepath.Join(folder, "client.json"), folder); err != nil {
				t.Fatal(err)
			}
			if got := read(t, filepath.Join(folder, "servers.yml")); got != c.after {
				t.Errorf("got\n%q\nwant\n%q", got, c.after)
			}
		})
	}
}

// TestImportBesideDisabled: that a server is skipped for one that is disabled, such as an example, is told.
func TestImportBesideDisabled(t *testing.T) {
	folder := write(t, "client.json", `{"mcpServers": {"files": {"command": "x"}, "hr": {"command": "x", "disabled": true}}}`,
		"servers.yaml", "mcpServers:\n  files: {command: npx, disabled: true}\n  hr: {command: npx, disabled: true}\n")
	done, err := config.Import(t.Context(), filepath.Join(folder, "client.json"), folder)
	if err != nil || len(done.Warnings) != 1 || !strings.HasSuffix(done.Warnings[0],
		"files: the existing entry is disabled; remove it and import again to use this one") {
		t.Errorf("Import = %+v, %v; want a warning about files alone", done, err)
	}
}

// TestImportKeepsVariables: what the client expands is written as it stands there, so that a second import finds it.
func TestImportKeepsVariables(t *testing.T) {
	folder := write(t, "client.json", `{"mcpServers": {
		"a": {"command": "${X:-x}", "args": ["$${Y}", "${Z}", "--token", "t0ken"], "timeout": "${T:-5s}"},
		"b": {"command": "${config:x}", "disabled": true}}}`)
	done, err := config.Import(t.Context(), filepath.Join(folder, "client.json"), folder)
	if err != nil {
		t.Fatal(err)
	}
	want := "mcpServers:\n  a:\n    command: ${X:-x}\n    args:\n      - $${Y}\n      - ${Z}\n      - --token\n      - ${A_ARG_4}\n" +
		"    timeout: ${T:-5s}\n  b:\n    command: ${config:x}\n    disabled: true\n"
	if got := read(t, done.File); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if cfg := load(t, environment("Z", "z"), folder); !slices.Equal(cfg.Servers[0].Args, []string{"${Y}", "z", "--token", "t0ken"}) {
		t.Errorf("args = %q", cfg.Servers[0].Args)
	}
	again, err := config.Import(t.Context(), filepath.Join(folder, "client.json"), folder)
	if err != nil || len(again.Added)+len(again.Others) > 0 {
		t.Errorf("a second time: %+v, %v; want nothing to change", again, err)
	}
}

func TestImportThroughLink(t *testing.T) {
	folder := write(t, "client.json", `{"mcp": {"servers": {"a": {"command": "x"}}}}`, "real.yaml", "mcpServers:\n")
	link := filepath.Join(folder, "servers.yaml")
	if err := os.Symlink("real.yaml", link); err != nil {
		t.Skip(err)
	}
	if _, err := config.Import(t.Context(), filepath.Join(folder, "client.json"), link); err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(folder, "real.yaml")); got != "mcpServers:\n  a:\n    command: x\n" {
		t.Errorf("real.yaml = %q, want the server there", got)
	}
}

func TestImportErrors(t *testing.T) {
	const one = `{"mcpServers": {"new": {"command": "x"}}}`
	for _, c := range []struct{ name, client, file, content, want string }{
		{"no servers", `{"other": 1}`, "servers.yaml", "", "has no servers"},
		{"broken client", `{"mcpServers": `, "servers.yaml", "", "invalid JSON"},
		{"entry without anything", `{"mcpServers": {"a": {}}}`, "servers.yaml", "", "needs a command or a url"},
		{"entry of the wrong kind", `{"mcpServers": {"a": 1}}`, "servers.yaml", "", "want a mapping"},
		{"name without letters", `{"mcpServers": {"__": {"command": "x"}}}`, "servers.yaml", "", "is not a valid server name"},
		{"names that become equal", `{"mcpServers": {"a b": {"command": "x"}, "a-b": {"command": "x"}}}`, "servers.yaml", "", "already defined"},
		{"another scheme", `{"mcpServers": {"a": {"url": "ftp://x"}}}`, "servers.yaml", "", "want an absolute http or https URL"},
		{"password", `{"mcpServers": {"a": {"url": "http://u:p@h"}}}`, "servers.yaml", "", "must not hold a user name or password"},
		{"equal headers", `{"mcpServers": {"a": {"url": "http://h", "headers": {"A": "1", "a": "2"}}}}`, "servers.yaml", "", "is the same header as A"},
		{"variable of the client", `{"mcpServers": {"a": {"command": "x", "args": ["${input:i}", "${input:i}${config:x}"]}}}`, "servers.yaml", "", "args[1]: after ${ want NAME}"},
		{"path separator", `{"servers": {"a": {"command": "a${/}b"}}}`, "servers.yaml", "", "command: after ${ want NAME}"},
		{"another scheme, with a variable", `{"mcpServers": {"a": {"url": "ftp://x", "headers": {"A": "${input:i}"}}}}`, "servers.yaml", "", "want an absolute http or https URL"},
		{"broken target", one, "servers.yaml", "a: [", "invalid YAML"},
		{"servers of the wrong kind", one, "servers.yaml", "mcpServers: 1\n", "want a mapping"},
		{"JSON target", one, "servers.json", "{}", "can only be added to a YAML file"},
		{"flow target", one, "servers.yaml", "mcpServers: {a: {command: x}}\n", "write it as an indented block"},
		{"flow file", one, "servers.yaml", "{listen: 'x'}\n", "write it as an indented block"},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := write(t, "client.json", c.client, c.file, c.content)
			_, err := config.Import(t.Context(), filepath.Join(folder, "client.json"), folder)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Import = %v, want %s", err, c.want)
			}
			if got := read(t, filepath.Join(folder, c.file)); got != c.content {
				t.Errorf("the file is %q now, want it unchanged", got)
			}
		})
	}
	folder := write(t, "client.json", one, "servers.yaml", "", "servers.yml", "")
	if _, err := config.Import(t.Context(), filepath.Join(folder, "client.json"), folder); err == nil || !strings.Contains(err.Error(), "keep one") {
		t.Errorf("Import into two files = %v, want an error", err)
	}
	if _, err := config.Import(t.Context(), filepath.Join(folder, "missing.json"), folder); err == nil || !strings.Contains(err.Error(), "missing.json: no such file") {
		t.Errorf("Import of a missing file = %v, want an error", err)
	}
}

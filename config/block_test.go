package config_test

import (
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/config"
)

const blockServers = `# all of them
mcpServers:
  # people
  hr:
    url: https://hr.example/mcp # the new one
    # a comment
    headers:
      Authorization: Bearer ${HR_TOKEN:-none}
  # money
  pay: {url: "https://pay.example/mcp"}
`

const blockSettings = `log:
  level: info
policy:
- when: destructive
  then: ask
# shipping
- when: server == "pay"
  then: deny
  reason: |
    two lines

    of it

# the rest
profiles:
    support: {servers: [hr]}
`

// A block is what the file has, with its comments; replacing it changes nothing else, and a mistake changes nothing.
func TestBlock(t *testing.T) {
	hr := "hr:\n  url: https://hr.example/mcp # the new one\n  # a comment\n  headers:\n    Authorization: Bearer ${HR_TOKEN:-none}\n"
	policy := strings.SplitAfter(strings.SplitAfter(blockSettings, "info\n")[1], "of it\n")[0]
	crlf := func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }
	for _, row := range []struct {
		name, file, text, path string
		block, with            string
		want, mistake          string // the file then, or a part of the mistake
	}{
		{"server", "servers.yaml", blockServers, "servers/hr", hr, "hr:\n  command: run\n\n  # note\n  args: [a]\n\n",
			"# all of them\nmcpServers:\n  # people\n  hr:\n    command: run\n\n    # note\n    args: [a]\n  # money\n  pay: {url: \"https://pay.example/mcp\"}\n", ""},
		{"one line", "servers.yaml", blockServers, "servers/pay", "pay: {url: \"https://pay.example/mcp\"}\n", "pay: {command: pay}",
			strings.Replace(blockServers, `url: "https://pay.example/mcp"`, "command: pay", 1), ""},
		{"as it is", "servers.yaml", blockServers, "servers/hr", hr, hr, blockServers, ""},
		{"carriage returns", "servers.yaml", crlf(blockServers), "servers/hr", hr, crlf(hr), crlf(blockServers), ""},
		{"lines of both kinds", "servers.yaml", strings.Replace(crlf(blockServers), "\r", "", 2), "servers/hr", hr, "hr: {command: x}",
			"# all of them\nmcpServers:\n  # people\r\n  hr: {command: x}\r\n  # money\r\n  pay: {url: \"https://pay.example/mcp\"}\r\n", ""},
		{"carriage returns alone", "servers.yaml", "# one\r# two\rmcpServers:\r  hr:\r    command: x\r", "servers/hr", "hr:\n  command: x\n", "hr:\r  command: y",
			"# one\r# two\rmcpServers:\r  hr:\n    command: y\n", ""},
		{"spaces in a text", "servers.yaml", "mcpServers:\n  hr:\n    command: |\n      a\n        \n      b\n", "servers/hr",
			"hr:\n  command: |\n    a\n      \n    b\n", "hr:\n  command: |\n    a\n      \n    b\n  # more", "mcpServers:\n  hr:\n    command: |\n      a\n        \n      b\n    # more\n", ""},
		{"policy", "settings.yaml", blockSettings, "policy", policy, "policy: # mine\n  - {when: destructive, then: deny}",
			"log:\n  level: info\npolicy: # mine\n  - {when: destructive, then: deny}\n\n# the rest\nprofiles:\n    support: {servers: [hr]}\n", ""},
		{"no text", "settings.yaml", blockSettings, "policy", policy, " \n", "log:\n  level: info\n\n# the rest\nprofiles:\n    support: {servers: [hr]}\n", ""},
		{"the last", "settings.yaml", "policy:\n  - {when: reads, then: allow}\n  - {when: destructive, then: ask}", "policy", "policy:\n  - {when: reads, then: allow}\n  - {when: destructive, then: ask}\n",
			"policy:\n  - {when: reads, then: allow}", "policy:\n  - {when: reads, then: allow}\n\n", ""},
		{"new", "settings.yml", "log: {level: info}", "profiles", "", "profiles:\n  a: {servers: [hr]}", "log: {level: info}\nprofiles:\n  a: {servers: [hr]}\n", ""},
		{"new file", "settings.yaml", "", "policy", "", "policy:\n  - {when: destructive, then: ask}", "policy:\n  - {when: destructive, then: ask}\n", ""},

		{"beside servers", "servers.yaml", "policy:\n  - {when: destructive, then: ask}\nmcpServers: {hr: {command: x}}\n", "policy",
			"policy:\n  - {when: destructive, then: ask}\n", "", "mcpServers: {hr: {command: x}}\n", ""},
		{"unknown key", "servers.yaml", blockServers, "servers/hr", hr, "hr:\n  url: https://hr.example/mcp\n  dat: private", "", `line 3: mcpServers.hr: unknown key "dat"`},
		{"invalid rule", "settings.yaml", blockSettings, "policy", policy, "policy:\n  - {when: destructive, then: ask}\n  - when: colour ==\n    then: ask", "", "line 3: "},
		{"invalid YAML", "settings.yaml", blockSettings, "policy", policy, "policy:\n  - when: [a", "", "invalid YAML"},
		{"invalid new file", "settings.yaml", "", "policy", "", "policy:\n  - {when: destructive, then: perhaps}", "", "line 2: "},
		{"other name", "servers.yaml", blockServers, "servers/hr", hr, "people:\n  url: https://hr.example/mcp", "", "write hr: and what is below it, and nothing else"},
		{"two servers", "servers.yaml", blockServers, "servers/hr", hr, hr + "two:\n  command: x", "", "nothing else"},
		{"outside", "servers.yaml", blockServers, "servers/hr", hr, "hr: {command: x}\nmore: x", "", "nothing else"},
		{"no server", "servers.yaml", blockServers, "servers/hr", hr, "", "", "nothing else"},
		{"another setting", "settings.yaml", blockSettings, "policy", policy, "auth:\n  anonymous: true", "", "nothing else"},
		{"unknown server", "servers.yaml", blockServers, "servers/none", "", "", "", `has no server "none"`},
		{"JSON", "servers.json", `{"mcpServers":{"hr":{"command":"x"}}}`, "servers/hr", "", "", "", "is written as JSON"},
		{"lines that begin as keys do", "settings.yaml", "policy: [\n{when: destructive, then: ask}\n]\n", "policy", "", "", "", "write it as an indented block"},
		{"lines that begin as names do", "servers.yaml", "mcpServers:\n  hr:\n    command: \"run\n\n  it\"\n", "servers/hr", "", "", "", "write it as an indented block"},
		{"shared line", "servers.yaml", "mcpServers: {hr: {command: x}}\n", "servers/hr", "", "", "", "write it as an indented block"},
	} {
		t.Run(row.name, func(t *testing.T) {
			files := []string{row.file, row.text}
			if row.text == "" {
				files = nil
			}
			if !strings.HasPrefix(row.file, "servers.") {
				files = append(files, "servers.yaml", "mcpServers: {hr: {command: x}, pay: {command: x}}\n")
			}
			folder := write(t, files...)
			open := func() (*config.Block, error) { return config.SettingBlock(folder, row.path) }
			if server, ok := strings.CutPrefix(row.path, "servers/"); ok {
				open = func() (*config.Block, error) { return config.ServerBlock(folder, server) }
			}
			b, err := open()
			if err != nil {
				if row.mistake == "" || row.block != "" || !strings.Contains(err.Error(), row.mistake) {
					t.Errorf("got %v, want %q", err, row.mistake)
				}
				return
			}
			if b.Text != row.block {
				t.Errorf("got the block\n%s\nwant\n%s", b.Text, row.block)
			}
			used, err := config.Load([]string{folder}, config.Options{})
			if err != nil {
				t.Fatal(err)
			}
			change, cfg, err := b.Replace(row.with, used)
			if row.mistake != "" {
				if err == nil || !strings.Contains(err.Error(), row.mistake) {
					t.Errorf("got %v, want %q", err, row.mistake)
				}
				return
			}
			if err != nil || string(change.After) != row.want {
				t.Fatalf("got %v and\n%s\nwant\n%s", err, change.After, row.want)
			}
			if err := change.Apply(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			if now, err := config.Reload([]string{folder}, config.Options{}, used); err != nil || !now.Same(cfg) {
				t.Errorf("got %v, want a reload to give the configuration that was planned", err)
			}
		})
	}
}

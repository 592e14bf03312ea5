package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/auth"
)

// Keys are added and removed; what else is in the file stays as it is.
func TestChangeKeys(t *testing.T) {
	const sum = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	added := auth.KeyConfig{Name: "new one", SHA256: sum, Servers: []string{"hr"}, Ops: true}
	const lines = "- name: new one\n  sha256: " + sum + "\n  servers:\n    - hr\n  ops: true\n"
	at := func(indent string) string {
		return indent + strings.TrimSuffix(strings.ReplaceAll(lines, "\n", "\n"+indent), indent)
	}
	for _, row := range []struct{ name, before, remove, after, problem string }{
		{name: "nothing", after: "auth:\n  api_keys:\n" + at("    ")},
		{name: "other settings", before: "# head\nlisten: 127.0.0.1:1 # here\n# auth:\n#   api_keys: []\n",
			after: "# head\nlisten: 127.0.0.1:1 # here\n# auth:\n#   api_keys: []\nauth:\n  api_keys:\n" + at("    ")},
		{name: "no line end", before: "listen: 127.0.0.1:1", after: "listen: 127.0.0.1:1\nauth:\n  api_keys:\n" + at("    ")},
		{name: "an empty list", before: "auth:\n  api_keys: []\nlisten: x\n", after: "auth:\n  api_keys:\n" + at("    ") + "listen: x\n"},
		{name: "a list", before: "auth:\n    api_keys:\n    # first\n    - name: a\n      sha256: b # c\n\n    # end\nlisten: x\n",
			after: "auth:\n    api_keys:\n    # first\n    - name: a\n      sha256: b # c\n" + at("    ") + "\n    # end\nlisten: x\n"},
		{name: "flow", before: "auth: {api_keys: [{name: a, sha256: b}]}\n", problem: "as indented YAML"},
		{name: "flow without a list", before: "auth: {anonymous: true}\n", problem: "as indented YAML"},
		{name: "JSON", before: `{"auth": {}}`, problem: "as indented YAML"},
		{name: "no list", before: "auth: # a\n    # b\n    anonymous: true\n\n# c\n",
			after: "auth: # a\n    api_keys:\n" + at("      ") + "    # b\n    anonymous: true\n\n# c\n"},
		{name: "an empty mapping", before: "listen: x\nauth: { } # a\nlog: {level: info}\n",
			after: "listen: x\nauth: # a\n  api_keys:\n" + at("    ") + "log: {level: info}\n"},
		{name: "no value", before: "auth:", after: "auth:\n  api_keys:\n" + at("    ")},
		{name: "an empty list and others", before: "auth:\n   api_keys: [] # none\n   anonymous: false\n",
			after: "auth:\n   api_keys: # none\n" + at("     ") + "   anonymous: false\n"},
		{name: "a list without a value", before: "auth:\n  api_keys:\n  anonymous: false\n",
			after: "auth:\n  api_keys:\n" + at("    ") + "  anonymous: false\n"},
		{name: "CRLF", before: "auth: {}\r\n\r\nlisten: x\n# end",
			after: "auth:\r\n  api_keys:\r\n" + strings.ReplaceAll(at("    "), "\n", "\r\n") + "\r\nlisten: x\n# end\r\n"},
		{name: "lines of both kinds", before: "\ufeffauth: {}\nlisten: x\r\n",
			after: "\ufeffauth:\n  api_keys:\r\n" + strings.ReplaceAll(at("    "), "\n", "\r\n") + "listen: x\r\n"},
		{name: "carriage returns alone", before: "auth: {}\rlisten: x\r",
			after: "auth:\r  api_keys:\n" + at("    ") + "listen: x\r"},
		{name: "CRLF in a list", before: "auth:\r\n  api_keys:\r\n  - name: a\r\n    sha256: b\r\nlisten: x\r\n",
			after: "auth:\r\n  api_keys:\r\n  - name: a\r\n    sha256: b\r\n" + strings.ReplaceAll(at("  "), "\n", "\r\n") + "listen: x\r\n"},
		{name: "remove with CRLF", before: "auth:\r\n  api_keys:\r\n  - name: a\r\n    sha256: b\r\n  - {name: c, sha256: b}\r\nlisten: x\r\n", remove: "a",
			after: "auth:\r\n  api_keys:\r\n  - {name: c, sha256: b}\r\nlisten: x\r\n"},
		{name: "invalid", before: "auth: [\n", problem: "settings.yaml:1"},
		{name: "remove the first", before: "auth:\n  api_keys:\n    # of a\n    - name: a\n      sha256: b\n    # of c\n    - sha256: d\n      name: c\nlisten: x\n", remove: "a",
			after: "auth:\n  api_keys:\n    # of a\n    # of c\n    - sha256: d\n      name: c\nlisten: x\n"},
		{name: "remove the last in the list", before: "auth:\n  api_keys:\n  - name: a\n    sha256: b\n  - sha256: d\n    name: c\n    tools: {allow: [x]}\nlisten: x\n", remove: "c",
			after: "auth:\n  api_keys:\n  - name: a\n    sha256: b\nlisten: x\n"},
		{name: "remove the only one", before: "auth:\n  api_keys:\n  - name: a\n    sha256: b\n", remove: "a", problem: "the last API key"},
		{name: "remove none", before: "auth:\n  api_keys:\n  - name: a\n    sha256: b\n", remove: "z", problem: `has no API key "z"`},
		{name: "remove from flow", before: "auth:\n  api_keys: [{name: a, env: A}, {name: b, env: B}]\n", remove: "a", problem: "as indented YAML"},
	} {
		t.Run(row.name, func(t *testing.T) {
			folder := write(t, "servers.yaml", "mcpServers: {hr: {command: x}}\n")
			if row.before != "" {
				if err := os.WriteFile(filepath.Join(folder, "settings.yaml"), []byte(row.before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c, err := config.AddKey(folder, added)
			if row.remove != "" {
				c, err = config.RemoveKey(folder, row.remove)
			}
			if row.problem != "" {
				if err == nil || !strings.Contains(err.Error(), row.problem) {
					t.Errorf("got the error %v, want one with %q", err, row.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(c.After) != row.after {
				t.Errorf("got\n%s\nwant\n%s", c.After, row.after)
			}
		})
	}
}

package clients_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/clients"
	"github.com/agenticnexus/agenticnexus/internal/jsonc"
)

var update = flag.Bool("update", false, "rewrite the golden file")

var (
	command = clients.Entry{Command: `C:\nexus "1"\nexus.exe`, Args: []string{"stdio", "--config", "/ä/config"}}
	address = clients.Entry{URL: "https://router.example.com/mcp?a=1&b=2", Key: "nx_key"}
)

// mkdir creates a folder below another.
func mkdir(t *testing.T, names ...string) string {
	t.Helper()
	folder := filepath.Join(names...)
	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestGolden shows for each client where its file is on each system and how the entries look.
func TestGolden(t *testing.T) {
	var out strings.Builder
	for _, c := range clients.All() {
		fmt.Fprintf(&out, "# %s: %s\n", c.Name, c.Title)
		for _, system := range []string{"linux", "darwin", "windows"} {
			home := t.TempDir()
			_, err := c.File(clients.System{OS: system, Home: home, Env: func(string) string { return "" }})
			missing := (*clients.NotFoundError)(nil)
			if !errors.As(err, &missing) {
				t.Fatalf("%s: got %v for an empty home, want that it is not installed", c.Name, err)
			}
			mkdir(t, missing.Sign)
			file, err := c.File(clients.System{OS: system, Home: home, Env: func(string) string { return "" }})
			if err != nil {
				t.Fatalf("%s on %s: %v", c.Name, system, err)
			}
			fmt.Fprintf(&out, "%-8s ~%s\n", system, filepath.ToSlash(strings.TrimPrefix(file, home)))
		}
		if file, err := c.ProjectFile("."); err == nil {
			fmt.Fprintf(&out, "%-8s %s\n", "project", filepath.ToSlash(file))
		}
		for _, e := range []clients.Entry{command, address} {
			text, err := c.Put(nil, "nexus", e)
			if err != nil {
				fmt.Fprintf(&out, "%v\n", err)
				continue
			}
			fmt.Fprintf(&out, "%s\n", bytes.TrimSpace(text))
			servers, err := c.Servers(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Read(servers.Get("nexus")); fmt.Sprint(got) != fmt.Sprint(e) {
				t.Errorf("%s: Read: got %v, want %v", c.Name, got, e)
			}
		}
		out.WriteString("\n")
	}
	golden := filepath.Join("testdata", "clients.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s\n(-update rewrites it)", out.String(), want)
	}
}

// Variables move files; so does the package of Claude Desktop on Windows.
func TestFile(t *testing.T) {
	home := t.TempDir()
	packaged := mkdir(t, home, "AppData", "Local", "Packages", "Claude_pzs8", "LocalCache", "Roaming", "Claude")
	mkdir(t, home, "AppData", "Roaming", "Claude")
	elsewhere := mkdir(t, home, "elsewhere")
	for _, name := range []string{"zed", "Code/User"} {
		mkdir(t, elsewhere, filepath.FromSlash(name))
	}
	env := func(name string) string {
		if strings.HasSuffix(name, "_HOME") || strings.HasSuffix(name, "_DIR") {
			return elsewhere
		}
		return ""
	}
	for _, c := range []struct{ client, system, want string }{
		{"claude", "windows", filepath.Join(packaged, "claude_desktop_config.json")},
		{"claude-code", "linux", filepath.Join(elsewhere, ".claude.json")},
		{"codex", "darwin", filepath.Join(elsewhere, "config.toml")},
		{"copilot", "linux", filepath.Join(elsewhere, "mcp-config.json")},
		{"zed", "linux", filepath.Join(elsewhere, "zed", "settings.json")},
		{"vscode", "linux", filepath.Join(elsewhere, "Code", "User", "mcp.json")},
	} {
		got, err := clients.Lookup(c.client).File(clients.System{OS: c.system, Home: home, Env: env})
		if err != nil || got != c.want {
			t.Errorf("%s on %s: got %s, %v, want %s", c.client, c.system, got, err, c.want)
		}
	}
	if clients.Lookup("notepad") != nil {
		t.Error("got a client that nobody knows")
	}
}

const toml = `# my settings
model = "gpt-5" # the best

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs"]

# tokens
[mcp_servers.docs.env]
TOKEN = "t"

[profiles.work]
model = "o3"
`

// An entry changes in its place; what it has besides, and everything else, stays.
func TestPut_Changes(t *testing.T) {
	for _, c := range []struct{ name, client, before, after string }{
		{
			"JSON", "vscode", "{\n\t// mine\n\t\"servers\": {\n\t\t\"nexus\": {\"type\": \"stdio\", \"command\": \"x\", \"args\": [], \"env\": {\"A\": \"b\"}, \"dev\": {}}, // here\n\t\t\"b\": {},\n\t}\n}\n",
			"{\n\t// mine\n\t\"servers\": {\n\t\t\"nexus\": {\"type\": \"http\", \"dev\": {},\n\t\t\t\"url\": \"https://router.example.com/mcp?a=1&b=2\",\n\t\t\t\"headers\": {\n\t\t\t\t\"Authorization\": \"Bearer nx_key\"\n\t\t\t}\n\t\t}, // here\n\t\t\"b\": {},\n\t}\n}\n",
		},
		{
			"headers", "cursor", `{"mcpServers": {"nexus": {"headers": {"X": "y"}, "url": "http://a"}}}`,
			`{"mcpServers": {"nexus": {"headers": {"X": "y", "Authorization": "Bearer nx_key"}, "url": "https://router.example.com/mcp?a=1&b=2"}}}`,
		},
		{
			"TOML", "codex", "[mcp_servers.nexus]\ncommand = \"x\" # old\nargs = [\n  \"a\", # [b]\n]\nstartup_timeout_sec = 5\n\n[mcp_servers.nexus.env]\nA = \"b\"\n\n[tui]\nx = 1\n",
			"[mcp_servers.nexus]\nstartup_timeout_sec = 5\nurl = \"https://router.example.com/mcp?a=1&b=2\"\nhttp_headers = { Authorization = \"Bearer nx_key\" }\n\n[tui]\nx = 1\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := clients.Lookup(c.client)
			got, err := client.Put([]byte(c.before), "nexus", address)
			if err != nil || string(got) != c.after {
				t.Fatalf("got\n%s, %v\nwant\n%s", got, err, c.after)
			}
			if again, err := client.Put(got, "nexus", address); err != nil || !bytes.Equal(again, got) {
				t.Errorf("a second time: got\n%s, %v", again, err)
			}
		})
	}
}

func TestRemove_TOML(t *testing.T) {
	client := clients.Lookup("codex")
	got, err := client.Remove([]byte(toml), "docs")
	want := "# my settings\nmodel = \"gpt-5\" # the best\n\n# tokens\n\n[profiles.work]\nmodel = \"o3\"\n"
	if err != nil || string(got) != want {
		t.Errorf("got\n%s, %v\nwant\n%s", got, err, want)
	}
	moved, err := client.Move(got, []byte(toml), "docs")
	if err != nil || !strings.HasSuffix(string(moved), "\n[mcp_servers.docs]\ncommand = \"npx\"\nargs = [\"-y\", \"docs\"]\n\n[mcp_servers.docs.env]\nTOKEN = \"t\"\n") {
		t.Errorf("Move: got\n%s, %v", moved, err)
	}
}

// What cannot be edited is left alone, with its place.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ client, text, want string }{
		{"codex", "a = 1\nb = [\n", "invalid TOML"},
		{"codex", "mcp_servers = {nexus = {command = \"x\"}}\n", "write it as a table"},
		{"codex", "mcp_servers.nexus.command = \"x\"\n", "write it as a table"},
		{"cursor", "{\"mcpServers\": [", "invalid JSON"},
		{"cursor", "{\"mcpServers\": {\"nexus\": 1}}", "nexus is not an object"},
	} {
		_, err := clients.Lookup(c.client).Put([]byte(c.text), "nexus", command)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: got %v, want %s", c.client, c.text, err, c.want)
		}
	}
	_, err := clients.Lookup("codex").Put([]byte("a = 1\nb = = 2\n"), "nexus", command)
	if wrong := (*jsonc.Error)(nil); !errors.As(err, &wrong) || wrong.Line != 2 {
		t.Errorf("got %v, want line 2", err)
	}
	if _, err := clients.Lookup("claude").Put(nil, "nexus", address); err == nil || !strings.Contains(err.Error(), "takes no URL") {
		t.Errorf("a URL for Claude Desktop: got %v", err)
	}
	if _, err := clients.Lookup("claude").ProjectFile("."); err == nil {
		t.Error("a project of Claude Desktop: got no error")
	}
}

// FuzzPut adds an entry and removes it: all others stay, and so do all bytes if there was a server before.
func FuzzPut(f *testing.F) {
	f.Add(toml, true)
	f.Add("[mcp_servers.a]\r\nx = '''\r\n[mcp_servers.nexus]\r\n'''\r\n", true)
	f.Add("x = [\n[1],\n]\n[mcp_servers]\n", true)
	f.Add("", true)
	f.Add("{\"mcpServers\": {\"a\": {} // x\n,}}", false)
	f.Fuzz(func(t *testing.T, text string, isTOML bool) {
		client := clients.Lookup("cursor")
		if isTOML {
			client = clients.Lookup("codex")
		}
		before, err := client.Servers([]byte(text))
		if err != nil || before.Get("nexus") != nil {
			return
		}
		put, err := client.Put([]byte(text), "nexus", address)
		if err != nil {
			return
		}
		if again, err := client.Put(put, "nexus", address); err != nil || !bytes.Equal(again, put) {
			t.Fatalf("a second Put: got %q, %v, want %q", again, err, put)
		}
		removed, err := client.Remove(put, "nexus")
		if err != nil {
			t.Fatalf("Remove of %q: %v", put, err)
		}
		after, err := client.Servers(removed)
		a, _ := json.Marshal(jsonc.Object(after))
		b, _ := json.Marshal(jsonc.Object(before))
		if err != nil || !bytes.Equal(a, b) {
			t.Fatalf("got %s, %v, want %s", a, err, b)
		}
		if isTOML && strings.TrimRight(string(removed), " \t\r\n") != strings.TrimRight(text, " \t\r\n") {
			t.Fatalf("got %q, want %q", removed, text)
		}
	})
}

// Entries of all clients become those that desktop clients share.
func TestStandard(t *testing.T) {
	for _, c := range []struct{ client, entry, want string }{
		{"cursor", `{"command":"x","args":["y"],"env":{"A":"b"}}`, `{"command":"x","args":["y"],"env":{"A":"b"}}`},
		{"copilot", `{"type":"local","command":"x","tools":["*"]}`, `{"type":"stdio","command":"x"}`},
		{"copilot", `{"type":"http","url":"http://a","tools":["get_*"]}`, `{"type":"http","url":"http://a","tools":{"allow":["get_*"]}}`},
		{"gemini", `{"url":"http://a","headers":{"K":"$TOKEN"}}`, `{"url":"http://a","headers":{"K":"${TOKEN}"},"type":"sse"}`},
		{"gemini", `{"httpUrl":"http://a/$$"}`, `{"httpUrl":"http://a/$$"}`},
		{"windsurf", `{"serverUrl":"http://a","enabled":true}`, `{"serverUrl":"http://a"}`},
		{"zed", `{"source":"custom","command":"x","enabled":false}`, `{"command":"x","disabled":true}`},
		{"zed", `{"source":"extension","settings":{}}`, ``},
		{"zed", `{"command":{"path":"x"}}`, ``},
	} {
		raw := json.RawMessage(c.entry)
		servers := clients.Servers{{Name: "nexus", Value: raw}, {Name: "s", Value: raw}}
		text, names, err := clients.Lookup(c.client).Standard(servers, "nexus")
		want := `{"mcpServers":{}}`
		if c.want != "" {
			want = `{"mcpServers":{"s":` + c.want + `}}`
		}
		if err != nil || string(text) != want || len(names) != strings.Count(want, `"s":`) {
			t.Errorf("%s: got %s, %q, %v, want %s", c.client, text, names, err, want)
		}
	}
}

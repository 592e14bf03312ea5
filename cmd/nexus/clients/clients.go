// Package clients edits the configuration files of MCP clients. [Lookup] and [All] return a [Client], which knows where
// its file is ([Client.File]) and how an entry in it looks. [Client.Put], [Client.Remove] and [Client.Move] change one
// entry of a file's text and keep all other bytes, comments included. Nothing here reads or writes the files.
package clients

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/jsonc"
)

// System is the machine and the account of a user.
type System struct {
	OS   string              // as runtime.GOOS
	Home string              // folder
	Env  func(string) string // environment variables
}

// home returns a path below the home folder.
func (s System) home(names ...string) string { return filepath.Join(s.Home, filepath.Join(names...)) }

// folder returns the folder in a variable or, if it is not set, a folder below the home folder.
func (s System) folder(variable string, names ...string) string {
	if folder := s.Env(variable); filepath.IsAbs(folder) {
		return folder
	}
	return s.home(names...)
}

// config returns the folder for configurations of applications, mac being the one on macOS.
func (s System) config(mac ...string) string {
	switch s.OS {
	case "windows":
		return s.folder("APPDATA", "AppData", "Roaming")
	case "darwin":
		return s.home(mac...)
	}
	return s.folder("XDG_CONFIG_HOME", ".config")
}

// application returns the folder of an application for its own configuration.
func (s System) application(name string) string {
	return filepath.Join(s.config("Library", "Application Support"), name)
}

// dotConfig is application for programs that use ~/.config on macOS, too.
func (s System) dotConfig(name string) string { return filepath.Join(s.config(".config"), name) }

// place is where a client may be.
type place struct {
	sign string // file or folder that shows that the client is installed
	file string
}

// in returns the place of a file in a folder that is the sign itself.
func in(folder, file string) []place { return []place{{folder, filepath.Join(folder, file)}} }

// Client is an MCP client.
type Client struct {
	Name  string // for the command line
	Title string // for people

	places  func(System) []place // the first with a sign counts
	project string               // file of a project, relative to its folder; "" = the client has none
	servers string               // member or table with the servers
	toml    bool                 // the file is TOML, otherwise JSON with comments
	shape   shape
}

// shape is how entries of a client look.
type shape struct {
	stdio, http string // values of the member type; "" = no such member
	url         string // member with the address of a server; "" = the client starts servers only
	headers     string // member with the headers; "" = headers
	more        jsonc.Object
}

// All returns the clients, in order of their names.
func All() []*Client {
	return []*Client{
		{
			Name: "antigravity", Title: "Antigravity", servers: "mcpServers", shape: shape{url: "serverUrl"},
			places: func(s System) (all []place) { // the application and the command line share one file
				for _, sign := range []string{"config", "antigravity", "antigravity-cli"} {
					all = append(all, place{s.home(".gemini", sign), s.home(".gemini", "config", "mcp_config.json")})
				}
				return all
			},
		},
		{
			Name: "claude", Title: "Claude Desktop", servers: "mcpServers",
			places: func(s System) (all []place) {
				if s.OS == "windows" { // packaged applications have a folder of their own instead of %APPDATA%
					packages := filepath.Join(s.folder("LOCALAPPDATA", "AppData", "Local"), "Packages", "Claude_*")
					folders, _ := filepath.Glob(filepath.Join(packages, "LocalCache", "Roaming", "Claude"))
					for _, folder := range folders {
						all = append(all, in(folder, "claude_desktop_config.json")...)
					}
				}
				return append(all, in(s.application("Claude"), "claude_desktop_config.json")...)
			},
		},
		{
			Name: "claude-code", Title: "Claude Code", servers: "mcpServers", project: ".mcp.json",
			shape: shape{stdio: "stdio", http: "http", url: "url"},
			places: func(s System) []place {
				file := filepath.Join(s.folder("CLAUDE_CONFIG_DIR"), ".claude.json")
				return []place{{file, file}, {s.folder("CLAUDE_CONFIG_DIR", ".claude"), file}}
			},
		},
		{
			Name: "codex", Title: "Codex", servers: "mcp_servers", project: ".codex/config.toml", toml: true,
			shape:  shape{url: "url", headers: "http_headers"},
			places: func(s System) []place { return in(s.folder("CODEX_HOME", ".codex"), "config.toml") },
		},
		{
			Name: "copilot", Title: "GitHub Copilot CLI", servers: "mcpServers",
			shape: shape{stdio: "stdio", http: "http", url: "url",
				more: jsonc.Object{{Name: "tools", Value: []string{"*"}}}},
			places: func(s System) []place { return in(s.folder("COPILOT_HOME", ".copilot"), "mcp-config.json") },
		},
		{
			Name: "cursor", Title: "Cursor", servers: "mcpServers", project: ".cursor/mcp.json", shape: shape{url: "url"},
			places: func(s System) []place { return in(s.home(".cursor"), "mcp.json") },
		},
		{
			Name: "devin", Title: "Devin Desktop", servers: "mcpServers", project: ".devin/mcp_config.json",
			shape:  shape{url: "url"},
			places: func(s System) []place { return in(s.dotConfig("devin"), "mcp_config.json") },
		},
		{
			Name: "gemini", Title: "Gemini CLI", servers: "mcpServers", project: ".gemini/settings.json",
			shape:  shape{url: "httpUrl"},
			places: func(s System) []place { return in(s.home(".gemini"), "settings.json") },
		},
		{
			Name: "lmstudio", Title: "LM Studio", servers: "mcpServers", shape: shape{url: "url"},
			places: func(s System) []place { return in(s.home(".lmstudio"), "mcp.json") },
		},
		{
			Name: "vscode", Title: "VS Code", servers: "servers", project: ".vscode/mcp.json",
			shape:  shape{stdio: "stdio", http: "http", url: "url"},
			places: func(s System) []place { return in(filepath.Join(s.application("Code"), "User"), "mcp.json") },
		},
		{
			Name: "windsurf", Title: "Windsurf", servers: "mcpServers", shape: shape{url: "serverUrl"},
			places: func(s System) []place { return in(s.home(".codeium", "windsurf"), "mcp_config.json") },
		},
		{
			Name: "zed", Title: "Zed", servers: "context_servers", project: ".zed/settings.json", shape: shape{url: "url"},
			places: func(s System) []place {
				if s.OS == "windows" {
					return in(s.application("Zed"), "settings.json")
				}
				return in(s.dotConfig("zed"), "settings.json")
			},
		},
	}
}

// Lookup returns a client by name, nil if there is none.
func Lookup(name string) *Client {
	for _, c := range All() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// NotFoundError says that a client is not installed.
type NotFoundError struct{ Client, Sign string }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("%s is not installed: there is no %s; start it once, or name another client", e.Client, e.Sign)
}

// File returns the client's file on a system, whether it exists or not. If the client is not installed, the error is a
// *NotFoundError.
func (c *Client) File(s System) (string, error) {
	places := c.places(s)
	for _, p := range places {
		if _, err := os.Stat(p.sign); err == nil {
			return p.file, nil
		}
	}
	return places[len(places)-1].file, &NotFoundError{c.Title, places[len(places)-1].sign}
}

// ProjectFile returns the client's file for the project in a folder.
func (c *Client) ProjectFile(folder string) (string, error) {
	if c.project == "" {
		return "", fmt.Errorf("%s has no configuration of projects; leave --project out", c.Title)
	}
	return filepath.Join(folder, filepath.FromSlash(c.project)), nil
}

// Entry is how a client reaches a server: it starts a command, or connects to a URL.
type Entry struct {
	Command string
	Args    []string
	URL     string
	Key     string // for the URL; "" = none
}

// authorization is the header with the key.
const authorization = "Authorization"

// fields returns the members of an entry.
func (c *Client) fields(e Entry) (fields jsonc.Object, err error) {
	add := func(name string, value any) { fields = append(fields, jsonc.Member{Name: name, Value: value}) }
	kind := c.shape.stdio
	if e.URL != "" {
		kind = c.shape.http
	}
	if kind != "" {
		add("type", kind)
	}
	switch {
	case e.URL == "":
		add("command", e.Command)
		add("args", e.Args)
	case c.shape.url == "":
		return nil, fmt.Errorf("%s takes no URL in its file, it starts servers only; leave --url out", c.Title)
	default:
		add(c.shape.url, e.URL)
		if e.Key != "" {
			add(c.headers(), jsonc.Object{{Name: authorization, Value: "Bearer " + e.Key}})
		}
	}
	return append(fields, c.shape.more...), nil
}

func (c *Client) headers() string {
	if c.shape.headers != "" {
		return c.shape.headers
	}
	return "headers"
}

// stale returns the members that an entry of the other kind, or of another client, may have, and those that disable it.
func (c *Client) stale(e Entry) (names []string) {
	if e.URL == "" {
		return append(strings.Fields("url httpUrl serverUrl bearer_token_env_var env_http_headers disabled enabled"), c.headers())
	}
	for _, name := range strings.Fields("url httpUrl serverUrl command args env cwd disabled enabled") {
		if name != c.shape.url {
			names = append(names, name)
		}
	}
	return names
}

// Put adds an entry to a file's text, or changes the entry with that name. Members of an entry that Put does not know
// stay. Text with that entry is returned as it is.
func (c *Client) Put(text []byte, name string, e Entry) ([]byte, error) {
	fields, err := c.fields(e)
	if err != nil {
		return nil, err
	}
	old, err := c.Servers(text)
	if err != nil {
		return nil, err
	}
	switch is := old.Get(name) != nil; {
	case c.toml:
		return tomlPut(text, c.servers, name, fields, c.stale(e))
	case !is:
		return jsonc.Set(text, fields, c.servers, name)
	}
	for _, f := range fields {
		path, value := []string{c.servers, name, f.Name}, f.Value
		if f.Name == c.headers() { // others of them stay
			path, value = append(path, authorization), f.Value.(jsonc.Object)[0].Value
		}
		if text, err = jsonc.Set(text, value, path...); err != nil {
			return nil, err
		}
	}
	for _, member := range c.stale(e) {
		if text, err = jsonc.Remove(text, c.servers, name, member); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// Remove takes an entry out of a file's text. It undoes a Put that has added it, if there were entries before.
func (c *Client) Remove(text []byte, name string) ([]byte, error) {
	if c.toml {
		return tomlRemove(text, c.servers, name)
	}
	return jsonc.Remove(text, c.servers, name)
}

// Move returns to with the entry that from has under a name, as Put would have added it.
func (c *Client) Move(to, from []byte, name string) ([]byte, error) {
	if c.toml {
		return tomlMove(to, from, c.servers, name)
	}
	servers, err := c.Servers(from)
	if err != nil {
		return nil, err
	}
	if raw := servers.Get(name); raw != nil {
		return jsonc.Set(to, raw, c.servers, name)
	}
	return to, nil
}

// Servers are the entries of a client's file as JSON.
type Servers jsonc.Object

// Get returns an entry, nil if there is none.
func (s Servers) Get(name string) json.RawMessage {
	for _, m := range s {
		if m.Name == name {
			return m.Value.(json.RawMessage)
		}
	}
	return nil
}

// Servers returns the entries in a file's text, in their order.
func (c *Client) Servers(text []byte) (Servers, error) {
	if c.toml {
		return tomlServers(text, c.servers)
	}
	all, err := jsonc.Members(text, c.servers)
	return Servers(all), err
}

// Read returns what an entry of the client tells about its server.
func (c *Client) Read(entry json.RawMessage) (e Entry) {
	var raw map[string]json.RawMessage
	_ = json.Unmarshal(entry, &raw) // what has another form is not read
	_ = json.Unmarshal(raw["command"], &e.Command)
	_ = json.Unmarshal(raw["args"], &e.Args)
	_ = json.Unmarshal(raw[c.shape.url], &e.URL)
	var headers map[string]string
	_ = json.Unmarshal(raw[c.headers()], &headers)
	e.Key = strings.TrimPrefix(headers[authorization], "Bearer ")
	return e
}

package config

import (
	"maps"
	"net/url"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/secret"
)

// serverName has no "__", which separates it from the tool's name, and no "_" at its edges.
var serverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*(_[A-Za-z0-9-]+)*$`)

const serverNameRule = `letters, digits, "-" and single "_" inside, starting with a letter or digit`

// addServers appends the servers in n, an mcpServers object at path.
func (d *decoder) addServers(to []downstream.ServerConfig, path string, n *node) []downstream.ServerConfig {
	if n.kind == null || !d.want(path, n, mapping) {
		return to
	}
	for _, m := range n.members {
		if !serverName.MatchString(m.key) {
			d.fail(m.at, path, "%s is not a valid server name: want %s", place{m.at, m.key}.quoted(), serverNameRule)
			continue
		}
		if first, ok := d.servers[m.key]; ok {
			d.fail(m.at, path, "server %q is already defined at %v", m.key, first)
			continue
		}
		d.servers[m.key] = m.at
		to = append(to, d.server(join(path, m.key), m))
	}
	return to
}

// server reads one entry. For a disabled server it checks only the shape, not the values.
func (d *decoder) server(at string, m member) downstream.ServerConfig {
	cfg := downstream.ServerConfig{Name: m.key}
	entry := m.value
	if entry.kind != null && !d.want(at, entry, mapping) {
		return cfg
	}
	if d.client {
		entry = d.adapt(at, entry)
	}
	d.lenient = d.shape || d.disabled(entry)
	defer func() { d.lenient = false }()

	failed := len(d.problems.list) + d.problems.more
	d.structure(at, entry, reflect.ValueOf(&cfg).Elem())
	if len(d.problems.list)+d.problems.more > failed {
		return cfg
	}
	s := serverCheck{d, at, m.at, &cfg}
	s.transport()
	s.rest()
	if !cfg.Disabled && !d.shape {
		s.url()
		s.headers()
		s.auth()
		s.process()
	}
	return cfg
}

// disabled reads "disabled" of an entry in advance.
func (d *decoder) disabled(entry *node) bool {
	n := entry.get("disabled")
	if n == nil || (n.kind != boolean && n.kind != text) {
		return false
	}
	s, err := expand(n.text, d.env, d.client)
	return err == nil && strings.EqualFold(s, "true")
}

// serverCheck checks the values of one server.
type serverCheck struct {
	d    *decoder
	path string
	at   position // of the server's name
	cfg  *downstream.ServerConfig
}

func (s serverCheck) fail(key, format string, args ...any) {
	at := s.at
	if p, ok := s.d.places[join(s.path, key)]; ok {
		at = p.at
	}
	s.d.fail(at, join(s.path, key), format, args...)
}

func (s serverCheck) warn(format string, args ...any) {
	s.d.warn(s.at, "%s: "+format, append([]any{s.path}, args...)...)
}

// transport checks and resolves the type.
func (s serverCheck) transport() {
	c := s.cfg
	switch c.Type {
	case "streamable-http", "streamableHttp", "streamable_http":
		c.Type = downstream.TransportHTTP
	case "", downstream.TransportStdio, downstream.TransportHTTP, downstream.TransportSSE:
	default:
		s.fail("type", "want stdio, http or sse, got %s", s.d.places[s.path+".type"].quoted())
		return
	}
	switch {
	case c.Command != "" && c.URL != "":
		s.d.fail(s.at, s.path, "has both command and url; keep one")
	case c.Command == "" && c.URL == "":
		s.d.fail(s.at, s.path, "needs a command or a url")
	case c.Command != "" && (c.Type == downstream.TransportHTTP || c.Type == downstream.TransportSSE):
		s.fail("type", "%s needs a url, not a command", c.Type)
	case c.URL != "" && c.Type == downstream.TransportStdio:
		s.fail("type", "stdio needs a command, not a url")
	case c.Type != "":
	case c.Command != "":
		c.Type = downstream.TransportStdio
	default:
		c.Type = downstream.TransportHTTP
		address, _, _ := strings.Cut(c.URL, "?")
		if strings.HasSuffix(strings.TrimSuffix(address, "/"), "/sse") {
			c.Type = downstream.TransportSSE
		}
	}
}

// rest checks the settings common to all transports.
func (s serverCheck) rest() {
	c := s.cfg
	if c.Timeout < 0 {
		s.fail("timeout", "must not be negative")
	}
	if c.ConnectTimeout < 0 {
		s.fail("connect_timeout", "must not be negative")
	}
	if c.MaxParallel < 0 {
		s.fail("max_parallel", "must not be negative")
	}
	switch c.Session {
	case "", downstream.SessionShared, downstream.SessionPerClient:
	default:
		s.fail("session", "want shared or per_client, got %s", s.d.places[s.path+".session"].quoted())
	}
	s.d.patterns(s.path+".tools.allow", c.Tools.Allow)
	s.d.patterns(s.path+".tools.deny", c.Tools.Deny)
	if c.URL != "" && (len(c.Args) > 0 || len(c.Env) > 0 || c.Cwd != "") {
		s.warn("args, env and cwd have no effect with a url")
	}
	switch c.Placement {
	case "", downstream.PlacementEach, downstream.PlacementOne:
	default:
		s.fail("placement", "want each or one, got %s", s.d.places[s.path+".placement"].quoted())
	}
	if c.Command != "" && len(c.Headers)+len(c.ForwardHeaders) > 0 {
		s.warn("headers and forward_headers have no effect with a command")
	}
	s.forwardHeaders()
}

func (s serverCheck) url() {
	if s.cfg.URL != "" {
		if why := checkURL(s.cfg.URL); why != "" {
			s.fail("url", "%s", why)
		}
	}
}

// checkURL returns what is wrong with the address of a server or model, "" if nothing is. It does not quote the
// address, which may contain a token.
func checkURL(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return "is not a valid URL"
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.Hostname() == "":
		return "want an absolute http or https URL, such as http://localhost:8000/mcp"
	case u.User != nil:
		return "must not hold a user name or password; write a header"
	case u.Fragment != "":
		return "must not have a #fragment"
	}
	return ""
}

// headers checks names and values, and drops headers that the transport writes.
func (s serverCheck) headers() {
	checkHeaders(s.cfg.Headers, func(name, why string) { s.fail("headers."+name, "%s", why) })
	for _, name := range slices.Sorted(maps.Keys(s.cfg.Headers)) {
		if ownHeader(strings.ToLower(name)) {
			s.warn("header %s is written by the transport; yours is left out", name)
			delete(s.cfg.Headers, name)
		}
	}
}

// forwardHeaders checks the names in forward_headers. The transport and the configuration must not write these headers.
// It drops names of headers that may contain the caller's key.
func (s serverCheck) forwardHeaders() {
	own := map[string]bool{}
	for name := range s.cfg.Headers {
		own[strings.ToLower(name)] = true
	}
	keys := func(name string) bool {
		return slices.Contains([]string{"authorization", "x-api-key", "proxy-authorization"}, strings.ToLower(name))
	}
	for i, name := range s.cfg.ForwardHeaders {
		path := item(join(s.path, "forward_headers"), i)
		switch lower := strings.ToLower(name); {
		case !httpguts.ValidHeaderFieldName(name):
			s.d.wrong(path, "is not a valid header name")
		case keys(name):
			s.warn("%s of forward_headers is never passed on: it may hold the key of this router; "+
				"write what the server needs as headers", name)
		case ownHeader(lower):
			s.d.wrong(path, "%s is written by the transport", name)
		case own[lower]:
			s.d.wrong(path, "%s is one of headers, too; keep one", name)
		}
	}
	s.cfg.ForwardHeaders = slices.DeleteFunc(s.cfg.ForwardHeaders, keys)
}

// checkHeaders checks names and values.
func checkHeaders(headers map[string]secret.String, fail func(name, why string)) {
	seen := make(map[string]string, len(headers))
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		lower := strings.ToLower(name)
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			fail(name, "is not a valid header name")
			continue
		case seen[lower] != "":
			fail(name, "is the same header as "+seen[lower])
			continue
		case !httpguts.ValidHeaderFieldValue(headers[name].Reveal()):
			fail(name, "holds a line break or another control character")
		}
		seen[lower] = name
	}
}

// ownHeader reports whether the transport writes a header. The name is in lower case.
func ownHeader(name string) bool {
	return slices.Contains([]string{
		"accept", "connection", "content-length", "content-type", "host", "keep-alive", "last-event-id", "te", "trailer",
		"transfer-encoding", "upgrade",
	}, name) || strings.HasPrefix(name, "mcp-")
}

// process checks the settings of a child process, and makes cwd absolute, relative to the folder of the file.
func (s serverCheck) process() {
	c := s.cfg
	for key, value := range map[string]string{"command": c.Command, "cwd": c.Cwd, "args": strings.Join(c.Args, "")} {
		if strings.ContainsRune(value, 0) {
			s.fail(key, "must not hold a NUL character")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			s.fail("env."+name, "is not a valid variable name")
		} else if strings.ContainsRune(c.Env[name].Reveal(), 0) {
			s.fail("env."+name, "must not hold a NUL character")
		}
	}
	if c.Cwd != "" {
		cwd, err := beside(s.at.file, c.Cwd)
		if err != nil {
			s.fail("cwd", "%v", err)
			return
		}
		c.Cwd = cwd
	}
	if s.d.programs && c.Command != "" {
		s.program()
	}
}

// program warns about a command that cannot be started.
func (s serverCheck) program() {
	command, where := s.cfg.Command, "in PATH"
	if filepath.Base(command) != command {
		where = "there"
		if !filepath.IsAbs(command) && s.cfg.Cwd != "" {
			command = filepath.Join(s.cfg.Cwd, command)
		}
	}
	if _, err := exec.LookPath(command); err != nil {
		p := s.d.places[s.path+".command"]
		s.d.warn(p.at, "%s.command: no program %s is %s; install it or correct the command", s.path, p.quoted(), where)
	}
}

// beside returns name as an absolute path. A relative name is relative to the folder of file.
func beside(file, name string) (string, error) {
	if filepath.IsAbs(name) {
		return filepath.Clean(name), nil
	}
	return filepath.Abs(filepath.Join(filepath.Dir(file), name))
}

// patterns checks shell patterns.
func (d *decoder) patterns(at string, patterns []string) {
	for i, pattern := range patterns {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			d.failItem(at, i, "is not a valid pattern; want a tool name, where * matches anything")
		}
	}
}

// failItem records that item i of the list at path is wrong.
func (d *decoder) failItem(path string, i int, format string, args ...any) {
	d.wrong(item(path, i), format, args...)
}

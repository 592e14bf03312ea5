package config

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"golang.org/x/net/http/httpguts"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/downstream/server"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/pattern"
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

// serverName has no "__", which separates it from the tool's name, and no "_" at its edges.
var serverName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9-]*(_[A-Za-z0-9-]+)*$`)

const serverNameRule = `letters, digits, "-" and single "_" inside, starting with a letter or digit`

// CheckServerName returns an error if a server cannot have the name.
func CheckServerName(name string) error {
	if !serverName().MatchString(name) {
		return fmt.Errorf("%s is not a valid server name: want %s", quote(name), serverNameRule)
	}
	return nil
}

// servers appends the servers in n, an mcpServers object at path.
func (c loader) servers(
	to []downstream.ServerConfig, doc *document, path string, n ast.Node,
) ([]downstream.ServerConfig, error) {
	mapping, ok := n.(*ast.MappingNode)
	if !ok {
		return nil, mistake(doc.name, n.GetToken(), "%s: want a mapping, got %s", path, kindOf(n))
	}
	for _, m := range mapping.Values {
		if err := c.name(doc, path, m); err != nil {
			return nil, err
		}
		at := join(path, keyOf(m))
		if entry, ok := m.Value.(*ast.MappingNode); ok && doc.json {
			c.adapt(doc, at, entry)
		}
		cfg, err := c.server(doc, at, m)
		if err != nil {
			return nil, err
		}
		to = append(to, cfg)
	}
	return to, nil
}

// name checks the name of a server and remembers where it is defined.
func (c loader) name(doc *document, path string, m *ast.MappingValueNode) error {
	name, token := keyOf(m), m.Key.GetToken()
	if err := CheckServerName(name); err != nil {
		return mistake(doc.name, token, "%s: %v", path, err)
	}
	if first := c.names[name]; first != "" {
		return mistake(doc.name, token, "%s: server %q is already defined at %s", path, name, first)
	}
	c.names[name] = fmt.Sprintf("%s:%d:%d", doc.name, token.Position.Line, token.Position.Column)
	return nil
}

// server reads one entry. For a disabled server it checks only the shape, not the values. A server that needs a
// variable which is not set is disabled.
func (c loader) server(doc *document, path string, m *ast.MappingValueNode) (downstream.ServerConfig, error) {
	cfg := downstream.ServerConfig{Name: keyOf(m)}
	shape := c.disabled(doc, m.Value)
	if err := doc.expand(path, m.Value, c.env, shape); err != nil {
		var wrong *Error
		if !errors.As(err, &wrong) || !wrong.unset || c.strict {
			return cfg, err
		}
		cfg.Unusable, shape = wrong.Message, true
	}
	entry := m.Value
	if mapping, ok := entry.(*ast.MappingNode); ok && shape {
		entry = withoutVariables(mapping)
	}
	if err := doc.decode(path, entry, &cfg); err != nil {
		return cfg, err
	}
	cfg.Disabled = cfg.Disabled || cfg.Unusable != ""
	s := serverCheck{c.checker, doc, path, &cfg}
	s.transport()
	s.shape()
	if !shape || cfg.Unusable != "" && !strings.Contains(cfg.URL, "${") {
		s.url()
	}
	if !shape {
		s.auth()
		s.process()
	}
	return cfg, nil
}

// disabled reads "disabled" of an entry in advance.
func (c loader) disabled(doc *document, entry ast.Node) bool {
	n := value(entry, "disabled")
	if n == nil {
		return false
	}
	s, err := expand(written(n), c.env, doc.json)
	return err == nil && strings.EqualFold(s, "true")
}

// withoutVariables returns an entry without members, other than texts, that need a variable.
func withoutVariables(entry *ast.MappingNode) *ast.MappingNode {
	own := *entry
	own.Values = slices.DeleteFunc(slices.Clone(entry.Values), func(m *ast.MappingValueNode) bool {
		text, ok := m.Value.(*ast.StringNode)
		return ok && strings.Contains(text.Value, "${") && keyOf(m) != "command" && keyOf(m) != "url"
	})
	return &own
}

// serverCheck checks the values of one server.
type serverCheck struct {
	*checker
	doc  *document
	path string
	cfg  *downstream.ServerConfig
}

func (s serverCheck) warnOf(format string, args ...any) {
	s.warn(s.path, "%s: "+format, append([]any{s.path}, args...)...)
}

// transport checks and resolves the type.
func (s serverCheck) transport() {
	c := s.cfg
	switch c.Type {
	case "streamable-http", "streamableHttp", "streamable_http":
		c.Type = downstream.TransportHTTP
	case "", downstream.TransportStdio, downstream.TransportHTTP, downstream.TransportSSE:
	default:
		s.oneOf(s.path+".type", c.Type, downstream.TransportStdio, downstream.TransportHTTP, downstream.TransportSSE)
	}
	switch {
	case c.Command != "" && c.URL != "":
		s.fail(s.path, "has both command and url; keep one")
	case c.Command == "" && c.URL == "":
		s.fail(s.path, "needs a command or a url")
	case c.Command != "" && (c.Type == downstream.TransportHTTP || c.Type == downstream.TransportSSE):
		s.fail(s.path+".type", "%s needs a url, not a command", c.Type)
	case c.URL != "" && c.Type == downstream.TransportStdio:
		s.fail(s.path+".type", "stdio needs a command, not a url")
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

// shape checks the settings that need no variables.
func (s serverCheck) shape() {
	c := s.cfg
	if c.Timeout < 0 {
		s.fail(s.path+".timeout", "must not be negative")
	}
	if c.ConnectTimeout < 0 {
		s.fail(s.path+".connect_timeout", "must not be negative")
	}
	if c.MaxParallel < 0 {
		s.fail(s.path+".max_parallel", "must not be negative")
	}
	if c.Session != "" {
		s.oneOf(s.path+".session", c.Session, downstream.SessionShared, downstream.SessionPerClient)
	}
	if c.Placement != "" {
		s.oneOf(s.path+".placement", c.Placement, server.PlacementEach, server.PlacementOne)
	}
	if c.Data != "" {
		s.oneOf(s.path+".data", c.Data, server.DataPrivate, server.DataPublic)
	}
	for i, request := range c.Requests {
		s.oneOf(at(s.path+".requests", i), request, server.RequestElicitation, server.RequestSampling, server.RequestRoots)
	}
	s.patterns(s.path+".tools.allow", c.Tools.Allow)
	s.patterns(s.path+".tools.deny", c.Tools.Deny)
	if c.URL != "" && (len(c.Args) > 0 || len(c.Env) > 0 || c.Cwd != "") {
		s.warnOf("args, env and cwd have no effect with a url")
	}
	if c.Command != "" && len(c.Headers)+len(c.ForwardHeaders) > 0 {
		s.warnOf("headers and forward_headers have no effect with a command")
	}
	s.forwardHeaders()
}

// url checks the address and the headers. It drops headers that the transport writes.
func (s serverCheck) url() {
	if s.cfg.URL != "" {
		if why := checkURL(s.cfg.URL); why != "" {
			s.fail(s.path+".url", "%s", why)
		}
	}
	s.headers(s.path+".headers", s.cfg.Headers)
	for _, name := range slices.Sorted(maps.Keys(s.cfg.Headers)) {
		if ownHeader(strings.ToLower(name)) {
			s.warnOf("header %s is written by the transport; yours is left out", name)
			delete(s.cfg.Headers, name)
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
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return "want an absolute http or https URL, such as http://localhost:8000/mcp"
	case u.User != nil:
		return "must not hold a user name or password; write a header"
	case u.Fragment != "":
		return "must not have a #fragment"
	}
	return ""
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
		path := at(s.path+".forward_headers", i)
		switch lower := strings.ToLower(name); {
		case !httpguts.ValidHeaderFieldName(name):
			s.fail(path, "is not a valid header name")
		case keys(name):
			s.warnOf("%s of forward_headers is never passed on: it may hold the key of this router; "+
				"write what the server needs as headers", name)
		case ownHeader(lower):
			s.fail(path, "%s is written by the transport", name)
		case own[lower]:
			s.fail(path, "%s is one of headers, too; keep one", name)
		}
	}
	s.cfg.ForwardHeaders = slices.DeleteFunc(s.cfg.ForwardHeaders, keys)
}

// headers checks the names and values of the headers at a path.
func (c *checker) headers(path string, headers map[string]redact.Secret) {
	seen := make(map[string]string, len(headers))
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		lower := strings.ToLower(name)
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			c.fail(path+"."+name, "is not a valid header name")
		case seen[lower] != "":
			c.fail(path+"."+name, "is the same header as %s", seen[lower])
		case !httpguts.ValidHeaderFieldValue(headers[name].Reveal()):
			c.fail(path+"."+name, "holds a line break or another control character")
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

// auth checks how the router gets tokens for a server.
func (s serverCheck) auth() {
	a, path := s.cfg.Auth, s.path+".auth"
	if a == nil {
		return
	}
	if s.cfg.URL == "" {
		s.fail(path, "is for a url; a command gets its credentials in env")
	}
	if u, err := url.Parse(s.cfg.URL); err == nil && u.Scheme == "http" && !oauth.OnLoopback(u) {
		s.fail(s.path+".url", "must be https because auth is set: a token would be sent in the clear")
	}
	for name := range s.cfg.Headers {
		if strings.EqualFold(name, "authorization") {
			s.fail(s.path+".headers."+name, "is written from the token of auth; keep one")
		}
	}
	if a.Flow != "" {
		s.oneOf(path+".flow", a.Flow, oauth.FlowCode, oauth.FlowClientCredentials)
	}
	if a.Scope != "" {
		s.oneOf(path+".scope", a.Scope, oauth.ScopeServer, oauth.ScopePerCaller)
	}
	if a.PerCaller() {
		s.perCaller(a, path)
	}
	if a.Flow == oauth.FlowClientCredentials && (a.ClientID == "" || a.ClientSecret == "" && a.PrivateKey == "") {
		s.fail(path, "flow client_credentials needs client_id, and client_secret or private_key")
	}
	if a.ClientSecret != "" && a.ClientID == "" {
		s.fail(path+".client_secret", "needs a client_id")
	}
	s.key(a, path+".private_key")
	if !httpguts.ValidHeaderFieldValue(a.ClientID) || !httpguts.ValidHeaderFieldValue(a.ClientSecret.Reveal()) {
		s.fail(path, "client_id or client_secret holds a line break or another control character")
	}
	if a.Issuer != "" {
		if err := auth.CheckIssuer(a.Issuer); err != nil {
			s.fail(path+".issuer", err.Error())
		}
	}
	for i, scope := range a.Scopes {
		if !oauth.ValidScope(scope) {
			s.fail(at(path+".scopes", i), "is no scope; write one an item")
		}
	}
}

// perCaller checks the settings of a server where callers log in themselves.
func (s serverCheck) perCaller(a *oauth.Config, path string) {
	switch c := s.cfg; {
	case a.Flow == oauth.FlowClientCredentials:
		s.fail(path+".scope", "per_caller needs flow: code, because each caller logs in")
	case a.Issuer == "" && (a.ClientSecret != "" || a.PrivateKey != ""):
		s.fail(path+".issuer", "is needed with per_caller, because client_secret and private_key are for one issuer alone")
	case c.Session == downstream.SessionShared:
		s.fail(s.path+".session", "shared cannot be with auth.scope: per_caller, whose callers share no session")
	case c.Placement == server.PlacementOne:
		s.fail(s.path+".placement", "one cannot be with auth.scope: per_caller")
	}
}

// PerCaller reports whether callers log in to a server themselves.
func (c *Config) PerCaller() bool {
	return slices.ContainsFunc(c.Servers, func(s downstream.ServerConfig) bool { return s.PerCaller() && !s.Disabled })
}

// logins checks what logins of callers need: that callers can be told apart.
func (c loader) logins(cfg *Config) {
	key, _ := c.env("NEXUS_TOKEN_KEY")
	if key != "" && len(key) < minTokenKey {
		c.failAt(mistake("", nil, "NEXUS_TOKEN_KEY has fewer than %d characters; openssl rand -hex 32 makes one", minTokenKey))
	}
	cfg.TokenKey = redact.Secret(key)
	for _, s := range cfg.Servers {
		if s.PerCaller() && !s.Disabled && !cfg.Auth.Required() {
			c.failAt(mistake("", nil, "mcpServers.%s.auth.scope: per_caller: callers cannot be told apart without "+
				"auth.api_keys or auth.oauth; set one, or write scope: server", s.Name))
			return
		}
	}
}

const minTokenKey = 32 // characters of NEXUS_TOKEN_KEY

// key checks the private key of a client, and makes its path absolute, relative to the folder of the file.
func (s serverCheck) key(a *oauth.Config, path string) {
	switch {
	case a.PrivateKey == "" && a.KeyID != "":
		s.fail(strings.TrimSuffix(path, ".private_key")+".key_id", "needs a private_key")
		return
	case a.PrivateKey == "":
		return
	case a.ClientID == "":
		s.fail(path, "needs a client_id")
	case a.ClientSecret != "":
		s.fail(path, "stands instead of client_secret; keep one")
	}
	file, err := beside(s.doc.name, a.PrivateKey)
	if err == nil && s.used == nil {
		err = oauth.CheckKey(file)
	}
	if err != nil {
		s.fail(path, "cannot be used: %v", err)
	}
	a.PrivateKey = file
}

// process checks the settings of a child process, and makes cwd absolute, relative to the folder of the file.
func (s serverCheck) process() {
	c := s.cfg
	if strings.ContainsRune(c.Command+c.Cwd+strings.Join(c.Args, ""), 0) {
		s.fail(s.path, "command, args and cwd must not hold a NUL character")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			s.fail(s.path+".env."+name, "is not a valid variable name")
		} else if strings.ContainsRune(c.Env[name].Reveal(), 0) {
			s.fail(s.path+".env."+name, "must not hold a NUL character")
		}
	}
	if c.Cwd != "" {
		cwd, err := beside(s.doc.name, c.Cwd)
		if err != nil {
			s.fail(s.path+".cwd", "%v", err)
		}
		c.Cwd = cwd
	}
	if s.programs && c.Command != "" {
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
		path := s.path + ".command"
		s.warn(path, "%s: no program %s is %s; install it or correct the command", path, s.got(path), where)
	}
}

package edge

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
)

// policy decides who may talk to the router over HTTP: by the Host and Origin of a request, and by API key or access
// token.
type policy struct {
	keys     *auth.Keys
	trusted  []netip.Prefix
	origins  map[string]bool
	hosts    map[string]bool // of AllowedOrigins
	headers  func() []string
	loopback bool
	public   bool
}

func newPolicy(o Options) *policy {
	p := &policy{
		keys: o.Keys, trusted: o.TrustedProxies, origins: map[string]bool{}, hosts: map[string]bool{},
		headers: o.ForwardHeaders, loopback: o.Loopback, public: o.Public,
	}
	for _, origin := range o.AllowedOrigins {
		host := origin
		if u, err := url.Parse(origin); err == nil && u.Host != "" {
			host, origin = u.Host, u.Scheme+"://"+u.Host
		}
		p.origins[strings.ToLower(origin)] = true
		p.hosts[strings.ToLower(hostname(host))] = true
	}
	return p
}

// needsKey reports whether callers must show a key or a token.
func (p *policy) needsKey() bool { return p.keys != nil && p.keys.Required() }

// valid reports whether a caller's key or token is still valid; without either, whether none is needed.
func (p *policy) valid(c auth.Caller) bool {
	if c.Anonymous {
		return !p.needsKey()
	}
	_, valid := c.Now()
	return valid
}

// identify returns the caller named by a request's headers; without a key or token, the caller is its address.
// refused says why a key or token is refused. Keys and tokens are removed from the headers.
func (p *policy) identify(r *http.Request) (caller auth.Caller, refused *auth.Refusal) {
	present := false
	if p.needsKey() {
		caller, present, refused = p.keys.Authenticate(r.Context(), r.Header, r.URL.Path)
	}
	delete(r.Header, "Authorization")
	delete(r.Header, "X-Api-Key")
	if !present {
		return p.remote(r), nil
	}
	return caller, refused
}

// remote returns the caller for the address of a request.
func (p *policy) remote(r *http.Request) auth.Caller {
	return auth.Anonymous(auth.ClientAddr(r, p.trusted))
}

// verdict is the result of checking the key of a message.
type verdict int

const (
	admitted        verdict = iota
	keyMissing              // the message needs a key
	keyWrong                // the message has a wrong key
	unauthenticated         // only the router itself may answer, see opens
)

// opens reports whether a method is answered without a key, so that one can follow in _meta.
func opens(method string) bool {
	switch method {
	case "initialize", "notifications/initialized", "ping", "server/discover":
		return true
	}
	return false
}

// authorize checks a message by its _meta.api_key and by the caller from its headers, and returns its caller. On stdio
// no key is needed.
func (ep *endpoint) authorize(in *inbound.Message, src source) (auth.Caller, verdict) {
	p, caller := ep.edge.access, src.caller
	if src.local || !p.needsKey() {
		return caller, admitted
	}
	if in.HasKey {
		named, ok := p.keys.Identify(in.Key)
		if !ok {
			return caller, keyWrong
		}
		if caller.Anonymous {
			caller = named
		}
	}
	switch {
	case !caller.Anonymous:
		return caller, admitted
	case opens(in.Method) && p.keys.Any(): // a key may follow in _meta, a token may not
		return caller, unauthenticated
	}
	return caller, keyMissing
}

// MetadataPath serves the protected resource metadata of the router (RFC 9728). The path of an MCP endpoint may
// follow it.
const MetadataPath = "/.well-known/oauth-protected-resource"

// ServeMetadata serves the metadata. It answers 404 if access tokens are not configured, and for unknown paths.
func (e *Edge) ServeMetadata(w http.ResponseWriter, r *http.Request) {
	p := e.access
	path := strings.TrimPrefix(r.URL.Path, MetadataPath)
	c := p.oauth()
	if c == nil || path != "" && auth.Endpoint(path) != path {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD, OPTIONS")
		http.Error(w, "want GET", http.StatusMethodNotAllowed)
		return
	}
	resource := c.Resource(path)
	if resource == "" {
		resource = auth.ClientURL(r, p.trusted) + path
	}
	document, err := json.Marshal(struct {
		Resource string   `json:"resource"`
		Issuers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported,omitempty"`
		Methods  []string `json:"bearer_methods_supported"`
	}{resource, []string{c.Issuer}, c.Scopes, []string{"header"}})
	if err != nil {
		http.Error(w, "the metadata cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store") // a reload may change it
	_, _ = w.Write(document)
}

// Challenge returns the WWW-Authenticate value for a refused request; refused is nil if it has neither key nor token.
func Challenge(e *Edge, r *http.Request, refused *auth.Refusal) string {
	p := e.access
	challenge := `Bearer realm="agenticnexus"`
	c := p.oauth()
	if refused != nil && refused.Code != "" {
		challenge += `, error="` + refused.Code + `"`
		if c != nil {
			challenge += `, error_description="` + refused.Text + `"`
		}
	}
	if c == nil {
		return challenge
	}
	if len(c.Scopes) > 0 {
		challenge += `, scope="` + strings.Join(c.Scopes, " ") + `"`
	}
	return challenge + `, resource_metadata="` + PublicURL(e, r) + MetadataPath + auth.Endpoint(r.URL.Path) + `"`
}

// missing describes the credentials that a request without any lacks.
func (p *policy) missing() string {
	switch {
	case p.oauth() == nil:
		return "an API key is needed"
	case p.keys.Any():
		return "an API key or an access token is needed"
	}
	return "an access token is needed"
}

func (p *policy) oauth() *auth.OAuthConfig {
	if p.keys == nil {
		return nil
	}
	return p.keys.OAuth()
}

// checkHost returns why a Host header is refused, or "". A page whose domain resolves to the router's address (DNS
// rebinding) sends its own domain. With API keys every name is accepted, because such a page has no key.
func (p *policy) checkHost(host string) (refusal string) {
	name := hostname(host)
	switch {
	case isLoopback(name):
	case p.loopback:
		return "the Host header is not a loopback address"
	case p.public && !p.needsKey() && !isAddress(name) && !p.hosts[strings.ToLower(name)]:
		return "without API keys the Host header must be an IP address or a host of allowed_origins"
	}
	return ""
}

// allows reports whether pages of an origin may send requests: those of the same host, of loopback, or listed.
func (p *policy) allows(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme == "" || u.User != nil || u.Path != "" || u.RawQuery != "" {
		return false
	}
	if strings.EqualFold(u.Host, host) || isLoopback(hostname(u.Host)) && (u.Scheme == "http" || u.Scheme == "https") {
		return true
	}
	return p.origins[strings.ToLower(u.Scheme+"://"+u.Host)] || p.origins[strings.ToLower(u.Host)]
}

// hostname removes the port from a host.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// isLoopback reports whether a host name or address refers to this machine.
func isLoopback(name string) bool {
	if strings.ToLower(name) == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}

func isAddress(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil
}

// corsHeaders are the headers that a page may send.
const corsHeaders = "content-type, accept, authorization, x-api-key, mcp-session-id, mcp-protocol-version, " +
	"mcp-method, mcp-name, last-event-id, traceparent, tracestate, baggage"

// allowedHeaders returns the headers allowed by a preflight: corsHeaders and, of the requested ones, those of servers
// and Mcp-Param-*.
func (p *policy) allowedHeaders(h http.Header) string {
	list := corsHeaders
	forServers := map[string]bool{}
	if p.headers != nil {
		for _, name := range p.headers() {
			forServers[strings.ToLower(name)] = true
		}
	}
	for name := range strings.SplitSeq(h.Get("Access-Control-Request-Headers"), ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		param := strings.HasPrefix(name, "mcp-param-") && len(name) < 128 && !strings.ContainsAny(name, "\r\n")
		if param || forServers[name] {
			list += ", " + name
		}
	}
	return list
}

// Package access decides who may talk to the router over HTTP: by the Host and Origin of a request, and by API key or
// access token.
//
// [New] returns a [Policy]. [Policy.CheckOrigin] refuses requests of foreign web pages and answers CORS preflights.
// [Policy.Identify] reads the key or token from the headers, and [Policy.Admit] the key from a message.
// [Policy.Valid] reports whether the credentials of a caller are still valid. [Policy.ServeMetadata] and
// [Policy.Challenge] tell clients where to get tokens.
//
// A Policy is safe for concurrent use. It writes only headers, the status of preflights and the metadata.
package access

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
)

// Options configure a Policy. The zero value admits every caller.
type Options struct {
	Keys           *auth.Keys      // nil = no keys or tokens
	AllowedOrigins []string        // "https://app.example.com", or the host alone
	Headers        func() []string // names of headers that pages may send for servers; may be nil
	TrustedProxies []netip.Prefix
	Loopback       bool // bound to loopback: the Host header must be loopback too
	Public         bool // bound to other addresses: without keys, Host must be an address or an allowed host
}

// Policy decides who may talk to the router.
type Policy struct {
	keys     *auth.Keys
	trusted  []netip.Prefix
	origins  map[string]bool
	hosts    map[string]bool // of AllowedOrigins
	headers  func() []string
	loopback bool
	public   bool
}

// New returns a Policy.
func New(o Options) *Policy {
	p := &Policy{
		keys:     o.Keys,
		trusted:  o.TrustedProxies,
		origins:  make(map[string]bool, len(o.AllowedOrigins)),
		hosts:    make(map[string]bool, len(o.AllowedOrigins)),
		headers:  o.Headers,
		loopback: o.Loopback,
		public:   o.Public,
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

// NeedsKey reports whether callers must show a key or a token.
func (p *Policy) NeedsKey() bool { return p.keys != nil && p.keys.Required() }

// Valid reports whether a caller's key or token is still valid; without either, whether none is needed.
func (p *Policy) Valid(c auth.Caller) bool {
	if c.Anonymous {
		return !p.NeedsKey()
	}
	_, valid := c.Now()
	return valid
}

// Identify returns the caller named by a request's headers; without a key or token, the caller is its address.
// refused says why a key or token is refused. Keys and tokens are removed from the headers.
func (p *Policy) Identify(r *http.Request) (caller auth.Caller, refused *auth.Refusal) {
	present := false
	if p.NeedsKey() {
		caller, present, refused = p.keys.Authenticate(r.Context(), r.Header)
	}
	delete(r.Header, "Authorization")
	delete(r.Header, "X-Api-Key")
	if !present {
		return p.Remote(r), nil
	}
	return caller, refused
}

// Remote returns the caller for the address of a request.
func (p *Policy) Remote(r *http.Request) auth.Caller {
	return auth.Anonymous(auth.ClientAddr(r, p.trusted))
}

// Verdict is the result of checking the key of a message.
type Verdict int

// Verdicts.
const (
	Admitted        Verdict = iota
	KeyMissing              // the message needs a key
	KeyWrong                // the message has a wrong key
	Unauthenticated         // only the router itself may answer, see Open
)

// Open reports whether a method is answered without a key, so that one can follow in _meta.
func Open(method string) bool {
	switch method {
	case "initialize", "notifications/initialized", "ping", "server/discover":
		return true
	}
	return false
}

// Admit checks a message by its _meta.api_key and by the caller from its headers, and returns its caller.
func (p *Policy) Admit(in *inbound.Message, caller auth.Caller) (auth.Caller, Verdict) {
	if !p.NeedsKey() {
		return caller, Admitted
	}
	if in.HasKey {
		named, ok := p.keys.Identify(in.Key)
		if !ok {
			return caller, KeyWrong
		}
		if caller.Anonymous {
			caller = named
		}
	}
	switch {
	case !caller.Anonymous:
		return caller, Admitted
	case Open(in.Method) && p.keys.Any(): // a key may follow in _meta, a token may not
		return caller, Unauthenticated
	}
	return caller, KeyMissing
}

// MetadataPath serves the protected resource metadata of the router (RFC 9728). The path of an MCP endpoint may
// follow it.
const MetadataPath = "/.well-known/oauth-protected-resource"

// ServeMetadata serves the metadata. It answers 404 if access tokens are not configured, and for unknown paths.
func (p *Policy) ServeMetadata(w http.ResponseWriter, r *http.Request) {
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
func (p *Policy) Challenge(r *http.Request, refused *auth.Refusal) string {
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
	base := c.Base()
	if base == "" {
		base = auth.ClientURL(r, p.trusted)
	}
	return challenge + `, resource_metadata="` + base + MetadataPath + auth.Endpoint(r.URL.Path) + `"`
}

// Missing describes the credentials that a request without any lacks.
func (p *Policy) Missing() string {
	switch {
	case p.oauth() == nil:
		return "an API key is needed"
	case p.keys.Any():
		return "an API key or an access token is needed"
	}
	return "an access token is needed"
}

func (p *Policy) oauth() *auth.OAuthConfig {
	if p.keys == nil {
		return nil
	}
	return p.keys.OAuth()
}

package access

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// CheckOrigin refuses requests with a foreign Host or Origin, answers preflights and sets CORS headers. methods are
// the methods of the endpoint. If proceed is false, either refusal is set or the request has been answered.
func (p *Policy) CheckOrigin(w http.ResponseWriter, r *http.Request, methods string) (proceed bool, refusal string) {
	if refusal := p.checkHost(r.Host); refusal != "" {
		return false, refusal
	}
	if sent := r.Header["Origin"]; len(sent) > 0 {
		if len(sent) > 1 || !p.allows(sent[0], r.Host) {
			return false, "the Origin is not allowed"
		}
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", sent[0])
		h.Add("Vary", "Origin")
		h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate")
	}
	if r.Method != http.MethodOptions {
		return true, ""
	}
	h := w.Header()
	h.Set("Allow", methods)
	if r.Header.Get("Access-Control-Request-Method") != "" {
		h.Set("Access-Control-Allow-Methods", methods)
		h.Set("Access-Control-Allow-Headers", p.allowedHeaders(r.Header))
		h.Set("Access-Control-Max-Age", "86400")
	}
	w.WriteHeader(http.StatusNoContent)
	return false, ""
}

// checkHost returns why a Host header is refused, or "". A page whose domain resolves to the router's address (DNS
// rebinding) sends its own domain. With API keys every name is accepted, because such a page has no key.
func (p *Policy) checkHost(host string) (refusal string) {
	name := hostname(host)
	switch {
	case IsLoopback(name):
	case p.loopback:
		return "the Host header is not a loopback address"
	case p.public && !p.NeedsKey() && !isAddress(name) && !p.hosts[strings.ToLower(name)]:
		return "without API keys the Host header must be an IP address or a host of allowed_origins"
	}
	return ""
}

// allows reports whether pages of an origin may send requests: those of the same host, of loopback, or listed.
func (p *Policy) allows(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme == "" || u.User != nil || u.Path != "" || u.RawQuery != "" {
		return false
	}
	if strings.EqualFold(u.Host, host) || IsLoopback(hostname(u.Host)) && (u.Scheme == "http" || u.Scheme == "https") {
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

// IsLoopback reports whether a host name or address refers to this machine.
func IsLoopback(name string) bool {
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
func (p *Policy) allowedHeaders(h http.Header) string {
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

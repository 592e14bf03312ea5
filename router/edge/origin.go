package edge

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// guard refuses requests whose Host or Origin is foreign, answers preflights and sets the CORS headers.
// It reports whether to go on.
func (e *Edge) guard(w http.ResponseWriter, r *http.Request, methods string) bool {
	if reason := e.foreign(r.Host); reason != "" {
		e.writeError(w, http.StatusForbidden, "", refused(reason))
		return false
	}
	if sent := r.Header["Origin"]; len(sent) > 0 {
		if len(sent) > 1 || !e.allowed(sent[0], r.Host) {
			e.writeError(w, http.StatusForbidden, "", refused("the Origin is not allowed"))
			return false
		}
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", sent[0])
		h.Add("Vary", "Origin")
		h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate")
	}
	if r.Method != http.MethodOptions {
		return true
	}
	h := w.Header()
	h.Set("Allow", methods)
	if r.Header.Get("Access-Control-Request-Method") != "" {
		h.Set("Access-Control-Allow-Methods", methods)
		h.Set("Access-Control-Allow-Headers", allowedHeaders(r.Header))
		h.Set("Access-Control-Max-Age", "86400")
	}
	w.WriteHeader(http.StatusNoContent)
	return false
}

// foreign says why a Host header is refused; empty = it is not. A page that has its own name resolved to our address
// (DNS rebinding) sends that name. A key, which such a page does not have, makes every name good.
func (e *Edge) foreign(host string) string {
	name := hostname(host)
	switch {
	case isLoopback(name):
	case e.loopback:
		return "the Host header is not a loopback address"
	case e.public && !e.needsKey() && !isAddress(name) && !e.hosts[lower(name)]:
		return "without API keys the Host header must be an IP address or a host of allowed_origins"
	}
	return ""
}

// Guard lets only requests through whose Host and Origin the MCP surfaces would accept.
func (e *Edge) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if e.guard(w, r, "GET, OPTIONS") {
			next.ServeHTTP(w, r)
		}
	})
}

func refused(reason string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "Forbidden: " + reason}
}

// allowed reports whether a page of origin may talk to us: of our own host, of this machine, or listed.
func (e *Edge) allowed(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme == "" || u.User != nil || u.Path != "" || u.RawQuery != "" {
		return false
	}
	if lower(u.Host) == lower(host) || isLoopback(hostname(u.Host)) && (u.Scheme == "http" || u.Scheme == "https") {
		return true
	}
	return e.origins[lower(u.Scheme+"://"+u.Host)] || e.origins[lower(u.Host)]
}

// hostname cuts the port off a host.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

func isLoopback(name string) bool {
	if lower(name) == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}

func isAddress(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil
}

// lower is strings.ToLower for ASCII, which leaves what is lower already as it is.
func lower(s string) string { return strings.ToLower(s) }

// corsHeaders are the headers that a page may send.
const corsHeaders = "content-type, accept, authorization, x-api-key, mcp-session-id, mcp-protocol-version, " +
	"mcp-method, mcp-name, last-event-id, traceparent, tracestate, baggage"

// allowedHeaders returns the header names for a preflight: those above, and the Mcp-Param-* it asks for.
func allowedHeaders(h http.Header) string {
	list := corsHeaders
	for name := range strings.SplitSeq(h.Get("Access-Control-Request-Headers"), ",") {
		name = lower(strings.TrimSpace(name))
		if strings.HasPrefix(name, "mcp-param-") && len(name) < 128 && !strings.ContainsAny(name, "\r\n") {
			list += ", " + name
		}
	}
	return list
}

package auth

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ParseProxies reads trusted_proxies: addresses such as 10.0.0.1 and prefixes such as 10.0.0.0/8.
func ParseProxies(entries []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, entry := range entries {
		if prefix, err := netip.ParsePrefix(entry); err == nil {
			if addr := prefix.Addr(); addr.Is4In6() && prefix.Bits() >= 96 {
				prefix = netip.PrefixFrom(addr.Unmap(), prefix.Bits()-96)
			}
			out = append(out, prefix.Masked())
			continue
		}
		addr, err := netip.ParseAddr(entry)
		if err != nil || addr.Zone() != "" {
			return nil, fmt.Errorf("trusted_proxies: %q is neither an address nor a prefix such as 10.0.0.0/8", entry)
		}
		addr = addr.Unmap()
		out = append(out, netip.PrefixFrom(addr, addr.BitLen()))
	}
	return out, nil
}

// ClientAddr returns the address of the client that sent r, without port and zone. If the peer is a trusted proxy, it
// is the rightmost entry of X-Forwarded-For that is not a trusted proxy. Entries further left are claims of the
// client and are ignored. An entry that is not an address ends the search. A peer without an IP address is returned
// unchanged.
func ClientAddr(r *http.Request, trusted []netip.Prefix) string {
	client, ok := parseAddr(r.RemoteAddr)
	if !ok {
		return r.RemoteAddr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !isIn(trusted, client) {
			break
		}
		addr, ok := parseAddr(strings.TrimSpace(hop))
		if !ok {
			break
		}
		client = addr
	}
	return client.String()
}

// ClientURL returns the URL of this server as seen by the client of r, without a path. X-Forwarded-Proto counts only
// from a trusted proxy.
func ClientURL(r *http.Request, trusted []netip.Prefix) string {
	peer, ok := parseAddr(r.RemoteAddr)
	if r.TLS != nil || ok && isIn(trusted, peer) && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

func isIn(prefixes []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// parseAddr reads 1.2.3.4, 1.2.3.4:80, ::1, [::1] and [::1]:80.
func parseAddr(s string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	if err != nil {
		withPort, err := netip.ParseAddrPort(s)
		if err != nil {
			return netip.Addr{}, false
		}
		addr = withPort.Addr()
	}
	return addr.Unmap().WithZone(""), true
}

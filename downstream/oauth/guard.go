package oauth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

const (
	exchangeTime = 20 * time.Second // limit of one request, including its response
	maxRedirects = 3
)

// zone classifies an address by how private its network is.
type zone int

const (
	public zone = iota
	private
	loopback
	forbidden // link-local (such as cloud metadata services), multicast and unspecified
)

var sharedSpace = netip.MustParsePrefix("100.64.0.0/10") // RFC 6598

// Prefixes of IPv6 addresses that embed an IPv4 address.
var (
	compatible = netip.MustParsePrefix("::/96")          // RFC 4291
	nat64      = netip.MustParsePrefix("64:ff9b::/96")   // RFC 6052
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48") // RFC 8215
	sixToFour  = netip.MustParsePrefix("2002::/16")      // RFC 3056
	teredo     = netip.MustParsePrefix("2001::/32")      // RFC 4380
)

// embedded returns the IPv4 addresses that traffic to an IPv6 address may reach through a translator or a tunnel.
func embedded(a netip.Addr) (all []netip.Addr) {
	b := a.As16()
	add := func(quad ...byte) {
		if v4 := netip.AddrFrom4([4]byte(quad)); !v4.IsUnspecified() {
			all = append(all, v4)
		}
	}
	switch {
	case a.IsLoopback():
	case compatible.Contains(a), nat64.Contains(a):
		add(b[12:]...)
	case sixToFour.Contains(a):
		add(b[2:6]...)
	case teredo.Contains(a):
		add(b[4:8]...)
		add(^b[12], ^b[13], ^b[14], ^b[15])
	case localNAT64.Contains(a): // where the address is depends on the length of the network's own prefix
		add(b[12:]...)
		add(b[6], b[7], b[9], b[10])
		add(b[7], b[9], b[10], b[11])
		add(b[9:13]...)
	}
	return all
}

func zoneOfAddress(a netip.Addr) (z zone) {
	a = a.WithZone("")
	for _, v4 := range embedded(a) {
		z = max(z, zoneOfAddress(v4))
	}
	return max(z, ownZone(a))
}

// ownZone is the zone of an address without those that it embeds.
func ownZone(a netip.Addr) zone {
	switch a = a.Unmap(); {
	case a.IsLoopback():
		return loopback
	case a.IsUnspecified(), a.IsMulticast(), a.IsLinkLocalUnicast():
		return forbidden
	case a.IsPrivate(), sharedSpace.Contains(a):
		return private
	}
	return public
}

// guard sends requests to URLs named by a server or its authorization server, which are untrusted. They must use
// https, or http on loopback, and must not be in a more private zone than the server itself. Only requests without a
// body follow redirects, within their origin. Readers limit the size of responses.
type guard struct {
	innermost       zone
	direct, proxied *http.Transport
}

// newGuard returns a guard for the URLs named by a server.
func newGuard(ctx context.Context, server string) (*guard, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, errors.New("its URL is not valid")
	}
	g := &guard{}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil {
		g.innermost = zoneOfAddress(a)
	}
	if through, err := http.ProxyFromEnvironment(&http.Request{URL: u}); err == nil && through == nil {
		addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
		if err != nil {
			return nil, fmt.Errorf("cannot find its address: %w", err)
		}
		g.innermost = loopback
		for _, a := range addresses { // a server with a public address is public, whatever else its name says
			g.innermost = min(g.innermost, zoneOfAddress(a))
		}
	}
	g.direct = g.transport(g.inside)
	g.proxied = g.transport(nil) // the proxy looks up the address
	return g, nil
}

// inside refuses an address in a more private zone than the server's. It is called after name resolution.
func (g *guard) inside(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if zoneOfAddress(to.Addr()) > g.innermost {
		return fmt.Errorf("%v is in a more private network than the server and is not contacted", to.Addr())
	}
	return nil
}

func (g *guard) transport(control func(network, address string, c syscall.RawConn) error) *http.Transport {
	return &http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		DialContext:       (&net.Dialer{Timeout: 10 * time.Second, Control: control}).DialContext,
		DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// client returns an HTTP client that uses the guard.
func (g *guard) client() *http.Client {
	follow := func(to *http.Request, via []*http.Request) error {
		from := via[0]
		switch {
		case from.Method != http.MethodGet || len(via) > maxRedirects:
			return http.ErrUseLastResponse // the body may contain a secret
		case origin(to.URL) != origin(from.URL): // another server does not speak for this one
			return fmt.Errorf("it redirects from %s to %s, which is not followed", origin(from.URL), origin(to.URL))
		}
		return nil
	}
	return &http.Client{Transport: g, Timeout: exchangeTime, CheckRedirect: follow}
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if why := unsafeURL(req.URL); why != "" {
		return nil, errors.New(why)
	}
	if through, err := http.ProxyFromEnvironment(req); err != nil || through != nil {
		return g.proxied.RoundTrip(req)
	}
	return g.direct.RoundTrip(req)
}

// unsafeURL returns why a URL must not be used, "" if it may be.
func unsafeURL(u *url.URL) string {
	switch {
	case u.Host == "", u.Scheme != "https" && u.Scheme != "http":
		return fmt.Sprintf("%.200q is not an https URL", u.Redacted())
	case u.Scheme == "http" && !OnLoopback(u):
		return fmt.Sprintf("%s is not https", origin(u))
	case u.User != nil:
		return fmt.Sprintf("the URL at %s contains a user name", u.Host)
	}
	return ""
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

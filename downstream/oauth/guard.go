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
	exchangeTime = 20 * time.Second // of one request, its answer included
	maxRedirects = 3
)

// zone says how far inside a network an address is.
type zone int

const (
	public zone = iota
	private
	loopback
	forbidden // link-local, as the metadata services of clouds are, multicast and unspecified
)

var sharedSpace = netip.MustParsePrefix("100.64.0.0/10") // RFC 6598

func zoneOfAddress(a netip.Addr) zone {
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

// zoneOf returns the zone of an IP address; public for anything else.
func zoneOf(host string) zone {
	a, err := netip.ParseAddr(host)
	if err != nil {
		return public
	}
	return zoneOfAddress(a)
}

// guard sends requests to the URLs that a server and its authorization server name, which are untrusted. They must be
// https, or http on loopback, also after a redirect, and no further inside the network than the server itself is. Only
// requests without a body follow redirects. Sizes are bounded by those who read.
type guard struct {
	innermost       zone
	direct, proxied *http.Transport
}

// newGuard makes a guard for what a server names.
func newGuard(ctx context.Context, server string) (*guard, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, errors.New("its URL is not valid")
	}
	g := &guard{innermost: zoneOf(u.Hostname())}
	if through, err := http.ProxyFromEnvironment(&http.Request{URL: u}); err == nil && through == nil {
		addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
		if err != nil {
			return nil, fmt.Errorf("cannot find its address: %w", err)
		}
		for _, a := range addresses {
			g.innermost = max(g.innermost, min(zoneOfAddress(a), loopback))
		}
	}
	g.direct = g.transport(g.inside)
	g.proxied = g.transport(nil) // the proxy looks up the address
	return g, nil
}

// inside refuses an address that the server's own is not as far inside of a network as. It sees what a name stands for.
func (g *guard) inside(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if zoneOfAddress(to.Addr()) > g.innermost {
		return fmt.Errorf("%v is in a network that the server is not in, and is not asked", to.Addr())
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

// client returns an HTTP client that sends through the guard.
func (g *guard) client() *http.Client {
	follow := func(_ *http.Request, via []*http.Request) error {
		if via[0].Method != http.MethodGet || len(via) > maxRedirects {
			return http.ErrUseLastResponse // a secret may be in the body
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

// unsafeURL returns why a URL is not used, "" if it may be.
func unsafeURL(u *url.URL) string {
	switch {
	case u.Host == "", u.Scheme != "https" && u.Scheme != "http":
		return fmt.Sprintf("%.200q is no https URL", u.Redacted())
	case u.Scheme == "http" && !OnLoopback(u):
		return fmt.Sprintf("%s is not https", origin(u))
	case u.User != nil:
		return fmt.Sprintf("the URL at %s holds a user name", u.Host)
	}
	return ""
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

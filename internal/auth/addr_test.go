package auth

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestClientAddr(t *testing.T) {
	trusted, err := ParseProxies([]string{"10.0.0.0/8", "192.0.2.7", "::1", "fd00::/8"})
	if err != nil {
		t.Fatalf("ParseProxies: got %v, want no error", err)
	}
	for _, row := range []struct {
		name, remote string
		forwarded    []string
		want         string
	}{
		{"direct", "198.51.100.1:1234", nil, "198.51.100.1"},
		{"direct with a claim", "198.51.100.1:1234", []string{"203.0.113.9"}, "198.51.100.1"},
		{"through a proxy", "10.1.2.3:80", []string{"203.0.113.9"}, "203.0.113.9"},
		{"a claim before the client", "10.1.2.3:80", []string{"1.1.1.1, 203.0.113.9"}, "203.0.113.9"},
		{"two proxies", "10.1.2.3:80", []string{"1.1.1.1, 203.0.113.9, 192.0.2.7"}, "203.0.113.9"},
		{"several lines", "10.1.2.3:80", []string{"203.0.113.9", "192.0.2.7 , 10.9.9.9"}, "203.0.113.9"},
		{"proxy without header", "10.1.2.3:80", nil, "10.1.2.3"},
		{"only proxies", "10.1.2.3:80", []string{"10.0.0.1, 10.0.0.2"}, "10.0.0.1"},
		{"garbage", "10.1.2.3:80", []string{"203.0.113.9, unknown"}, "10.1.2.3"},
		{"entries with ports", "10.1.2.3:80", []string{"203.0.113.9:4711"}, "203.0.113.9"},
		{"IPv6", "[::1]:80", []string{"[2001:db8::5]:443"}, "2001:db8::5"},
		{"IPv6 in brackets", "[fd00::1]:80", []string{"[2001:db8::5]"}, "2001:db8::5"},
		{"IPv4 in IPv6", "[::ffff:10.1.2.3]:80", []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		{"zone", "[fe80::1%eth0]:80", nil, "fe80::1"},
		{"no IP address", "@", []string{"203.0.113.9"}, "@"},
	} {
		r := &http.Request{RemoteAddr: row.remote, Header: http.Header{"X-Forwarded-For": row.forwarded}}
		if got := ClientAddr(r, trusted); got != row.want {
			t.Errorf("%s: got %s, want %s", row.name, got, row.want)
		}
	}
}

func TestParseProxies(t *testing.T) {
	got, err := ParseProxies([]string{"10.1.2.3/8", "192.0.2.7", "::ffff:192.0.2.8", "::ffff:10.0.0.0/104", "::ffff:0.0.0.0/96", "::ffff:10.0.0.0/90", "2001:db8::1/128"})
	var want []netip.Prefix
	for _, prefix := range []string{"10.0.0.0/8", "192.0.2.7/32", "192.0.2.8/32", "10.0.0.0/8", "0.0.0.0/0", "::ffc0:0:0/90", "2001:db8::1/128"} {
		want = append(want, netip.MustParsePrefix(prefix).Masked())
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if _, err := ParseProxies([]string{"proxy.example.com"}); err == nil || !strings.Contains(err.Error(), `"proxy.example.com"`) {
		t.Errorf("a host name: got %v, want an error that names it", err)
	}
}

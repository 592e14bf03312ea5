package config

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/auth"
)

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)

// checkListen returns what is wrong with an address to listen on, "" if nothing is.
func checkListen(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "want host:port, such as 127.0.0.1:8002"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "want a port from 0 to 65535 after the last colon"
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" && !hostName.MatchString(host) {
		return "want an IP address or host name before the port"
	}
	return ""
}

// CheckBind refuses to listen beyond loopback (localhost, 127.0.0.0/8, ::1) without API keys and access tokens, because
// everybody who reaches the router could then use all servers. An address without a host means all interfaces. The
// error is an *Error.
func CheckBind(listen string, access auth.Config) error {
	if why := checkListen(listen); why != "" {
		return wrong("listen address %q: %s", listen, why)
	}
	if access.Anonymous || access.Required() || OnLoopback(listen) {
		return nil
	}
	return wrong("refusing to listen on %s, beyond loopback, without API keys: set NEXUS_API_KEY, auth.api_keys or auth.oauth, "+
		"listen on 127.0.0.1, or allow everybody with auth.anonymous: true", listen)
}

func wrong(format string, args ...any) error {
	return &Error{[]Problem{{Message: fmt.Sprintf(format, args...)}}}
}

// OnLoopback reports whether a listen address can be reached from this machine only.
func OnLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

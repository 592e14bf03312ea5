package bearer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

const maxDocument = 256 << 10 // bytes of metadata, and of a key set

// CheckIssuer reports what is wrong with the URL of an issuer.
func CheckIssuer(issuer string) error {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(issuer, "#") {
		return errors.New("want the URL of the issuer without query and fragment, such as https://auth.example.com")
	}
	return checkScheme(u)
}

// checkScheme allows https, and http on this machine.
func checkScheme(u *url.URL) error {
	if u.Scheme == "https" {
		return nil
	}
	host := u.Hostname()
	addr, err := netip.ParseAddr(host)
	if u.Scheme == "http" && (strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()) {
		return nil
	}
	return errors.New("want https; http is for loopback only")
}

// metadataURLs returns where the metadata of an issuer may be, in the order of the MCP specification: RFC 8414, then
// OpenID Connect Discovery, with the path inserted and appended.
func metadataURLs(issuer string) []string {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil
	}
	origin, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	all := []string{
		origin + "/.well-known/oauth-authorization-server" + path,
		origin + "/.well-known/openid-configuration" + path,
	}
	if path != "" {
		all = append(all, origin+path+"/.well-known/openid-configuration")
	}
	return all
}

// fetchKeys fetches the keys of an issuer.
func fetchKeys(ctx context.Context, issuer string) (*keySet, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
		DialContext: (&net.Dialer{}).DialContext, MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // documents must come from the issuer's own URL
	}}
	keys, err := findKeys(ctx, client, issuer)
	if err != nil {
		return nil, err
	}
	document, err := get(ctx, client, keys)
	if err != nil {
		return nil, fmt.Errorf("fetching the key set: %w", err)
	}
	return parseKeys(document)
}

// findKeys returns the URL of the key set from the first metadata document that exists.
func findKeys(ctx context.Context, client *http.Client, issuer string) (string, error) {
	var failed []string
	for _, address := range metadataURLs(issuer) {
		document, err := get(ctx, client, address)
		if err != nil {
			failed = append(failed, err.Error())
			continue
		}
		var metadata struct {
			Issuer string `json:"issuer"`
			Keys   string `json:"jwks_uri"`
		}
		switch err := json.Unmarshal(document, &metadata); {
		case err != nil:
			failed = append(failed, address+" is not the metadata of an issuer")
			continue
		case metadata.Issuer != issuer:
			failed = append(failed, fmt.Sprintf("%s is of another issuer: %.200q", address, metadata.Issuer))
			continue
		}
		u, err := url.Parse(metadata.Keys)
		if err != nil || u.Host == "" {
			return "", fmt.Errorf("%s names no key set in jwks_uri", address)
		}
		if err := checkScheme(u); err != nil || u.Scheme == "http" && !strings.HasPrefix(issuer, "http:") {
			return "", fmt.Errorf("%s names a key set that is not at https: %.200q", address, metadata.Keys)
		}
		return metadata.Keys, nil
	}
	return "", fmt.Errorf("fetching the metadata: %s", strings.Join(failed, "; "))
}

// get fetches a document.
func get(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		return nil, fmt.Errorf("%w, at %s", wrapped.Err, address)
	} else if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode >= 300 && response.StatusCode < 400:
		return nil, fmt.Errorf("%s redirects, which is not followed", address)
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answers with status %d", address, response.StatusCode)
	}
	document, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("%w, at %s", err, address)
	}
	if len(document) > maxDocument {
		return nil, fmt.Errorf("%s has more than %d KiB", address, maxDocument>>10)
	}
	return document, nil
}

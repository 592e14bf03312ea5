package link

import (
	"net/http"
	"net/url"
)

// follow makes a request. A redirect that keeps the method is followed once, and only within the origin of the request,
// because its headers may hold secrets: some frameworks redirect /mcp to /mcp/.
func follow(rt http.RoundTripper, req *http.Request) (*http.Response, error) {
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	to := target(req.URL, resp)
	if to == nil {
		return resp, nil
	}
	resp.Body.Close()
	again := req.WithContext(req.Context())
	again.URL = to
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return rt.RoundTrip(again)
}

// target returns where resp redirects a request to from to; nil if that is not followed.
func target(from *url.URL, resp *http.Response) *url.URL {
	if resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusPermanentRedirect {
		return nil
	}
	to, err := from.Parse(resp.Header.Get("Location"))
	if err != nil || to.Scheme != from.Scheme || to.Host != from.Host || *to == *from {
		return nil
	}
	to.User = from.User
	return to
}

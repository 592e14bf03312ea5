package link

import (
	"net/http"
	"net/url"
)

// follow sends a request. It follows one redirect that keeps the method, and only within the same origin, because the
// headers may hold secrets. Some frameworks redirect /mcp to /mcp/.
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

// target returns the target of a redirect of a request to from; nil if it must not be followed.
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

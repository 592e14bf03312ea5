package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/propagation"

	"github.com/agenticnexus/agenticnexus/internal/redact"
)

// endpoint is an HTTP endpoint with the data common to all requests.
type endpoint struct {
	http    *http.Client
	baseURL string      // without the query
	query   string      // such as api-version
	header  http.Header // the key and the configured headers
	secrets []string    // texts to remove from errors
}

// newEndpoint returns the endpoint of an API. It uses client, or creates a client if that is nil.
func newEndpoint(api, baseURL string, key redact.Secret, client *http.Client) endpoint {
	if client == nil {
		client = newHTTPClient()
	}
	base, query, _ := strings.Cut(baseURL, "?")
	e := endpoint{http: client, baseURL: strings.TrimRight(base, "/"), query: query, header: http.Header{}}
	if api == APIAnthropic {
		e.baseURL = strings.TrimSuffix(e.baseURL, "/v1") // paths of the API begin with it
		e.header.Set("Anthropic-Version", anthropicVersion)
	}
	if key == "" {
		return e
	}
	e.secrets = []string{key.Reveal()}
	switch {
	case api == APIAnthropic:
		e.header.Set("X-Api-Key", key.Reveal())
	case strings.Contains(e.baseURL, "/openai/deployments/"): // Azure
		e.header.Set("Api-Key", key.Reveal())
	default:
		e.header.Set("Authorization", "Bearer "+key.Reveal())
	}
	return e
}

// minSecret is the minimum length of configured texts removed from errors. Shorter ones, such as versions, are not
// secrets.
const minSecret = 8

// add adds configured headers.
func (e *endpoint) add(headers map[string]redact.Secret) {
	for name, value := range headers {
		e.header.Set(name, value.Reveal())
		e.hide(value.Reveal())
	}
}

// hide removes a text, and each word of it, from errors, such as the key in "Bearer KEY".
func (e *endpoint) hide(text string) {
	for _, s := range append(strings.Fields(text), text) {
		if len(s) >= minSecret {
			e.secrets = append(e.secrets, s)
		}
	}
}

// hideTexts removes the texts in a JSON value from errors. Member names remain.
func (e *endpoint) hideTexts(raw json.RawMessage) {
	var members map[string]json.RawMessage
	var elements []json.RawMessage
	var text string
	switch {
	case json.Unmarshal(raw, &text) == nil:
		e.hide(text)
	case json.Unmarshal(raw, &members) == nil:
		elements = slices.Collect(maps.Values(members))
	default:
		_ = json.Unmarshal(raw, &elements) // anything else has no text
	}
	for _, inner := range elements {
		e.hideTexts(inner)
	}
}

// newHTTPClient returns a client that never follows redirects: the key and the prompt go only to the configured URL.
func newHTTPClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	transport.MaxResponseHeaderBytes = 1 << 20
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// prepare adds the common headers and query to a request.
func (e endpoint) prepare(req *http.Request) {
	req.URL.RawQuery = e.query
	maps.Copy(req.Header, e.header)
	propagation.TraceContext{}.Inject(req.Context(), propagation.HeaderCarrier(req.Header))
}

// send sends a request with content as JSON, without a body if content is nil. A status other than 2xx is an *Error.
func (e endpoint) send(ctx context.Context, method, path string, content any) (*http.Response, error) {
	var body io.Reader
	if content != nil {
		raw, err := json.Marshal(content)
		if err != nil {
			return nil, fmt.Errorf("writing the request: %w", err)
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, e.baseURL+path, body)
	if err != nil {
		return nil, failure(Unreachable, "base_url is not a URL")
	}
	e.prepare(req)
	req.Header.Set("Accept", "application/json, text/event-stream")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := e.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		return nil, statusError(resp)
	}
	return resp, nil
}

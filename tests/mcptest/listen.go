package mcptest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/agenticnexus/agenticnexus/internal/protocol"
)

// Listen opens the stream on which the client hears of what belongs to no request: the session's own, or in 2026-07-28
// one for changes of tools and of the resource. It is read until ctx ends; done is closed then.
func (c *Client) Listen(ctx context.Context, resource string) (done <-chan struct{}, err error) {
	method, raw := http.MethodGet, ""
	if c.Version == Modern {
		method, raw = http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":"listen","method":%q,"params":{"_meta":`+
			`{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{},`+
			`"io.modelcontextprotocol/clientInfo":%s},"notifications":{"toolsListChanged":true,"resourceSubscriptions":[%q]}}}`,
			protocol.MethodListen, Modern, clientInfo, resource)
	}
	first, done, err := c.stream(ctx, method, raw)
	if err == nil && c.Version == Modern {
		<-first // it acknowledges
	}
	return done, err
}

// OpenSSE opens the stream of HTTP+SSE at the client's URL, on which all messages of the server come, and then a
// session. The stream is read until ctx ends; done is closed then.
func (c *Client) OpenSSE(ctx context.Context) (done <-chan struct{}, err error) {
	c.replies = map[string]chan Message{}
	at, err := url.Parse(c.URL)
	if err != nil {
		return nil, err
	}
	first, done, err := c.stream(ctx, http.MethodGet, "")
	if err != nil {
		return nil, err
	}
	messages, err := at.Parse(<-first)
	if err != nil {
		return done, err
	}
	c.URL = messages.String()
	return done, c.Initialize(ctx)
}

// stream opens a stream and reads it to its end. first gets the data of its first event, or nothing at its end.
func (c *Client) stream(
	ctx context.Context, method, raw string,
) (first <-chan string, ended <-chan struct{}, err error) {
	resp, err := c.send(ctx, method, raw) //nolint:bodyclose // it is closed where it is read
	if err != nil {
		return nil, nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, nil, fmt.Errorf("%s %s: got status %d", method, c.URL, resp.StatusCode)
	}
	begun, end := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(end)
		defer resp.Body.Close()
		defer close(begun)
		_ = Events(resp.Body, func(name, data string) { // its end shows in what does not come
			c.take(ctx, name, data)
			select {
			case begun <- data:
			default:
			}
		})
	}()
	return begun, end, nil
}

// take takes an event of a stream.
func (c *Client) take(ctx context.Context, name, data string) {
	var m Message
	if name == "endpoint" || json.Unmarshal([]byte(data), &m) != nil {
		return
	}
	if m.Method != "" {
		_ = c.hear(ctx, m) // the server misses the answer then
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if came := c.replies[string(m.ID)]; came != nil {
		came <- m
		delete(c.replies, string(m.ID))
	}
}

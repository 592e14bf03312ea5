// Package otlp exports spans and metrics to an OpenTelemetry collector using OTLP over HTTP with binary protobuf.
//
// A [Client] reads the standard OTEL_EXPORTER_OTLP_* variables. The exporters of the OpenTelemetry project do the same,
// but link gRPC even for HTTP, because the generated code of the collector's requests does. This package sends
// trace/v1.TracesData and metrics/v1.MetricsData, which have the same wire format and no such dependency.
//
// The package is safe for concurrent use and starts no goroutines. Errors never contain headers.
//
// See https://opentelemetry.io/docs/specs/otlp/#otlphttp.
package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v4"
	"google.golang.org/protobuf/proto"
)

const (
	firstRetry   = time.Second // first pause between attempts; each later one half as long again
	longestRetry = 30 * time.Second
	maxReply     = 64 << 10 // bytes read of a response
)

// Client sends one signal to a collector.
type Client struct {
	settings
	client *http.Client
	closed context.Context
	close  context.CancelFunc
}

// NewClient returns a client for a signal, "traces" or "metrics". It fails if a variable is malformed; it does not
// connect.
func NewClient(signal string) (*Client, error) {
	s, err := readSettings(signal)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = s.tls
	c := &Client{settings: s, client: &http.Client{Transport: transport}}
	c.closed, c.close = context.WithCancel(context.Background())
	return c, nil
}

// Close ends the exports in progress, and later ones fail.
func (c *Client) Close() {
	c.close()
	c.client.CloseIdleConnections()
}

// send sends a message. While the collector is busy or unreachable, it tries again until the export timeout.
func (c *Client) send(ctx context.Context, m proto.Message) error {
	body, err := c.encode(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	defer context.AfterFunc(c.closed, cancel)()
	waits := backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstRetry), backoff.WithMaxInterval(longestRetry),
		backoff.WithMaxElapsedTime(0))
	for {
		after, err := c.attempt(ctx, body)
		if err == nil || after < 0 {
			return err
		}
		timer := time.NewTimer(max(after, waits.NextBackOff()))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(err, ctx.Err())
		}
	}
}

func (c *Client) encode(m proto.Message) ([]byte, error) {
	body, err := proto.Marshal(m)
	if err != nil || !c.gzip {
		return body, err
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(body)
	err = errors.Join(err, w.Close())
	return packed.Bytes(), err
}

// attempt sends a body once. retryAfter is negative if a retry is useless.
func (c *Client) attempt(ctx context.Context, body []byte) (retryAfter time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	req.Header = c.headers.Clone()
	req.Header.Set("Content-Type", "application/x-protobuf")
	if c.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("exporting to the collector: %w", err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxReply)) // allows reusing the connection
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16)
		retryAfter = time.Duration(seconds) * time.Second
	default:
		retryAfter = -1
	}
	if resp.StatusCode/100 != 2 {
		return retryAfter, fmt.Errorf("exporting to the collector: %s answered %s", req.URL.Redacted(), resp.Status)
	}
	return retryAfter, nil
}

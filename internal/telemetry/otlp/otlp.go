// Package otlp exports traces and metrics to an OpenTelemetry collector using OTLP over HTTP with binary protobuf.
//
// [NewTracer] and [NewMetrics] read the standard OTEL_EXPORTER_OTLP_* variables, and those of the sampler and of
// batches (OTEL_TRACES_SAMPLER, OTEL_BSP_*). The exporters of the OpenTelemetry project do the same, but link gRPC
// even for HTTP, because the generated code of the collector's requests does. This package sends trace/v1.TracesData
// and metrics/v1.MetricsData, which have the same wire format and no such dependency.
//
// The package is safe for concurrent use. A Tracer has one exporting goroutine, and drops spans beyond the limits of
// its queue: 8,192 spans or 16 MiB. Errors never contain headers.
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
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
)

const (
	firstRetry   = time.Second // first pause between attempts; pauses double
	longestRetry = 30 * time.Second
	maxReply     = 64 << 10 // bytes read of a response
)

// poster sends protobuf messages to one endpoint.
type poster struct {
	settings
	client *http.Client
}

func newPoster(signal string) (*poster, error) {
	s, err := readSettings(signal)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = s.tls
	return &poster{s, &http.Client{Transport: transport}}, nil
}

func (p *poster) close() { p.client.CloseIdleConnections() }

// message is an encoded message, which can be read repeatedly.
type message interface {
	size() int
	reader() io.Reader
}

// plain is a message in one piece.
type plain []byte

func (p plain) size() int { return len(p) }

func (p plain) reader() io.Reader { return bytes.NewReader(p) }

// post sends a message, and retries within the export timeout while the endpoint reports that it is busy. unused
// reports that the memory of the message is no longer referenced.
func (p *poster) post(ctx context.Context, m message) (unused bool, err error) {
	body, err := p.pack(m)
	if err != nil {
		return true, err
	}
	var readers atomic.Int32
	defer func() { unused = p.gzip || readers.Load() == 0 }()
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	waits := backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstRetry), backoff.WithMaxInterval(longestRetry),
		backoff.WithMaxElapsedTime(0))
	for {
		after, err := p.attempt(ctx, func() io.ReadCloser { return newReader(body, &readers) }, body.size())
		if err == nil || after < 0 {
			return false, err
		}
		timer := time.NewTimer(max(after, waits.NextBackOff()))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false, errors.Join(err, ctx.Err())
		}
	}
}

func (p *poster) pack(m message) (message, error) {
	if !p.gzip {
		return m, nil
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := io.Copy(w, m.reader())
	err = errors.Join(err, w.Close())
	return plain(packed.Bytes()), err
}

// reader is the body of a request, which net/http may read for a while after the request has ended.
type reader struct {
	io.Reader
	closed func()
}

func newReader(body message, readers *atomic.Int32) io.ReadCloser {
	readers.Add(1)
	return reader{body.reader(), sync.OnceFunc(func() { readers.Add(-1) })}
}

// Close implements io.Closer.
func (r reader) Close() error {
	r.closed()
	return nil
}

// attempt sends a body once. retryAfter is negative if a retry is useless.
func (p *poster) attempt(
	ctx context.Context, body func() io.ReadCloser, size int,
) (retryAfter time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.endpoint, body())
	if err != nil {
		return -1, err
	}
	req.ContentLength, req.GetBody = int64(size), func() (io.ReadCloser, error) { return body(), nil }
	req.Header = p.headers.Clone()
	req.Header.Set("Content-Type", "application/x-protobuf")
	if p.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := p.client.Do(req)
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

package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Embeddings turns texts into vectors at an HTTP endpoint that speaks like OpenAI's. It allows concurrent use,
// keeps no goroutine and never retries: whoever asks can do without.
type Embeddings struct {
	cfg    EmbeddingsConfig
	http   *http.Client
	url    string
	header http.Header
}

// NewEmbeddings makes an Embeddings. It connects to nothing until the first Embed. A nil client makes one.
func NewEmbeddings(cfg EmbeddingsConfig, client *http.Client) *Embeddings {
	e := &Embeddings{cfg: cfg, http: client}
	if e.http == nil {
		e.http = newHTTPClient()
	}
	base, query, _ := strings.Cut(cfg.BaseURL, "?")
	base = strings.TrimRight(base, "/")
	e.header = authHeader(base, cfg.APIKey.Reveal())
	e.url = base + "/embeddings"
	if query != "" {
		e.url += "?" + query
	}
	return e
}

// Close closes idle connections. The Embeddings can still be used.
func (e *Embeddings) Close() { e.http.CloseIdleConnections() }

// maxDimensions bounds the length of a vector; the longest in use have 4,096 numbers.
const maxDimensions = 8192

// maxNumber is how many bytes of JSON one number of a vector may take.
const maxNumber = 32

// Embed returns one vector for each text, in their order and all of one length. The error is an *Error, or
// the cause of the context if the caller ended it.
func (e *Embeddings) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, err := e.embed(ctx, texts)
	if err == nil {
		return vectors, nil
	}
	err = networkError(ctx, err, Unreachable)
	if known := (*Error)(nil); errors.As(err, &known) {
		known.finish(e.cfg.Model, e.cfg.APIKey)
	}
	return nil, err
}

func (e *Embeddings) embed(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(map[string]any{"model": e.cfg.Model, "input": texts, "encoding_format": "float"})
	if err != nil {
		return nil, fmt.Errorf("writing the request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return nil, failure(Unreachable, "base_url is no URL")
	}
	req.Header = e.header.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := e.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, statusError(resp, resp.Body)
	}
	limit := int64(len(texts)*maxDimensions*maxNumber + maxWords)
	raw, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, networkError(ctx, err, Cut)
	}
	if int64(len(raw)) > limit {
		return nil, failure(Invalid, "the answer is larger than %d bytes", limit)
	}
	return readVectors(raw, len(texts))
}

// readVectors takes n vectors out of an answer, by the indexes it gives them.
func readVectors(raw []byte, n int) ([][]float32, error) {
	if c, ok := readComplaint(raw); ok {
		return nil, c.err(http.StatusOK)
	}
	var answer struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, failure(Invalid, "the endpoint answered with something else than embeddings; check base_url")
	}
	vectors := make([][]float32, n)
	for _, d := range answer.Data {
		if d.Index < 0 || d.Index >= n || vectors[d.Index] != nil {
			return nil, failure(Invalid, "the answer has an embedding of index %d, unexpected for %d texts", d.Index, n)
		}
		if length := len(d.Embedding); length == 0 || length > maxDimensions {
			return nil, failure(Invalid, "an embedding has %d numbers, want 1 to %d", length, maxDimensions)
		}
		vectors[d.Index] = d.Embedding
	}
	for i, v := range vectors {
		if len(v) != len(vectors[0]) || v == nil {
			return nil, failure(Invalid, "the answer has no embedding of text %d like that of the others", i)
		}
	}
	return vectors, nil
}

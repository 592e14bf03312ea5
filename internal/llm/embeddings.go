package llm

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// Embeddings is a client of an HTTP endpoint for embeddings that is compatible with OpenAI's. It allows concurrent use,
// keeps no goroutine and never retries, because its callers work without vectors, too.
type Embeddings struct {
	cfg      EmbeddingsConfig
	endpoint endpoint
}

// NewEmbeddings makes an Embeddings. It connects to nothing until the first Embed. A nil client makes one.
func NewEmbeddings(cfg EmbeddingsConfig, client *http.Client) *Embeddings {
	return &Embeddings{cfg, newEndpoint("", cfg.BaseURL, cfg.APIKey, client)}
}

// Close closes idle connections. The Embeddings can still be used.
func (e *Embeddings) Close() { e.endpoint.http.CloseIdleConnections() }

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
		known.finish(e.cfg.Model, e.endpoint.secrets)
	}
	return nil, err
}

func (e *Embeddings) embed(ctx context.Context, texts []string) ([][]float32, error) {
	resp, err := e.endpoint.send(ctx, http.MethodPost, "/embeddings",
		map[string]any{"model": e.cfg.Model, "input": texts, "encoding_format": "float"})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
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

// readVectors reads n vectors from a response, in the order of their indexes.
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
		return nil, failure(Invalid, "the endpoint answered with something other than embeddings; check base_url")
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

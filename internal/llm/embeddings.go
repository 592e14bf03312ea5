package llm

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// Embeddings is a client of an OpenAI-compatible HTTP endpoint for embeddings. It is safe for concurrent use, has no
// goroutines and never retries, because its callers can work without vectors.
type Embeddings struct {
	cfg      EmbeddingsConfig
	endpoint endpoint
}

// NewEmbeddings returns an Embeddings. It does not connect before the first Embed. A nil client creates one.
func NewEmbeddings(cfg EmbeddingsConfig, client *http.Client) *Embeddings {
	return &Embeddings{cfg, newEndpoint("", cfg.BaseURL, cfg.APIKey, client)}
}

// Close closes idle connections. The Embeddings remains usable.
func (e *Embeddings) Close() { e.endpoint.http.CloseIdleConnections() }

// maxDimensions limits the length of a vector; the longest in use have 4,096 numbers.
const maxDimensions = 8192

// maxNumber limits the bytes of JSON per number of a vector.
const maxNumber = 32

// Embed returns one vector per text, in order and of equal length. The error is an *Error, or the cause of the
// context if the caller ended it.
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
	if o, ok := readErrorObject(raw); ok {
		return nil, o.err(http.StatusOK)
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

package tape

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/search"
)

// Model wraps a model to record or replay its responses.
func (t *Tape) Model(m llm.Model, name string) llm.Model {
	if t == nil {
		return m
	}
	return &taped{t, m, name}
}

type taped struct {
	tape  *Tape
	model llm.Model
	name  string
}

// completed is the recorded outcome of a request to a model.
type completed struct {
	Response llm.Response `json:"response"`
	Failure  *llm.Error   `json:"failure,omitempty"`
	ending
}

// Complete implements llm.Model. A recorded response comes in one piece.
func (m *taped) Complete(ctx context.Context, req llm.Request) (resp llm.Response, err error) {
	request := struct {
		System   string        `json:"system"`
		Messages []llm.Message `json:"messages"`
		Schema   *llm.Schema   `json:"schema,omitempty"`
		Tools    []llm.Tool    `json:"tools,omitempty"`
	}{req.System, req.Messages, req.Schema, req.Tools}
	asked := func() any {
		resp, err = m.model.Complete(ctx, req)
		c := completed{Response: resp}
		if err != nil && !errors.As(err, &c.Failure) {
			c.ending = endingOf(ctx, err)
		}
		return c
	}
	answered := func(raw []byte) error {
		var c completed
		if err := json.Unmarshal(raw, &c); err != nil {
			return err
		}
		resp, err = c.Response, c.ending.err(ctx)
		switch {
		case c.Failure != nil:
			err = c.Failure
		case err == nil && req.OnDelta != nil:
			req.OnDelta(resp.Text)
		}
		return nil
	}
	if missing := m.tape.exchange(ctx, kindModel, m.name, request, asked, answered); missing != nil {
		return llm.Response{}, &llm.Error{Kind: llm.Invalid, Message: missing.Error()}
	}
	return resp, err
}

// Embedder wraps an embedding model. It stores vectors text by text, because batches of texts differ between runs.
func (t *Tape) Embedder(e search.Embedder, name string) search.Embedder {
	if t == nil {
		return e
	}
	return &tapedEmbedder{t, e, name}
}

type tapedEmbedder struct {
	tape     *Tape
	embedder search.Embedder
	name     string
}

// Embed implements search.Embedder. Failures are not recorded: a replay then lacks the vectors, too.
func (e *tapedEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	var vectors [][]float32
	if !e.tape.Replays() {
		var err error
		if vectors, err = e.embedder.Embed(ctx, texts); err != nil {
			return nil, err
		}
	} else {
		vectors = make([][]float32, len(texts))
	}
	for i, text := range texts {
		asked := func() any { return vectors[i] }
		answered := func(raw []byte) error { return json.Unmarshal(raw, &vectors[i]) }
		if err := e.tape.exchange(context.Background(), kindEmbed, e.name, text, asked, answered); err != nil {
			return nil, &llm.Error{Kind: llm.Unreachable, Message: err.Error()}
		}
	}
	return vectors, nil
}

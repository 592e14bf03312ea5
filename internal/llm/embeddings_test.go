package llm_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

func embeddings(t *testing.T, query string) (*llmtest.Server, *llm.Embeddings) {
	t.Helper()
	s := llmtest.New(t)
	e := llm.NewEmbeddings(llm.EmbeddingsConfig{BaseURL: s.BaseURL + query, APIKey: redact.Secret(apiKey), Model: "stub"}, nil)
	t.Cleanup(e.Close)
	return s, e
}

// length embeds a text by its length.
func length(text string) []float32 { return []float32{float32(len(text)), 1} }

func TestEmbeddingsComeInOrder(t *testing.T) {
	s, e := embeddings(t, "?api-version=1")
	s.When(llmtest.Request.Embeddings, llmtest.Reply{Embed: length})
	got, err := e.Embed(t.Context(), []string{"a", "bbb", "cc"})
	if err != nil || len(got) != 3 || got[0][0] != 1 || got[1][0] != 3 || got[2][0] != 2 {
		t.Fatalf("got %v and %v, want the lengths 1, 3 and 2", got, err)
	}
	r := s.Requests()[0]
	if r.Path != "/v1/embeddings?api-version=1" || r.Model != "stub" || r.Header.Get("Authorization") != "Bearer "+apiKey || len(r.Inputs) != 3 {
		t.Errorf("got a request to %s for model %q with %d texts", r.Path, r.Model, len(r.Inputs))
	}
}

func TestEmbeddingsFail(t *testing.T) {
	data := func(vectors string) llmtest.Reply {
		return llmtest.Reply{Raw: `{"data":[` + vectors + `]}`, RawType: "application/json"}
	}
	for _, row := range []struct {
		name  string
		reply llmtest.Reply
		kind  llm.Kind
		text  string
	}{
		{"the key in the answer", llmtest.Reply{Status: http.StatusUnauthorized, Text: "wrong key " + apiKey}, llm.Refused, "[redacted]"},
		{"overloaded", llmtest.Reply{Status: http.StatusServiceUnavailable, Text: "later"}, llm.Server, "later"},
		{"redirected", llmtest.Reply{Status: http.StatusFound, Header: http.Header{"Location": {"http://localhost:1/"}}}, llm.Refused, "redirects"},
		{"a page", llmtest.Reply{Fault: llmtest.HTML}, llm.Invalid, "base_url"},
		{"an error with status 200", llmtest.Reply{Raw: `{"error":{"message":"no such model"}}`, RawType: "application/json"}, llm.Server, "no such model"},
		{"connection lost", llmtest.Reply{Fault: llmtest.DropFirst}, llm.Unreachable, "closed"},
		{"too few", data(`{"index":0,"embedding":[1]}`), llm.Invalid, "text 1"},
		{"two for one", data(`{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}`), llm.Invalid, "index 0"},
		{"one too many", data(`{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}`), llm.Invalid, "index 2"},
		{"of two lengths", data(`{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}`), llm.Invalid, "like that of the others"},
		{"empty", data(`{"index":0,"embedding":[]}`), llm.Invalid, "0 numbers"},
		{"too long", data(`{"index":0,"embedding":[` + strings.Repeat("0,", 9000) + `1]}`), llm.Invalid, "9001 numbers"},
		{"far too large", llmtest.Reply{Raw: strings.Repeat(" ", 2*8192*32+70000), RawType: "application/json"}, llm.Invalid, "larger than"},
		{"no numbers", data(`{"index":0,"embedding":"AAAA"}`), llm.Invalid, "base_url"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, e := embeddings(t, "")
			s.Answer(row.reply)
			_, err := e.Embed(t.Context(), []string{"a", "b"})
			var known *llm.Error
			if !errors.As(err, &known) || known.Kind != row.kind || !strings.Contains(err.Error(), row.text) || !strings.Contains(err.Error(), "stub") {
				t.Errorf("got %v, want %s with %q, naming the model", err, row.kind, row.text)
			}
			if strings.Contains(err.Error(), apiKey) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q, want one line without the key", err)
			}
		})
	}
}

func TestEmbeddingsEndWithTheirContext(t *testing.T) {
	s, e := embeddings(t, "")
	s.Answer(llmtest.Reply{Fault: llmtest.StallFirst})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := e.Embed(ctx, []string{"a"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of the context", err)
	}
}

package llm_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
)

// BenchmarkComplete measures what an answer of 600 bytes in pieces of 4 costs beyond the model, the model's own server
// included.
func BenchmarkComplete(b *testing.B) {
	s, err := llmtest.Start("127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	s.Answer(llmtest.Reply{Text: strings.Repeat("word ", 120), Chunk: 4})
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := llm.New(llm.Config{BaseURL: s.BaseURL, Model: "stub"}, llm.Options{HTTPClient: &http.Client{Transport: transport}})
	for b.Loop() {
		if _, err := client.Complete(b.Context(), ask("?")); err != nil {
			b.Fatal(err)
		}
	}
}

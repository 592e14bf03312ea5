package link_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// BenchmarkCall measures a call of a tool over streamable HTTP, the server on the same machine included.
func BenchmarkCall(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, err := jsonrpc.Parse(body)
		if err != nil || !m.IsRequest() {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := []byte(`{"content":[{"type":"text","text":"done"}]}`)
		if m.Method == "initialize" {
			result = []byte(`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"b","version":"1"}}`)
		}
		w.Header()["Content-Type"] = []string{"application/json"}
		_, _ = w.Write(jsonrpc.Result(m.ID, result))
	}))
	defer srv.Close()
	s := connect(b, link.Target{URL: srv.URL}, &listener{}, 1<<20)
	sent := 0
	c := &link.Call{Method: "tools/call", Params: []byte(`{"name":"echo","arguments":{"text":"hello"}}`), Sent: func() { sent++ }, Progress: func([]byte) {}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Call(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}

package edge_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// fixed answers at once, so that what is measured is the edge.
type fixed struct {
	result []byte
	notes  int // notifications before it
}

func (fixed) Ended(string) {}

func (f fixed) Serve(_ context.Context, x *edge.Exchange) {
	for i := range f.notes {
		x.Notify(progress([]byte("17"), i))
	}
	x.Reply(f.result)
}

// sinkWriter is a ResponseWriter that keeps nothing.
type sinkWriter struct {
	h http.Header
	n int
}

func (w *sinkWriter) Header() http.Header { return w.h }

func (w *sinkWriter) WriteHeader(int) {}

func (w *sinkWriter) Write(b []byte) (int, error) { w.n += len(b); return len(b), nil }

const benchBody = `{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"everything__echo",` +
	`"arguments":{"message":"hello, this is a message of ordinary length"},"_meta":{"progressToken":17}}}`

// BenchmarkPost is one tools/call through Streamable without any network.
func BenchmarkPost(b *testing.B) {
	e := edge.New(edge.Options{})
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = e.Stop(ctx)
	}()
	h := e.Streamable(fixed{result: []byte(`{"content":[{"type":"text","text":"hello"}]}`)}, nil)
	request := func(body, session string) (*http.Request, *bytes.Reader) {
		r, _ := http.NewRequest(http.MethodPost, "http://127.0.0.1/mcp", nil)
		reader := bytes.NewReader([]byte(body))
		r.Body, r.ContentLength = io.NopCloser(reader), int64(len(body))
		r.RemoteAddr = "127.0.0.1:4711"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
			r.Header.Set("MCP-Protocol-Version", "2025-11-25")
		}
		return r, reader
	}
	w := &sinkWriter{h: http.Header{}}
	r, _ := request(initialize("2025-11-25"), "")
	h.ServeHTTP(w, r)
	session := w.h.Get("Mcp-Session-Id")
	for name, id := range map[string]string{"session": session, "sessionless": ""} {
		b.Run(name, func(b *testing.B) {
			r, body := request(benchBody, id)
			w := &sinkWriter{h: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				body.Reset([]byte(benchBody))
				clear(w.h)
				h.ServeHTTP(w, r)
			}
		})
	}
}

// BenchmarkLoopback compares a tools/call with the least that net/http can do for the same bytes.
func BenchmarkLoopback(b *testing.B) {
	w := newWire(b, edge.Options{})
	mux := w.http.Config.Handler.(*http.ServeMux)
	large := []byte(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 1<<20) + `"}]}`)
	for _, one := range []struct {
		name   string
		result []byte
	}{{"small", []byte(`{"content":[{"type":"text","text":"hello"}]}`)}, {"1MiB", large}} {
		mux.Handle("/edge/"+one.name, w.edge.Streamable(fixed{result: one.result}, nil))
		mux.Handle("/stream/"+one.name, w.edge.Streamable(fixed{result: one.result, notes: 10}, nil))
		mux.HandleFunc("/floor/"+one.name, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			m, _ := jsonrpc.Parse(body)
			w.Header()["Content-Type"] = []string{"application/json"}
			_, _ = w.Write(jsonrpc.Result(m.ID, one.result))
		})
		for _, path := range []string{"floor", "edge", "stream"} {
			b.Run(path+"/"+one.name, func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						r, _ := http.NewRequest(http.MethodPost, w.http.URL+"/"+path+"/"+one.name, strings.NewReader(benchBody))
						r.Header.Set("Content-Type", "application/json")
						resp, err := w.client.Do(r)
						if err != nil {
							b.Error(err)
							return
						}
						_, _ = io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
					}
				})
			})
		}
	}
}

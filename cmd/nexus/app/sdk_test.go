package app_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/downstream"
)

// countArgs and counted are the arguments and the result of the tool count.
type countArgs struct {
	To int `json:"to"`
}
type counted struct {
	Sum int `json:"sum"`
}

// sdkServer is a server of the official SDK with a tool that reports progress.
func sdkServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "count", Description: "Add the numbers up to a bound"},
		func(ctx context.Context, req *mcp.CallToolRequest, in countArgs) (*mcp.CallToolResult, counted, error) {
			sum := 0
			for i := 1; i <= in.To; i++ {
				sum += i
				if token := req.Params.GetProgressToken(); token != nil {
					err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(i), Total: float64(in.To), Message: fmt.Sprint(i)})
					if err != nil {
						return nil, counted{}, err
					}
				}
			}
			return nil, counted{sum}, nil
		})
	return s
}

// The official SDK on both sides of the router, its client in either era.
func TestOfficialSDK(t *testing.T) {
	for _, row := range []struct {
		name    string
		handler func(s *mcp.Server) http.Handler
		kind    string
		path    string
	}{
		{"streamable HTTP", func(s *mcp.Server) http.Handler {
			return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
		}, downstream.TransportHTTP, "/mcp"},
		{"HTTP+SSE", func(s *mcp.Server) http.Handler {
			return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
		}, downstream.TransportSSE, "/sse"},
	} {
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			t.Run(row.name+" "+version, func(t *testing.T) {
				behind := httptest.NewServer(row.handler(sdkServer()))
				t.Cleanup(behind.Close)
				m := scripted(t, "Summed.", `[{"tool":"count","arguments":{"to":10}}]`)
				r := start(t, func(o *app.Options) {
					model(o, m)
					o.Config.Servers = append(o.Config.Servers, downstream.ServerConfig{Name: "sdk", Type: row.kind, URL: behind.URL + row.path})
				})
				got := make(chan float64, 100)
				transport := &http.Transport{}
				t.Cleanup(transport.CloseIdleConnections)
				client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
					ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) { got <- req.Params.Progress },
				})
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: r.base + "/mcp", HTTPClient: &http.Client{Transport: transport}}, &mcp.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatalf("Connect: got %v, want nil", err)
				}
				defer session.Close()
				call := func(tool string, arguments map[string]any, token string) *mcp.CallToolResult {
					t.Helper()
					params := &mcp.CallToolParams{Name: tool, Arguments: arguments}
					if token != "" {
						params.SetProgressToken(token)
					}
					result, err := session.CallTool(ctx, params)
					if err != nil || result.IsError {
						t.Fatalf("%s: got %+v, %v, want a result", tool, result.Content[0], err)
					}
					return result
				}
				result := call("run", map[string]any{"tool": "count", "parameters": map[string]any{"to": 10}}, "a")
				if sum := result.StructuredContent.(map[string]any)["sum"]; sum != 55.0 {
					t.Errorf("run: got %v, want 55", sum)
				}
				wantProgress(t, got, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
				call("process_query", map[string]any{"query": "sum up to ten"}, "b")
				wantProgress(t, got, []float64{0.1, 0.2, 0.26, 0.32, 0.38, 0.44, 0.5, 0.56, 0.62, 0.68, 0.74, 0.8, 0.9, 1})
			})
		}
	}
}

// wantProgress reads as many values as are wanted; those of the growing answer are left out.
func wantProgress(t *testing.T, got <-chan float64, want []float64) {
	t.Helper()
	var values []float64
	for len(values) < len(want) {
		select {
		case v := <-got:
			if v < 0.9+1e-9 || v > 1-1e-9 {
				values = append(values, v)
			}
		case <-time.After(deadline):
			t.Fatalf("progress: got %v, want %v", values, want)
		}
	}
	if !slices.EqualFunc(values, want, func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }) {
		t.Errorf("progress: got %v, want %v", values, want)
	}
}

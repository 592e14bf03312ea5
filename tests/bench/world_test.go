package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/router"
)

// tool is a read-only tool that answers after a while.
type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations json.RawMessage `json:"annotations"`
	takes       time.Duration
}

func newTool(name, description, schema string, takes time.Duration) tool {
	return tool{name, description, json.RawMessage(schema), json.RawMessage(`{"readOnlyHint":true}`), takes}
}

// found is what every tool returns.
const found = `{"content":[{"type":"text","text":"done"}],"structuredContent":{"results":[{"title":"Done"}],"rows":[{"email":"ann@example.org"}]}}`

// toolServer is a downstream server with those tools. It counts how long calls took in it.
type toolServer struct {
	*httptest.Server
	napped atomic.Int64
}

func serveTools(tb testing.TB, tools []tool) *toolServer {
	tb.Helper()
	list, err := json.Marshal(map[string]any{"tools": tools})
	if err != nil {
		tb.Fatal(err)
	}
	takes := map[string]time.Duration{}
	for _, t := range tools {
		takes[t.Name] = t.takes
	}
	s := &toolServer{}
	s.Server = httptest.NewServer(downstreamServer(string(list), func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, _ := jsonrpc.Parse(body)
		began := time.Now()
		time.Sleep(takes[jsonrpc.Text(jsonrpc.Get(m.Params, "name"))])
		s.napped.Add(int64(time.Since(began)))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(jsonrpc.Result(m.ID, []byte(found)))
	}))
	tb.Cleanup(s.Close)
	return s
}

// call calls a tool as a client that is connected to the server itself.
func (s *toolServer) call(name, arguments string) error {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, arguments)
	resp, err := http.Post(s.URL, "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

func (s *toolServer) config() downstream.ServerConfig {
	return downstream.ServerConfig{Name: "tools", Type: downstream.TransportHTTP, URL: s.URL}
}

// startRouter starts a router over HTTP in front of the servers, with the scripted model unless it is nil.
func startRouter(tb testing.TB, model *llmtest.Server, servers ...downstream.ServerConfig) *app.App {
	tb.Helper()
	cfg := config.Default()
	cfg.Listen, cfg.State, cfg.Servers = "127.0.0.1:0", tb.TempDir(), servers
	if model != nil {
		m := llm.Default()
		m.BaseURL, m.APIKey, m.Model = model.BaseURL, "test", "stub"
		cfg.LLM = &config.LLM{Planner: m}
	}
	a, err := app.New(tb.Context(), app.Options{Config: cfg})
	if err != nil {
		tb.Fatal(err)
	}
	if err := a.Listen(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = a.Stop(context.Background()) })
	return a
}

// post sends a request as a plain client and reads the whole answer.
func post(tb testing.TB, url string, body []byte) []byte {
	tb.Helper()
	resp, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		tb.Fatalf("%s: %s: %s, %v", url, resp.Status, answer, err)
	}
	return answer
}

// query has the router answer a call of process_query.
func query(tb testing.TB, a *app.App, arguments map[string]any) *router.AnswerContent {
	tb.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{"name": "process_query", "arguments": arguments}})
	if err != nil {
		tb.Fatal(err)
	}
	var reply struct {
		Result struct {
			StructuredContent router.AnswerContent `json:"structuredContent"`
		} `json:"result"`
	}
	if err := json.Unmarshal(post(tb, "http://"+a.Addr()+"/mcp", body), &reply); err != nil {
		tb.Fatal(err)
	}
	return &reply.Result.StructuredContent
}

// ask has the router answer a question, with that many steps, all of which succeed.
func ask(tb testing.TB, a *app.App, question string, steps int) *router.AnswerContent {
	tb.Helper()
	got := query(tb, a, map[string]any{"query": question})
	if got.Degraded || len(got.Steps) != steps {
		tb.Fatalf("got degraded %v and %d steps, want %d that succeed; warnings %q", got.Degraded, len(got.Steps), steps, got.Warnings)
	}
	for _, s := range got.Steps {
		if !s.Success {
			tb.Fatalf("step %s failed: %+v", s.ID, s.Error)
		}
	}
	return got
}

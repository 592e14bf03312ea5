package demo

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// session connects a client of another library to the named server.
func session(t *testing.T, name string, options *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	for _, s := range Servers() {
		if s.Name != name {
			continue
		}
		serverIn, in := io.Pipe()
		out, serverOut := io.Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			defer func() { _ = serverOut.Close() }()
			if err := s.Serve(context.Background(), serverIn, serverOut); err != nil {
				t.Errorf("serving %s: got %v, want nil", name, err)
			}
		}()
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, options)
		cs, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: out, Writer: in}, nil)
		if err != nil {
			t.Fatalf("connecting to %s: got %v, want no error", name, err)
		}
		t.Cleanup(func() {
			_ = cs.Close()
			_ = in.Close()
			<-served
		})
		return cs
	}
	t.Fatalf("no server is called %s", name)
	return nil
}

// use calls the server's only tool, checks a success against the output schema and returns its text, its
// structured content and whether it failed.
func use(t *testing.T, cs *mcp.ClientSession, arguments string) (string, map[string]any, bool) {
	t.Helper()
	list, err := cs.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 1 {
		t.Fatalf("listing tools: got %v, %v, want one tool", list, err)
	}
	tool := list.Tools[0]
	params := &mcp.CallToolParams{Name: tool.Name, Arguments: json.RawMessage(arguments)}
	params.SetProgressToken("token")
	result, err := cs.CallTool(t.Context(), params)
	if err != nil {
		t.Fatalf("calling %s %s: got %v, want no error", tool.Name, arguments, err)
	}
	text := result.Content[0].(*mcp.TextContent).Text
	if result.IsError {
		if strings.Contains(text, "\n") {
			t.Errorf("%s %s: got the error %q, want one line", tool.Name, arguments, text)
		}
		return text, nil, true
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("schema.json", tool.OutputSchema); err != nil {
		t.Fatalf("output schema of %s: %v", tool.Name, err)
	}
	if err := compiler.MustCompile("schema.json").Validate(result.StructuredContent); err != nil {
		t.Errorf("%s %s: the result does not fit the output schema: %v", tool.Name, arguments, err)
	}
	return text, result.StructuredContent.(map[string]any), false
}

func TestToolsRefuseBadArguments(t *testing.T) {
	for _, row := range []struct{ server, arguments, want string }{
		{"search", `{}`, "query is missing"},
		{"search", `{"query":" "}`, "query is missing"},
		{"search", `{"query":7}`, "query is a number, want a string"},
		{"search", `{"query":"x","max_results":0}`, "max_results is 0, want 1 to 20"},
		{"search", `{"query":"x","max_results":21}`, "max_results is 21"},
		{"search", `{"query":"x","max_results":"many"}`, "max_results is a string, want an integer"},
		{"search", `{"query":"x","limit":1}`, `unknown field "limit"`},
		{"search", `{"query":"` + strings.Repeat("x", maxQuery+1) + `"}`, "query is longer than"},
		{"calculator", `{}`, "expression is missing"},
		{"calculator", `{"expression":"1/0"}`, "division by zero"},
		{"calculator", `{"expression":"` + strings.Repeat("1+", 600) + `1"}`, "expression is longer than"},
		{"hr", `{"name":["x"]}`, "name is a array"},
		{"hr", `{"team":"x"}`, `unknown field "team"`},
		{"hr", `{"title":"` + strings.Repeat("x", maxQuery+1) + `"}`, "title is longer than"},
		{"email", `{"to":"a@example.com","subject":"x"}`, "body is missing"},
		{"email", `{"subject":"x","body":"x"}`, "to is missing"},
		{"email", `{"to":"nobody","subject":"x","body":"x"}`, "to is no e-mail address"},
		{"email", `{"to":"a@b@example.com","subject":"x","body":"x"}`, "to is no e-mail address"},
		{"email", `{"to":"Ada <ada@example.com>","subject":"x","body":"x"}`, "without a name"},
		{"email", `{"to":"ada@example.com\r\nBcc: x@example.com","subject":"x","body":"x"}`, "to is no e-mail address"},
		{"email", `{"to":"ada@example.com","subject":"x\nBcc: x@example.com","body":"x"}`, "subject is more than one line"},
	} {
		got, _, failed := use(t, session(t, row.server, nil), row.arguments)
		if !failed || !strings.Contains(got, row.want) {
			t.Errorf("%s %.60s: got %q (error %t), want an error with %q", row.server, row.arguments, got, failed, row.want)
		}
	}
}

func TestAnnotations(t *testing.T) {
	for name, readOnly := range map[string]bool{"search": true, "calculator": true, "hr": true, "email": false} {
		list, err := session(t, name, nil).ListTools(t.Context(), nil)
		if err != nil {
			t.Fatalf("%s: got %v, want no error", name, err)
		}
		a := list.Tools[0].Annotations
		if a.ReadOnlyHint != readOnly || a.DestructiveHint == nil || *a.DestructiveHint == readOnly {
			t.Errorf("%s: got readOnlyHint %t and destructiveHint %v, want %t and the opposite", name, a.ReadOnlyHint, a.DestructiveHint, readOnly)
		}
	}
}

func TestWebSearch(t *testing.T) {
	var mu sync.Mutex
	var progress []string
	cs := session(t, "search", &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			mu.Lock()
			defer mu.Unlock()
			progress = append(progress, r.Params.Message)
		},
	})
	for _, row := range []struct {
		query     string
		first     string // title of the best page
		wantTopic string // part of every URL
	}{
		{"latest AI news", "Open-weight model", "ai.example.com"},
		{"What's the latest AI news and what's 15% of $2500?", "", "ai.example.com"},
		{"news", "Markets close higher", "example"},
		{"how does compound interest work", "Compound interest", "library"},
		{"what is prompt injection?", "Prompt injection", "example"},
		{"glacier", "Glacier survey", "climate"},
		{"recent space news", "", "example"},
		{"MCP", "Model Context Protocol", "library"},
	} {
		arguments, _ := json.Marshal(map[string]any{"query": row.query})
		text, content, failed := use(t, cs, string(arguments))
		results, _ := content["results"].([]any)
		if failed || len(results) == 0 || len(results) > defaultResults {
			t.Errorf("%q: got %d results (error %t), want 1 to %d", row.query, len(results), failed, defaultResults)
			continue
		}
		if got := results[0].(map[string]any)["title"].(string); !strings.HasPrefix(got, row.first) || !strings.Contains(text, got) {
			t.Errorf("%q: got %q first, want %q", row.query, got, row.first)
		}
		for _, r := range results {
			if got := r.(map[string]any)["url"].(string); !strings.Contains(got, row.wantTopic) {
				t.Errorf("%q: got %s, want %s", row.query, got, row.wantTopic)
			}
		}
	}
	_, content, _ := use(t, cs, `{"query":"AI","max_results":12}`)
	if got := len(content["results"].([]any)); got != 12 {
		t.Errorf("max_results 12: got %d results, want 12", got)
	}
	text, content, failed := use(t, cs, `{"query":"zyzzyva"}`)
	if got := content["results"].([]any); failed || len(got) != 0 || !strings.Contains(text, "No page") {
		t.Errorf("a word that no page holds: got %v, %q (error %t), want no results", got, text, failed)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(progress) < 3 || !strings.HasPrefix(progress[0], "Searching 74 pages") {
		t.Errorf("got progress %q, want three messages per search", progress)
	}
}

func TestCalculateTool(t *testing.T) {
	cs := session(t, "calculator", nil)
	text, content, failed := use(t, cs, `{"expression":"2500 * 0.15"}`)
	if failed || text != "375" || content["result"] != 375.0 || content["expression"] != "2500 * 0.15" {
		t.Errorf("got %q, %v (error %t), want 375", text, content, failed)
	}
}

func TestQueryHR(t *testing.T) {
	cs := session(t, "hr", nil)
	for arguments, want := range map[string]string{
		`{"name":"jonas"}`: "Jonas Feld",
		`{"department":"engineering","location":"lisbon","title":"manager"}`: "Priya Raman",
		`{"query":"Who is the head of marketing?"}`:                          "Ingrid Molnar",
		`{"query":"software engineers in Toronto"}`:                          "Ana Beaumont",
		`{"query":"Freya Nakamura's e-mail"}`:                                "Freya Nakamura",
		`{"query":"E026"}`:                                                   "Daniel Abara",
	} {
		text, content, failed := use(t, cs, arguments)
		if failed || content["count"] != 1.0 || !strings.Contains(text, want) || !strings.HasPrefix(text, "1 employee found") {
			t.Errorf("%s: got %q (error %t), want only %s", arguments, text, failed, want)
		}
	}
	for arguments, want := range map[string]int{
		`{}`: 26, `{"query":"list all employees"}`: 26, `{"department":"Engineering"}`: 8, `{"location":"Lisbon","department":"Sales"}`: 1,
		`{"query":"quantum wizard"}`: 0, `{"name":"Nobody"}`: 0, `{"query":"engineering in Berlin"}`: 3,
	} {
		text, content, _ := use(t, cs, arguments)
		if content["count"] != float64(want) || len(content["employees"].([]any)) != want {
			t.Errorf("%s: got %q, want %d employees", arguments, text, want)
		}
	}
}

func TestSendEmail(t *testing.T) {
	cs := session(t, "email", nil)
	for range maxOutbox + 1 {
		text, content, failed := use(t, cs, `{"to":"ada@example.com","subject":"Hello","body":"How are you?\nBye"}`)
		if failed || content["status"] != "recorded" || !strings.Contains(text, "not sent") {
			t.Fatalf("got %q, %v (error %t), want a recorded mail", text, content, failed)
		}
	}
	read, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: outboxURI})
	if err != nil {
		t.Fatalf("reading %s: got %v, want no error", outboxURI, err)
	}
	var mails []recordedMail
	if err := json.Unmarshal([]byte(read.Contents[0].Text), &mails); err != nil {
		t.Fatalf("the outbox: got %v, want JSON", err)
	}
	if len(mails) != maxOutbox || mails[0].ID != "mail-2" || mails[0].Subject != "Hello" {
		t.Errorf("the outbox: got %d mails from %+v, want the last %d from mail-2", len(mails), mails[0], maxOutbox)
	}
}

func TestCorpus(t *testing.T) {
	urls := map[string]bool{}
	for _, d := range corpus() {
		if len(d.Date) != len(time.DateOnly) || urls[d.URL] || d.Title == "" || d.Text == "" || !strings.Contains(d.URL, ".example.") {
			t.Errorf("got page %+v, want a date, a title, a text and a URL of its own at an example domain", d)
		}
		urls[d.URL] = true
	}
}

package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
)

// transcript is a question with what a careful reader of the prompts replied, in order, and what must come of it.
type transcript struct {
	Ask     string            `yaml:"ask"`
	Form    map[string]any    `yaml:"form"`    // what the user enters for missing arguments
	Replies []string          `yaml:"replies"` // plans are JSON, the last one is the answer
	Calls   []string          `yaml:"calls"`   // server.tool and arguments, in any order
	Answer  []string          `yaml:"answer"`  // what the answer contains
	Files   map[string]string `yaml:"files"`   // their contents in the end
}

// liveModel is a variable with the base URL of a model that is asked instead of replaying the transcripts.
const liveModel = "NEXUS_TRANSCRIPTS_MODEL"

// TestTranscripts asks questions over files, a memory, a database and mails. Each must be answered right, with the calls
// that it needs and no others, and whatever it asks to be written must be in the first plan.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	const folder = "testdata/transcripts/"
	world, err := os.ReadFile(folder + "office.yaml")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(folder + "questions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []transcript
	if err := yaml.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	asked, requests, tokens, several := 0, 0, 0, 0
	t.Run("questions", func(t *testing.T) {
		for i, row := range all {
			if len(row.planned(t)) > 1 {
				several++
			}
			t.Run(fmt.Sprintf("%02d", i+1), func(t *testing.T) {
				t.Parallel()
				u := row.run(t, newOffice(t, world))
				mu.Lock()
				defer mu.Unlock()
				asked++
				requests += u.Planner.Calls + u.Synthesizer.Calls
				tokens += u.Planner.InputTokens + u.Synthesizer.InputTokens
			})
		}
	})
	n := float64(max(asked, 1))
	t.Logf("%.2f requests to the model and %.0f input tokens for each of %d questions", float64(requests)/n, float64(tokens)/n, asked)
	if float64(requests)/n > 2.3 && asked == len(all) {
		t.Errorf("got %d requests for %d questions, want at most 2.3 for each", requests, asked)
	}
	if len(all) < 30 || 2*several < len(all) {
		t.Errorf("got %d questions, %d with several steps, want 30 and half of them", len(all), several)
	}
}

// replay starts a model that replies as the transcript says. It fails the test if another kind of reply is wanted, or
// not all of them.
func (q transcript) replay(t *testing.T) *llmtest.Server {
	model, next := llmtest.New(t), 0
	model.Script(func(r llmtest.Request) (llmtest.Reply, bool) {
		if next == len(q.Replies) || llmtest.Structured(r) != strings.HasPrefix(q.Replies[next], "{") {
			t.Errorf("request %d has no such reply in the transcript: %s", next+1, r.Text)
			return llmtest.Reply{}, false
		}
		next++
		return llmtest.Reply{Text: q.Replies[next-1], Chunk: 1 << 10}, true
	})
	t.Cleanup(func() {
		if next < len(q.Replies) {
			t.Errorf("%d of %d replies were wanted", next, len(q.Replies))
		}
	})
	return model
}

// planned returns the tools of the first plan, one for each step.
func (q transcript) planned(t *testing.T) (tools []string) {
	if len(q.Replies) == 0 {
		return nil
	}
	var first struct{ Steps []struct{ Tool string } }
	if err := json.Unmarshal([]byte(q.Replies[0]), &first); err != nil {
		t.Fatal(err)
	}
	for _, s := range first.Steps {
		tools = append(tools, s.Tool)
	}
	return tools
}

// query asks the question as a client whose user agrees to everything and enters what the transcript says.
func (q transcript) query(t *testing.T, url string) (a officeAnswer) {
	client := mcp.NewClient(&mcp.Implementation{Name: "transcripts", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: q.Form}, nil
		},
	})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "process_query", Arguments: map[string]any{"query": q.Ask}})
	if err != nil {
		t.Fatal(err)
	}
	return decode[officeAnswer](t, encode(t, result.StructuredContent))
}

// officeAnswer is the structuredContent of process_query as far as the transcripts tell of it.
type officeAnswer struct {
	Answer string
	Steps  []struct {
		Server, Tool string
		Arguments    json.RawMessage
		Success      bool
	}
	Usage usage
}

type usage struct {
	Planner, Synthesizer struct {
		Calls       int
		InputTokens int `json:"input_tokens"`
	}
}

// run asks the question and checks what comes of it.
func (q transcript) run(t *testing.T, o *office) usage {
	model := os.Getenv(liveModel)
	if model == "" {
		model = q.replay(t).BaseURL
	}
	r := serve(t, fmt.Sprintf("llm: {planner: {base_url: %q, model: transcript, timeout: 10m}}\nquery: {timeout: 10m}\n%s", model, o.servers(t)))
	r.healthy()
	a := q.query(t, r.url)

	var calls []string
	for _, s := range a.Steps {
		if s.Success && s.Server != "" {
			calls = append(calls, s.Server+"."+s.Tool+" "+string(encode(t, decode[any](t, s.Arguments))))
		}
	}
	want := slices.Clone(q.Calls)
	slices.Sort(want)
	slices.Sort(calls)
	if !slices.Equal(calls, want) {
		t.Errorf("got the calls\n%s\nwant\n%s", strings.Join(calls, "\n"), strings.Join(want, "\n"))
	}
	first, sent := q.planned(t), 0
	for _, c := range q.Calls {
		name, _, _ := strings.Cut(c, " ")
		_, tool, _ := strings.Cut(name, ".")
		if tool == "send_mail" {
			sent++
		}
		if slices.Contains(o.writes, tool) && !slices.Contains(first, tool) {
			t.Errorf("the first plan lacks the call %s", c)
		}
	}
	o.mu.Lock()
	if len(o.sent) != sent {
		t.Errorf("got the mails %v sent, want %d", o.sent, sent)
	}
	o.mu.Unlock()
	for _, part := range q.Answer {
		if !strings.Contains(a.Answer, part) {
			t.Errorf("got the answer %q, want %q in it", a.Answer, part)
		}
	}
	for name, content := range q.Files {
		if got, err := os.ReadFile(filepath.Join(o.folder, name)); err != nil || string(got) != content {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, content)
		}
	}
	return a.Usage
}

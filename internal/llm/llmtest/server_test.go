package llmtest_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t *testing.T, s *llmtest.Server) *llm.Client {
	t.Helper()
	c := llm.New(llm.Config{BaseURL: s.BaseURL, Model: "stub"}, llm.Options{RetryDelay: time.Millisecond})
	t.Cleanup(c.Close)
	return c
}

func question(text string, schema *llm.Schema) llm.Request {
	return llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Content: text}}, Schema: schema}
}

// TestScript: rules are tried in order, replies are given in order, and the last one stays.
func TestScript(t *testing.T) {
	s := llmtest.New(t)
	s.When(llmtest.Structured, llmtest.JSON([]string{"plan"}))
	s.When(llmtest.Contains("weather"), llmtest.Reply{Text: "rain"}, llmtest.Reply{Text: "sun"})
	c := client(t, s)
	schema := &llm.Schema{Name: "x", Strict: []byte(`{}`), Loose: []byte(`{}`)}
	for _, row := range []struct {
		req  llm.Request
		want string
	}{
		{question("weather", nil), "rain"}, {question("plan the weather", schema), `["plan"]`}, {question("weather", nil), "sun"}, {question("weather", nil), "sun"},
	} {
		if got, err := c.Complete(t.Context(), row.req); err != nil || got.Text != row.want {
			t.Errorf("got %q, %v, want %q", got.Text, err, row.want)
		}
	}
	if got, err := c.Complete(t.Context(), question("news", nil)); err == nil {
		t.Errorf("got %q for a question that no rule takes, want an error", got.Text)
	}
	if n := len(s.Requests()); n != 5 {
		t.Errorf("got %d requests kept, want 5", n)
	}
	s.Reset()
	if n := len(s.Requests()); n != 0 {
		t.Errorf("got %d requests kept after a reset, want none", n)
	}
}

// TestPace: the stream takes its time.
func TestPace(t *testing.T) {
	s := llmtest.New(t)
	s.Answer(llmtest.Reply{Text: "0123456789", Chunk: 2, First: 50 * time.Millisecond, Every: 10 * time.Millisecond})
	began := time.Now()
	if _, err := client(t, s).Complete(t.Context(), question("?", nil)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 90*time.Millisecond {
		t.Errorf("took %v, want at least 90 ms", took)
	}
}

// TestClose: nothing is left of a server that is closed while it stalls.
func TestClose(t *testing.T) {
	s, err := llmtest.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Answer(llmtest.Reply{Fault: llmtest.StallFirst})
	failed := make(chan error, 1)
	c := client(t, s)
	go func() {
		_, err := c.Complete(t.Context(), question("?", nil))
		failed <- err
	}()
	for len(s.Requests()) == 0 {
		time.Sleep(time.Millisecond)
	}
	s.Close()
	if err := <-failed; err == nil {
		t.Error("got an answer from a closed server")
	}
}

package llm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
)

// shape is how a request asked: form, strictness, streaming.
func shape(r llmtest.Request) string {
	s := r.Form
	if s == "" {
		s = "prompt"
	}
	if r.Strict {
		s = "strict"
	}
	if !r.Stream {
		s += " whole"
	}
	if r.Has("temperature") {
		s += " temperature"
	}
	return s
}

// steady names a model that gets a temperature.
func steady(c *llm.Config) { c.Model = "gpt-4o" }

// TestLadder: an endpoint that refuses a parameter gets a plainer request, and the next time at once.
func TestLadder(t *testing.T) {
	for _, row := range []struct {
		name   string
		refuse []string
		want   []string // what is sent until it works
	}{
		{"everything", nil, []string{"strict temperature"}},
		{"no temperature", []string{"temperature"}, []string{"strict temperature", "strict"}},
		{"no strict", []string{"strict"}, []string{"strict temperature", "json_schema temperature"}},
		{"no schema", []string{"json_schema"}, []string{"strict temperature", "json_schema temperature", "json_object temperature"}},
		{"no form", []string{"json_schema", "json_object"}, []string{"strict temperature", "json_schema temperature", "json_object temperature", "prompt temperature"}},
		{"no stream", []string{"stream"}, []string{"strict temperature", "strict whole temperature"}},
		{"least", []string{"json_schema", "json_object", "temperature", "stream"}, []string{
			"strict temperature", "json_schema temperature", "json_object temperature", "prompt temperature", "prompt", "prompt whole"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			openAI(t, func(t *testing.T, api func(*llm.Config)) {
				f := connect(t, func(c *llm.Config) { api(c); steady(c) })
				f.Answer(llmtest.Reply{Text: `{"z":"1","a":"2"}`, Refuse: row.refuse})
				req := ask("?")
				req.Schema = schema
				for range 2 {
					got, err := f.llm.Complete(t.Context(), req)
					if err != nil || got.Text != `{"z":"1","a":"2"}` {
						t.Fatalf("got %q, %v", got.Text, err)
					}
				}
				var got []string
				for _, r := range f.Requests() {
					got = append(got, shape(r))
				}
				want := append(row.want, row.want[len(row.want)-1])
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("got requests %q, want %q", got, want)
				}
			})
		})
	}
}

// TestLadderWithoutWords: an endpoint that does not say what it dislikes is asked ever more plainly, and not for ever.
func TestLadderWithoutWords(t *testing.T) {
	for _, status := range []int{400, 422} {
		f := connect(t, nil)
		f.When(func(r llmtest.Request) bool { return r.Form != "" || r.Has("stream_options") }, llmtest.Reply{Raw: "Bad request", RawType: "text/plain", Status: status})
		f.Answer(llmtest.Reply{Text: "fine"})
		req := ask("?")
		req.Schema = schema
		if got, err := f.llm.Complete(t.Context(), req); err != nil || got.Text != "fine" || got.Usage.Calls != 5 {
			t.Errorf("%d: got %+v, %v, want an answer at the fifth call", status, got, err)
		}
	}
	f := connect(t, steady)
	f.Answer(llmtest.Reply{Raw: "Bad request", RawType: "text/plain", Status: 400})
	req := ask("?")
	req.Schema = schema
	for range 2 { // what never worked is not remembered
		got, err := f.llm.Complete(t.Context(), req)
		f.expect(t, got, err, llm.Refused, 400)
		if got.Usage.Calls != 7 {
			t.Errorf("got %d calls, want 7: every rung once", got.Usage.Calls)
		}
	}
	if first := f.Requests()[7]; shape(first) != "strict temperature" {
		t.Errorf("got %q as the first request of the second question, want everything again", shape(first))
	}
}

// TestLadderStaysOnOtherRefusals: only a refused parameter is a reason to ask more plainly.
func TestLadderStaysOnOtherRefusals(t *testing.T) {
	for name, reply := range map[string]llmtest.Reply{
		"key":     {Status: 401, Text: "bad key"},
		"model":   {Status: 404, Text: "The model `x` does not exist"},
		"context": {Status: 400, Text: "This model's maximum context length is 4096 tokens", Code: "context_length_exceeded"},
		"policy":  {Status: 400, Text: "The response was filtered due to the prompt triggering our content management policy.", Code: "content_filter"},
		"gemini":  {Status: 400, Text: "API key not valid. Please pass a valid API key."},
	} {
		f := connect(t, nil)
		f.Answer(reply)
		req := ask("?")
		req.Schema = schema
		got, err := f.llm.Complete(t.Context(), req)
		f.expect(t, got, err, llm.Refused, reply.Status)
		if got.Usage.Calls != 1 {
			t.Errorf("%s: got %d calls, want 1", name, got.Usage.Calls)
		}
	}
}

// TestFormsAreLearnedApart: a question for free text neither needs nor loses what is known about forms.
func TestFormsAreLearnedApart(t *testing.T) {
	f := connect(t, nil)
	f.Answer(llmtest.Reply{Text: "{}", Refuse: []string{"json_schema"}})
	structured := ask("?")
	structured.Schema = schema
	for _, req := range []llm.Request{ask("?"), structured, ask("?"), structured} {
		if _, err := f.llm.Complete(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, r := range f.Requests() {
		got = append(got, r.Form)
	}
	if want := ",json_schema,json_schema,json_object,,json_object"; strings.Join(got, ",") != want {
		t.Errorf("got forms %q, want %q", strings.Join(got, ","), want)
	}
}

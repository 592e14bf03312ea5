package llm_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/internal/secret"
)

// TestSettings: each API gets the settings in its own spelling, and extra members are merged.
func TestSettings(t *testing.T) {
	warm := 0.7
	full := llm.Config{
		ReasoningEffort: "low", Verbosity: "high", MaxTokens: 300, Temperature: &warm,
		Extra: llm.Extra{"num_ctx": json.RawMessage("8192"), "text": json.RawMessage(`{"a":{"b":1}}`), "reasoning": json.RawMessage(`{"summary":"auto"}`)},
	}
	for _, row := range []struct {
		api, model string
		want       map[string]string
		without    string
	}{
		{llm.APIChat, "stub", map[string]string{
			"temperature": "0.7", "max_tokens": "300", "reasoning_effort": `"low"`, "verbosity": `"high"`, "num_ctx": "8192",
			"text": `{"a":{"b":1}}`, "reasoning": `{"summary":"auto"}`, "stream": "true",
		}, "max_completion_tokens"},
		{llm.APIChat, "gpt-5", map[string]string{"max_completion_tokens": "300", "temperature": "0.7"}, "max_tokens"},
		{llm.APIResponses, "gpt-5", map[string]string{
			"temperature": "0.7", "max_output_tokens": "300", "num_ctx": "8192", "reasoning": `{"effort":"low","summary":"auto"}`,
		}, "verbosity"},
	} {
		t.Run(row.api+" "+row.model, func(t *testing.T) {
			f := connect(t, func(c *llm.Config) {
				base, key := c.BaseURL, c.APIKey
				*c = full
				c.BaseURL, c.APIKey, c.API, c.Model = base, key, row.api, row.model
			})
			f.Answer(llmtest.Reply{Text: "{}"})
			req := ask("?")
			req.Schema = schema
			if _, err := f.llm.Complete(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			r := f.Requests()[0]
			var body map[string]json.RawMessage
			if err := json.Unmarshal(r.Body, &body); err != nil {
				t.Fatal(err)
			}
			for name, want := range row.want {
				if got := string(body[name]); got != want {
					t.Errorf("got %s = %s, want %s", name, got, want)
				}
			}
			if r.Has(row.without) {
				t.Errorf("got %s in %s, want none", row.without, r.Body)
			}
			if !strings.Contains(string(r.Body), string(schema.Strict)) {
				t.Errorf("got %s, want the schema as it stands", r.Body)
			}
			if row.api == llm.APIResponses && !strings.Contains(string(body["text"]), `"verbosity":"high"`) {
				t.Errorf("got text %s, want the verbosity in it", body["text"])
			}
		})
	}
}

// TestRefusedSettings: a setting that the endpoint refuses is left out, with a warning.
func TestRefusedSettings(t *testing.T) {
	warm := 1.5
	for _, row := range []struct{ words, setting, gone, there string }{
		{"Unsupported parameter: 'reasoning_effort' is not supported with this model.", "reasoning_effort", "reasoning_effort", "verbosity"},
		{"Unsupported value: 'verbosity' does not support 'low' with this model.", "verbosity", "verbosity", "reasoning_effort"},
		{"Unsupported value: 'temperature' does not support 1.5 with this model.", "temperature", "temperature", "verbosity"},
		{"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "", "max_tokens", "max_completion_tokens"},
	} {
		f := connect(t, func(c *llm.Config) {
			c.ReasoningEffort, c.Verbosity, c.MaxTokens, c.Temperature = "high", "low", 9, &warm
		})
		f.Answer(llmtest.Reply{Status: 400, Text: row.words}, llmtest.Reply{Text: "fine"})
		if _, err := f.llm.Complete(t.Context(), ask("?")); err != nil {
			t.Fatal(err)
		}
		r := f.Requests()
		if len(r) != 2 || r[1].Has(row.gone) || !r[1].Has(row.there) {
			t.Errorf("%s: got %d requests, the last %s", row.words, len(r), r[len(r)-1].Body)
		}
		if warned := strings.Contains(f.log.String(), "setting="+row.setting+" "); warned != (row.setting != "") {
			t.Errorf("%s: got log %s", row.words, f.log.String())
		}
	}
}

// TestHeaders: configured headers are sent, and their values appear nowhere else.
func TestHeaders(t *testing.T) {
	apis(t, func(t *testing.T, api func(*llm.Config)) {
		const token = "tok-98765432"
		f := connect(t, func(c *llm.Config) {
			api(c)
			c.APIKey = ""
			c.Headers = map[string]secret.String{"X-Gateway": "Token " + token, "authorization": "Basic x", "x-v": "1"}
		})
		f.Answer(llmtest.Reply{Status: http.StatusUnauthorized, Text: "1 bad token " + token})
		_, err := f.llm.Complete(t.Context(), ask("?"))
		if err == nil || strings.Contains(err.Error(), token) || !strings.Contains(err.Error(), "1 bad token [redacted]") {
			t.Errorf("got %v, want the token redacted", err)
		}
		f.llm.Probe(t.Context())
		for _, r := range f.Requests() {
			if r.Header.Get("X-Gateway") != "Token "+token || fmt.Sprint(r.Header["Authorization"]) != "[Basic x]" {
				t.Errorf("%s: got headers %v", r.Path, r.Header)
			}
		}
		if strings.Contains(f.log.String(), token) {
			t.Errorf("the token is in the log: %s", f.log.String())
		}
	})
}

// TestFallbackEnds: what an endpoint refused is tried again after some time.
func TestFallbackEnds(t *testing.T) {
	f := connect(t, steady)
	now := time.Now()
	f.llm = llm.New(f.cfg, llm.Options{HTTPClient: f.http, Now: func() time.Time { return now }})
	f.Answer(llmtest.Reply{Status: 400, Text: "json_schema is not supported just now"}, llmtest.Reply{Text: "{}"})
	req := ask("?")
	req.Schema = schema
	for _, later := range []time.Duration{0, 9 * time.Minute, 2 * time.Minute} {
		now = now.Add(later)
		if _, err := f.llm.Complete(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, r := range f.Requests() {
		got = append(got, shape(r))
	}
	want := "[strict temperature json_schema temperature json_schema temperature strict temperature]"
	if fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// TestFallbackIsOfOneShape: what is refused for a plan is not left out of an answer.
func TestFallbackIsOfOneShape(t *testing.T) {
	f := connect(t, steady)
	f.When(llmtest.Structured, llmtest.Reply{Text: "{}", Refuse: []string{"stream", "temperature"}})
	f.Answer(llmtest.Reply{Text: "fine"})
	structured := ask("?")
	structured.Schema = schema
	for _, req := range []llm.Request{structured, ask("?"), structured} {
		if _, err := f.llm.Complete(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, r := range f.Requests()[2:] {
		got = append(got, shape(r))
	}
	if want := "[strict whole prompt temperature strict whole]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestExtraHidesItsValues(t *testing.T) {
	e := llm.Extra{"b": json.RawMessage(`"hunter2"`), "a": json.RawMessage(`1`)}
	if got := fmt.Sprintf("%v %s", e, e); got != "[a, b] [a, b]" {
		t.Errorf("got %q, want the names alone", got)
	}
}

// TestExtraIsRedacted: an endpoint that repeats a text of extra in an error has it redacted, also in the log.
func TestExtraIsRedacted(t *testing.T) {
	apis(t, func(t *testing.T, api func(*llm.Config)) {
		const token, inner, deep = "tok-98765432", "sk-inner-1234", "tok-98765432-longer"
		f := connect(t, func(c *llm.Config) {
			api(c)
			c.Extra = llm.Extra{
				"token": json.RawMessage(`"` + token + `"`), "tier": json.RawMessage(`"flex"`), "n": json.RawMessage(`12345678`),
				"gateway": json.RawMessage(`{"headers":{"Authorization":"Bearer ` + inner + `"},"list":[null,true,["` + deep + `"]]}`),
			}
		})
		f.Answer(llmtest.Reply{Status: http.StatusUnauthorized, Text: "flex 12345678 Authorization: " + strings.Join([]string{token, inner, deep}, " ")})
		_, err := f.llm.Complete(t.Context(), ask("?"))
		if want := "flex 12345678 Authorization: [redacted] [redacted] [redacted]"; err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		f.llm.Probe(t.Context())
		for _, text := range []string{f.log.String(), f.llm.Status().LastError} {
			if strings.Contains(text, token) || strings.Contains(text, inner) {
				t.Errorf("a text of extra is in %s", text)
			}
		}
	})
}

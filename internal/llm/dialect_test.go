package llm_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/internal/redact"
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

// TestLadder: an endpoint that refuses a parameter gets a plainer request, and the next time at once. Instructions for
// strict modes go to these alone.
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
				req, own := ask("?"), *schema
				own.System = "Be strict."
				req.Schema = &own
				for range 2 {
					got, err := f.llm.Complete(t.Context(), req)
					if err != nil || got.Text != `{"z":"1","a":"2"}` {
						t.Fatalf("got %q, %v", got.Text, err)
					}
				}
				var got []string
				for _, r := range f.Requests() {
					got = append(got, shape(r))
					if r.Strict != (r.System == "Be strict.") {
						t.Errorf("%s: got the instructions %q", shape(r), r.System)
					}
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

// TestRecordedRefusals replays how endpoints refuse a parameter, in words that they document or are known to use: the
// next request leaves out what they named and nothing else, and is answered.
func TestRecordedRefusals(t *testing.T) {
	for _, row := range []struct {
		name, model, raw string
		responses        bool
		times            int // how often it is refused; 0 is once
		want             string
	}{
		{name: "OpenAI, temperature of a reasoning model", model: "gpt-4-alias", want: "strict",
			raw: `{"error":{"message":"Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}`},
		{name: "OpenAI Responses, temperature of a reasoning model", model: "gpt-4-alias", responses: true, want: "strict",
			raw: `{"error":{"message":"Unsupported parameter: 'temperature' is not supported with this model.","type":"invalid_request_error","param":"temperature","code":null}}`},
		{name: "OpenAI, strict schema", want: "json_schema temperature",
			raw: `{"error":{"message":"Invalid schema for response_format 'answer': In context=(), 'additionalProperties' is required to be supplied and to be false.","type":"invalid_request_error","param":"response_format","code":null}}`},
		{name: "OpenAI, a model before schemas", times: 2, want: "json_object temperature",
			raw: `{"error":{"message":"Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model. Learn more about supported models at the Structured Outputs guide.","type":"invalid_request_error","param":null,"code":null}}`},
		{name: "OpenAI, organisation not verified to stream", model: "gpt-5", want: "strict whole",
			raw: `{"error":{"message":"Your organization must be verified to stream this model. Please go to the settings and click on Verify Organization.","type":"invalid_request_error","param":"stream","code":"unsupported_value"}}`},
		{name: "Azure, an API version before schemas", times: 2, want: "json_object temperature",
			raw: `{"error":{"message":"response_format value as json_schema is enabled only for api versions 2024-08-01-preview and later","type":"invalid_request_error","param":null,"code":"BadRequest"}}`},
		{name: "vLLM, a field it forbids", want: "strict temperature without usage",
			raw: `{"object":"error","message":"[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted', 'input': {'include_usage': True}}]","type":"BadRequestError","param":null,"code":400}`},
		{name: "vLLM, a grammar it cannot compile", want: "json_schema temperature",
			raw: `{"error":{"message":"Failed to convert the grammar from JSON schema: unsupported keyword","type":"BadRequestError","param":null,"code":400}}`},
		{name: "llama.cpp, a grammar it cannot parse", want: "json_schema temperature",
			raw: `{"error":{"code":400,"message":"Failed to initialize samplers: failed to parse grammar","type":"invalid_request_error"}}`},
		{name: "Ollama, a format it does not know", want: "json_schema temperature",
			raw: `{"error":{"message":"invalid JSON schema in format","type":"invalid_request_error","param":null,"code":null}}`},
		{name: "Gemini, a keyword it does not know", times: 2, want: "json_object temperature",
			raw: `[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"additionalProperties\" at 'generation_config.response_schema': Cannot find field.","status":"INVALID_ARGUMENT"}}]`},
		{name: "Anthropic, a parameter it does not take", want: "json_schema temperature",
			raw: `{"type":"error","error":{"type":"invalid_request_error","message":"response_format: Extra inputs are not permitted"},"request_id":"req_1"}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := connect(t, func(c *llm.Config) {
				steady(c)
				if row.model != "" {
					c.Model = row.model
				}
				if row.responses {
					c.API = llm.APIResponses
				}
			})
			refusal := llmtest.Reply{Status: 400, Raw: row.raw, RawType: "application/json"}
			f.Answer(append(slices.Repeat([]llmtest.Reply{refusal}, max(row.times, 1)), llmtest.Reply{Text: "{}"})...)
			req := ask("?")
			req.Schema = schema
			got, err := f.llm.Complete(t.Context(), req)
			if err != nil || got.Text != "{}" {
				t.Fatalf("got %q, %v, want an answer", got.Text, err)
			}
			requests := f.Requests()
			last := requests[len(requests)-1]
			sent := shape(last)
			if !row.responses && last.Stream && !last.Has("stream_options") {
				sent += " without usage"
			}
			if sent != row.want || len(requests) != max(row.times, 1)+1 {
				t.Errorf("got %q after %d requests, want %q", sent, len(requests), row.want)
			}
		})
	}
}

// TestMessageFallback: a model without structured outputs gets the prompt alone, and one without thinking does not think.
func TestMessageFallback(t *testing.T) {
	f := connect(t, func(c *llm.Config) { c.API, c.ReasoningEffort = llm.APIAnthropic, "high" })
	f.Answer(
		llmtest.Reply{Status: 400, Text: "output_config.format: structured outputs are not supported for this model"},
		llmtest.Reply{Status: 400, Text: "adaptive thinking is not supported on this model"},
		llmtest.Reply{Text: "{}"})
	req := ask("?")
	req.Schema = schema
	if got, err := f.llm.Complete(t.Context(), req); err != nil || got.Usage.Calls != 3 {
		t.Fatalf("got %+v, %v, want an answer at the third call", got, err)
	}
	r := f.Requests()
	if !r[1].Has("thinking") || r[1].Form != "" || r[2].Has("thinking") || r[2].Has("output_config") {
		t.Errorf("got requests %s\n%s", r[1].Body, r[2].Body)
	}
}

// TestOneBadTool: where an endpoint refuses one tool, the schemas of tools go and nothing else, whatever words the
// message has. What they said is in the descriptions.
func TestOneBadTool(t *testing.T) {
	warm := 0.5
	for name, raw := range map[string]string{
		"OpenAI":    `{"error":{"message":"Invalid schema for function 'get_weather': In context=('properties', 'temperature', 'reasoning effort'), array schema missing items.","type":"invalid_request_error","param":"tools[0].function.parameters","code":"invalid_function_parameters"}}`,
		"a key":     `{"error":{"message":"Invalid schema for function 'set_api_key': In context=('properties', 'api_key'), schema must have a 'type' key.","type":"invalid_request_error","param":"tools[1].function.parameters","code":"invalid_function_parameters"}}`,
		"Gemini":    `[{"error":{"code":400,"message":"* GenerateContentRequest.tools[0].function_declarations[1].parameters.properties[streaming].items: missing field.","status":"INVALID_ARGUMENT"}}]`,
		"Anthropic": `{"type":"error","error":{"type":"invalid_request_error","message":"tools.0.custom.input_schema: JSON schema is invalid: verbosity, thinking, stream"}}`,
		"a list":    `{"detail":[{"type":"extra_forbidden","loc":["body","tools",0,"function","parameters","temperature"],"msg":"Extra inputs are not permitted"}]}`,
		"vLLM":      `{"object":"error","message":"[{'loc': ('body', 'tools', 0, 'function'), 'msg': 'temperature: streaming is no schema'}]","type":"BadRequestError","code":400}`,
	} {
		t.Run(name, func(t *testing.T) {
			apis(t, func(t *testing.T, api func(*llm.Config)) {
				f := connect(t, func(c *llm.Config) {
					api(c)
					c.Temperature, c.ReasoningEffort, c.Model = &warm, "low", "claude-sonnet-4-5"
				})
				bad := func(r llmtest.Request) bool { return strings.Contains(string(r.Body), `"properties":{"z"`) }
				f.When(bad, llmtest.Reply{Status: 400, Raw: raw, RawType: "application/json"})
				f.Answer(llmtest.Reply{Text: "{}"})
				req := askWithTools()
				req.Tools[0].Plain = "get_weather(z: string)"
				for range 2 {
					if _, err := f.llm.Complete(t.Context(), req); err != nil {
						t.Fatal(err)
					}
				}
				r := f.Requests()
				if len(r) != 3 {
					t.Fatalf("got %d requests, want one refused, and one for each question", len(r))
				}
				withoutTools := func(r llmtest.Request) string {
					var body map[string]json.RawMessage
					if err := json.Unmarshal(r.Body, &body); err != nil {
						t.Fatal(err)
					}
					delete(body, "tools")
					return fmt.Sprintf("%s", body)
				}
				if first := withoutTools(r[0]); withoutTools(r[1]) != first || withoutTools(r[2]) != first {
					t.Errorf("got %s\nthen %s\nthen %s, want nothing but the tools to change", r[0].Body, r[1].Body, r[2].Body)
				}
				if !strings.Contains(string(r[1].Body), "get_weather(z: string)") {
					t.Errorf("got %s, want the arguments in the description", r[1].Body)
				}
			})
		})
	}
}

// TestBadToolWithoutSchemas: a tool that is refused whatever its schema is an error at once.
func TestBadToolWithoutSchemas(t *testing.T) {
	apis(t, func(t *testing.T, api func(*llm.Config)) {
		f := connect(t, func(c *llm.Config) { api(c); steady(c) })
		f.Answer(llmtest.Reply{Status: 400, Text: "Invalid 'tools[0].function.name': string does not match pattern"})
		got, err := f.llm.Complete(t.Context(), askWithTools())
		f.expect(t, got, err, llm.Refused, 400)
		if n := len(f.Requests()); n != 2 {
			t.Errorf("got %d requests, want 2: with schemas and without", n)
		}
	})
}

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

// TestConfiguredSecrets: the values of configured headers, and texts of extra, are sent, and appear nowhere else.
func TestConfiguredSecrets(t *testing.T) {
	apis(t, func(t *testing.T, api func(*llm.Config)) {
		const header, token, inner, deep = "tok-header-1", "tok-98765432", "sk-inner-1234", "tok-98765432-longer"
		f := connect(t, func(c *llm.Config) {
			api(c)
			c.APIKey = ""
			c.Headers = map[string]redact.Secret{"X-Gateway": "Token " + header, "authorization": "Basic x", "x-v": "1"}
			c.Extra = llm.Extra{
				"token": json.RawMessage(`"` + token + `"`), "tier": json.RawMessage(`"flex"`), "n": json.RawMessage(`12345678`),
				"gateway": json.RawMessage(`{"headers":{"Authorization":"Bearer ` + inner + `"},"list":[null,true,["` + deep + `"]]}`),
			}
		})
		f.Answer(llmtest.Reply{Status: http.StatusUnauthorized, Text: "flex 1 12345678 Authorization " + strings.Join([]string{header, token, inner, deep}, " ")})
		_, err := f.llm.Complete(t.Context(), ask("?"))
		if want := "flex 1 12345678 Authorization [redacted] [redacted] [redacted] [redacted]"; err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		f.llm.Probe(t.Context())
		for _, r := range f.Requests() {
			if r.Header.Get("X-Gateway") != "Token "+header || fmt.Sprint(r.Header["Authorization"]) != "[Basic x]" {
				t.Errorf("%s: got headers %v", r.Path, r.Header)
			}
		}
		for _, text := range []string{f.log.String(), f.llm.Status().LastError} {
			for _, hidden := range []string{header, token, inner} {
				if strings.Contains(text, hidden) {
					t.Errorf("%s is in %s", hidden, text)
				}
			}
		}
	})
}

// refuser answers requests with a schema with a refusal and others with an answer.
type refuser struct{ schemas *int }

func (r refuser) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	answer, status := `{"choices":[{"message":{"content":"{}"}}]}`, http.StatusOK
	if bytes.Contains(body, []byte("json_schema")) {
		*r.schemas++
		answer, status = `{"error":{"message":"json_schema is not supported just now"}}`, http.StatusBadRequest
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer)), Request: req}, err
}

// TestFallbackEnds: what an endpoint refused is tried again after some time.
func TestFallbackEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		schemas := 0
		c := llm.New(llm.Config{BaseURL: "http://x/v1", Model: "m"}, llm.Options{HTTPClient: &http.Client{Transport: refuser{&schemas}}})
		req := ask("?")
		req.Schema = schema
		var got []int
		for _, later := range []time.Duration{0, 9 * time.Minute, 2 * time.Minute} {
			time.Sleep(later)
			if _, err := c.Complete(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			got = append(got, schemas)
		}
		if fmt.Sprint(got) != "[2 2 4]" { // strict and loose
			t.Errorf("got %v requests with schemas, want two, none and two", got)
		}
	})
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

package llm_test

import (
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
)

// frames writes lines as server-sent events.
func frames(data ...string) string {
	return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n"
}

// TestRecordedAnswers replays answers in the forms that endpoints document or are known to send.
func TestRecordedAnswers(t *testing.T) {
	for _, row := range []struct {
		name, raw, kind string
		in, out         int
		responses       bool
	}{
		{name: "OpenAI", in: 19, out: 2, raw: frames(
			`{"id":"chatcmpl-A1","object":"chat.completion.chunk","created":1760000000,"model":"gpt-5-2025-08-07","service_tier":"default","system_fingerprint":null,"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"xY"}`,
			`{"id":"chatcmpl-A1","object":"chat.completion.chunk","created":1760000000,"model":"gpt-5-2025-08-07","service_tier":"default","system_fingerprint":null,"choices":[{"index":0,"delta":{"content":"Hello"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"p"}`,
			`{"id":"chatcmpl-A1","object":"chat.completion.chunk","created":1760000000,"model":"gpt-5-2025-08-07","service_tier":"default","system_fingerprint":null,"choices":[{"index":0,"delta":{"content":" there"},"logprobs":null,"finish_reason":null}],"usage":null}`,
			`{"id":"chatcmpl-A1","object":"chat.completion.chunk","created":1760000000,"model":"gpt-5-2025-08-07","service_tier":"default","system_fingerprint":null,"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}`,
			`{"id":"chatcmpl-A1","object":"chat.completion.chunk","created":1760000000,"model":"gpt-5-2025-08-07","service_tier":"default","system_fingerprint":null,"choices":[],"usage":{"prompt_tokens":19,"completion_tokens":2,"total_tokens":21,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}}`,
			`[DONE]`)},
		{name: "Azure", in: 9, out: 2, raw: frames(
			`{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"},"jailbreak":{"filtered":false,"detected":false}}}]}`,
			`{"choices":[{"content_filter_results":{},"delta":{"content":"","refusal":null,"role":"assistant"},"finish_reason":null,"index":0,"logprobs":null}],"created":1760000000,"id":"chatcmpl-B1","model":"gpt-4o-2024-11-20","object":"chat.completion.chunk","system_fingerprint":"fp_1"}`,
			`{"choices":[{"content_filter_results":{"hate":{"filtered":false,"severity":"safe"},"self_harm":{"filtered":false,"severity":"safe"}},"delta":{"content":"Hello there"},"finish_reason":null,"index":0,"logprobs":null}],"created":1760000000,"id":"chatcmpl-B1","model":"gpt-4o-2024-11-20","object":"chat.completion.chunk","system_fingerprint":"fp_1"}`,
			`{"choices":[{"content_filter_results":{},"delta":{},"finish_reason":"stop","index":0,"logprobs":null}],"created":1760000000,"id":"chatcmpl-B1","model":"gpt-4o-2024-11-20","object":"chat.completion.chunk","system_fingerprint":"fp_1"}`,
			`{"choices":[],"created":1760000000,"id":"chatcmpl-B1","model":"gpt-4o-2024-11-20","object":"chat.completion.chunk","usage":{"completion_tokens":2,"prompt_tokens":9,"total_tokens":11}}`,
			`[DONE]`)},
		{name: "Ollama", in: 26, out: 3, raw: frames(
			`{"id":"chatcmpl-17","object":"chat.completion.chunk","created":1760000000,"model":"llama3.2","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"Hello"},"finish_reason":null}]}`,
			`{"id":"chatcmpl-17","object":"chat.completion.chunk","created":1760000000,"model":"llama3.2","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":" there"},"finish_reason":null}]}`,
			`{"id":"chatcmpl-17","object":"chat.completion.chunk","created":1760000000,"model":"llama3.2","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop"}]}`,
			`{"id":"chatcmpl-17","object":"chat.completion.chunk","created":1760000000,"model":"llama3.2","system_fingerprint":"fp_ollama","choices":[],"usage":{"prompt_tokens":26,"completion_tokens":3,"total_tokens":29}}`,
			`[DONE]`)},
		{name: "vLLM with reasoning", in: 12, out: 40, raw: frames(
			`{"id":"chatcmpl-c1","object":"chat.completion.chunk","created":1760000000,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null}`,
			`{"id":"chatcmpl-c1","object":"chat.completion.chunk","created":1760000000,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"reasoning_content":"The user greets."},"logprobs":null,"finish_reason":null,"token_ids":null}]}`,
			`{"id":"chatcmpl-c1","object":"chat.completion.chunk","created":1760000000,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"content":"Hello there"},"logprobs":null,"finish_reason":null,"token_ids":null}]}`,
			`{"id":"chatcmpl-c1","object":"chat.completion.chunk","created":1760000000,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":"stop","stop_reason":null}]}`,
			`{"id":"chatcmpl-c1","object":"chat.completion.chunk","created":1760000000,"model":"Qwen/Qwen3-8B","choices":[],"usage":{"prompt_tokens":12,"total_tokens":52,"completion_tokens":40}}`,
			`[DONE]`)},
		{name: "llama.cpp", in: 43, out: 2, raw: frames(
			`{"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"created":1760000000,"id":"chatcmpl-d1","model":"gpt-3.5-turbo","system_fingerprint":"b6123-abc","object":"chat.completion.chunk"}`,
			`{"choices":[{"finish_reason":null,"index":0,"delta":{"content":"Hello there"}}],"created":1760000000,"id":"chatcmpl-d1","model":"gpt-3.5-turbo","system_fingerprint":"b6123-abc","object":"chat.completion.chunk"}`,
			`{"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"created":1760000000,"id":"chatcmpl-d1","model":"gpt-3.5-turbo","system_fingerprint":"b6123-abc","object":"chat.completion.chunk"}`,
			`{"choices":[],"created":1760000000,"id":"chatcmpl-d1","model":"gpt-3.5-turbo","system_fingerprint":"b6123-abc","object":"chat.completion.chunk","usage":{"completion_tokens":2,"prompt_tokens":43,"total_tokens":45},"timings":{"prompt_n":43,"prompt_ms":246.08,"predicted_n":2,"predicted_ms":0.5}}`,
			`[DONE]`)},
		{name: "Gemini", in: 5, out: 3, raw: frames(
			`{"choices":[{"delta":{"content":"Hello","role":"assistant"},"index":0}],"created":1760000000,"id":"abc","model":"gemini-2.5-flash","object":"chat.completion.chunk","usage":{"completion_tokens":1,"prompt_tokens":5,"total_tokens":6}}`,
			`{"choices":[{"delta":{"content":" there","role":"assistant"},"finish_reason":"stop","index":0}],"created":1760000000,"id":"abc","model":"gemini-2.5-flash","object":"chat.completion.chunk","usage":{"completion_tokens":3,"prompt_tokens":5,"total_tokens":8}}`,
			`[DONE]`)},
		{name: "Anthropic", in: 20, out: 5, raw: frames(
			`{"id":"msg_01","choices":[{"index":0,"delta":{"content":"","role":"assistant"}}],"created":1760000000,"model":"claude-sonnet-4-5","object":"chat.completion.chunk"}`,
			`{"id":"msg_01","choices":[{"index":0,"delta":{"content":"Hello there"}}],"created":1760000000,"model":"claude-sonnet-4-5","object":"chat.completion.chunk"}`,
			`{"id":"msg_01","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"created":1760000000,"model":"claude-sonnet-4-5","object":"chat.completion.chunk"}`,
			`{"id":"msg_01","choices":[],"created":1760000000,"model":"claude-sonnet-4-5","object":"chat.completion.chunk","usage":{"completion_tokens":5,"prompt_tokens":20,"total_tokens":25}}`,
			`[DONE]`)},
		{name: "OpenRouter", in: 1, out: 2, raw: ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n" + frames(
			`{"error":null,"id":"gen-1","provider":"X","model":"m","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":"Hello there"},"finish_reason":null,"native_finish_reason":null,"logprobs":null}]}`,
			`{"id":"gen-1","provider":"X","model":"m","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop","native_finish_reason":"stop","logprobs":null}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"cost":0.1}}`,
			`[DONE]`)},
		{name: "no DONE, no last line end, CRLF", raw: "event: message\r\nid: 7\r\nretry: 10\r\ndata:{\"choices\":[{\"index\":0,\r\ndata: \"delta\":{\"content\":\"Hello there\"}}]}\r\n\r\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}"},
		{name: "DONE without finish_reason", raw: frames(`{"choices":[{"index":0,"delta":{"content":"Hello there"}}]}`) + "data: [DONE]"},
		{name: "not streamed", kind: "application/json; charset=utf-8", in: 3, out: 4,
			raw: `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hello there"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`},
		{name: "not streamed, in parts", kind: "text/plain",
			raw: "\n" + ` {"choices":[{"message":{"content":[{"type":"text","text":"Hello"},{"type":"text","text":" there"}]}}]}`},
		{name: "Responses", responses: true, in: 37, out: 11, raw: strings.Join([]string{
			`event: response.created` + "\n" + `data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1760000000,"status":"in_progress","background":false,"error":null,"incomplete_details":null,"instructions":"Be brief.","max_output_tokens":null,"model":"gpt-5-2025-08-07","output":[],"parallel_tool_calls":true,"previous_response_id":null,"reasoning":{"effort":"medium","summary":null},"store":false,"temperature":1.0,"text":{"format":{"type":"text"},"verbosity":"medium"},"tool_choice":"auto","tools":[],"top_p":1.0,"truncation":"disabled","usage":null,"user":null,"metadata":{}}}`,
			`event: response.in_progress` + "\n" + `data: {"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","object":"response","status":"in_progress","error":null,"output":[]}}`,
			`event: response.output_item.added` + "\n" + `data: {"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}`,
			`event: response.output_item.added` + "\n" + `data: {"type":"response.output_item.added","sequence_number":4,"output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","content":[],"role":"assistant"}}`,
			`event: response.content_part.added` + "\n" + `data: {"type":"response.content_part.added","sequence_number":5,"item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}}`,
			`event: response.output_text.delta` + "\n" + `data: {"type":"response.output_text.delta","sequence_number":6,"item_id":"msg_1","output_index":1,"content_index":0,"delta":"Hello","logprobs":[],"obfuscation":"k"}`,
			`event: response.output_text.delta` + "\n" + `data: {"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_1","output_index":1,"content_index":0,"delta":" there","logprobs":[]}`,
			`event: response.output_text.done` + "\n" + `data: {"type":"response.output_text.done","sequence_number":8,"item_id":"msg_1","output_index":1,"content_index":0,"text":"Hello there","logprobs":[]}`,
			`event: response.completed` + "\n" + `data: {"type":"response.completed","sequence_number":11,"response":{"id":"resp_1","object":"response","created_at":1760000000,"status":"completed","error":null,"incomplete_details":null,"model":"gpt-5-2025-08-07","output":[{"id":"rs_1","type":"reasoning","summary":[]},{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"Hello there"}],"role":"assistant"}],"usage":{"input_tokens":37,"input_tokens_details":{"cached_tokens":0},"output_tokens":11,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":48},"metadata":{}}}`,
			``}, "\n\n")},
		{name: "Responses, not streamed", responses: true, kind: "application/json", in: 1, out: 2,
			raw: `{"id":"resp_1","object":"response","created_at":1,"status":"completed","error":null,"model":"m","output":[{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello there","annotations":[]}]}],"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := connect(t, func(c *llm.Config) {
				if row.responses {
					c.API = llm.APIResponses
				}
			})
			kind := row.kind
			if kind == "" {
				kind = "text/event-stream; charset=utf-8"
			}
			f.Answer(llmtest.Reply{Raw: row.raw, RawType: kind})
			got, err := f.llm.Complete(t.Context(), ask("?"))
			if err != nil || got.Text != "Hello there" {
				t.Fatalf("got %q, %v", got.Text, err)
			}
			if got.Usage.InputTokens != row.in || got.Usage.OutputTokens != row.out {
				t.Errorf("got %d tokens in and %d out, want %d and %d", got.Usage.InputTokens, got.Usage.OutputTokens, row.in, row.out)
			}
		})
	}
}

// TestRecordedErrors replays errors in the forms that endpoints document or are known to send.
func TestRecordedErrors(t *testing.T) {
	for _, row := range []struct {
		name, raw, kind string
		status          int
		responses       bool
		want            llm.Kind
		wantStatus      int
		message         string
	}{
		{name: "OpenAI key", status: 401, raw: `{"error":{"message":"Incorrect API key provided: ` + apiKey + `. You can find your API key at https://platform.openai.com.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`,
			want: llm.Refused, wantStatus: 401, message: "Incorrect API key provided: [redacted]."},
		{name: "OpenAI quota", status: 429, raw: `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`,
			want: llm.RateLimited, wantStatus: 429, message: "You exceeded your current quota"},
		{name: "Azure", status: 404, raw: `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`,
			want: llm.Refused, wantStatus: 404, message: "The API deployment for this resource does not exist."},
		{name: "Ollama", status: 404, raw: `{"error":{"message":"model \"nope\" not found, try pulling it first","type":"api_error","param":null,"code":null}}`,
			want: llm.Refused, wantStatus: 404, message: `model "nope" not found, try pulling it first`},
		{name: "older vLLM", status: 404, raw: `{"object":"error","message":"The model ` + "`x`" + ` does not exist.","type":"NotFoundError","param":null,"code":404}`,
			want: llm.Refused, wantStatus: 404, message: "The model `x` does not exist."},
		{name: "llama.cpp loading", status: 503, raw: `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`,
			want: llm.Server, wantStatus: 503, message: "Loading model"},
		{name: "llama.cpp in a stream", kind: "text/event-stream", raw: "error: {\"code\":500,\"message\":\"slot failed\",\"type\":\"server_error\"}\n\n",
			want: llm.Server, wantStatus: 500, message: "slot failed"},
		{name: "llama.cpp refusing in a stream", kind: "text/event-stream", raw: frames(`{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}`),
			want: llm.Refused, wantStatus: 400, message: "the request exceeds the available context size, try increasing it"},
		{name: "Gemini", status: 400, raw: `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}]`,
			want: llm.Refused, wantStatus: 400, message: "API key not valid. Please pass a valid API key."},
		{name: "Anthropic", status: 529, raw: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`,
			want: llm.Server, wantStatus: 529, message: "Overloaded"},
		{name: "Anthropic in a stream", kind: "text/event-stream", raw: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
			want: llm.RateLimited, message: "Overloaded"},
		{name: "FastAPI", status: 403, raw: `{"detail":"Forbidden"}`, want: llm.Refused, wantStatus: 403, message: "Forbidden"},
		{name: "gateway page", status: 502, kind: "text/html", raw: "<html>\n<h1>502 Bad Gateway</h1></html>", want: llm.Server, wantStatus: 502, message: "Bad Gateway"},
		{name: "Responses failed", responses: true, kind: "text/event-stream", raw: "event: response.failed\n" + frames(`{"type":"response.failed","sequence_number":3,"response":{"id":"resp_1","object":"response","status":"failed","error":{"code":"rate_limit_exceeded","message":"Slow down."},"output":[]}}`),
			want: llm.RateLimited, message: "Slow down."},
		{name: "Responses error event", responses: true, kind: "text/event-stream", raw: "event: error\n" + frames(`{"type":"error","code":"server_error","message":"Try again.","param":null,"sequence_number":1}`),
			want: llm.Server, message: "Try again."},
		{name: "Responses incomplete", responses: true, kind: "text/event-stream", raw: "event: response.incomplete\n" + frames(`{"type":"response.incomplete","response":{"id":"resp_1","object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}}`),
			want: llm.Truncated, message: "the answer reached the length limit"},
		{name: "Responses refusal", responses: true, kind: "text/event-stream", raw: "event: response.refusal.delta\n" + frames(`{"type":"response.refusal.delta","delta":"I cannot."}`, `{"type":"response.completed","response":{"id":"resp_1","object":"response","status":"completed","output":[]}}`),
			want: llm.Refused, message: "I cannot."},
		{name: "Responses queued", responses: true, kind: "application/json", raw: `{"id":"resp_1","object":"response","status":"queued","output":[]}`,
			want: llm.Cut, message: "the response is queued"},
		{name: "chat refusal", kind: "application/json", raw: `{"choices":[{"message":{"content":null,"refusal":"I cannot."},"finish_reason":"stop"}]}`,
			want: llm.Refused, message: "I cannot."},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := connect(t, func(c *llm.Config) {
				if row.responses {
					c.API = llm.APIResponses
				}
			})
			kind := row.kind
			if kind == "" {
				kind = "application/json"
			}
			f.Answer(llmtest.Reply{Raw: row.raw, RawType: kind, Status: row.status})
			got, err := f.llm.Complete(t.Context(), ask("?"))
			f.expect(t, got, err, row.want, row.wantStatus)
			if !strings.Contains(err.Error(), row.message) {
				t.Errorf("got %q, want %q in it", err, row.message)
			}
		})
	}
}

// TestAddresses: the base URL, its query and the key go where each kind of endpoint wants them.
func TestAddresses(t *testing.T) {
	for name, row := range map[string]struct{ base, path, header, value string }{
		"plain":          {"", "/v1/chat/completions", "Authorization", "Bearer " + apiKey},
		"trailing slash": {"/", "/v1/chat/completions", "Authorization", "Bearer " + apiKey},
		"Azure":          {"/openai/deployments/gpt-4o?api-version=2024-10-21", "/v1/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21", "Api-Key", apiKey},
		"Gemini":         {"beta/openai/", "/v1beta/openai/chat/completions", "Authorization", "Bearer " + apiKey},
	} {
		t.Run(name, func(t *testing.T) {
			f := connect(t, nil)
			f.cfg.BaseURL += row.base
			c := llm.New(f.cfg, llm.Options{HTTPClient: f.http})
			f.Answer(llmtest.Reply{Text: "ok"})
			if _, err := c.Complete(t.Context(), ask("?")); err != nil {
				t.Fatal(err)
			}
			r := f.Requests()[0]
			if r.Path != row.path || r.Header.Get(row.header) != row.value {
				t.Errorf("got %s with %s %q, want %s with %q", r.Path, row.header, r.Header.Get(row.header), row.path, row.value)
			}
			if len(r.Header.Values("Authorization"))+len(r.Header.Values("Api-Key")) != 1 {
				t.Errorf("got headers %v, want the key in one", r.Header)
			}
		})
	}
	f := connect(t, func(c *llm.Config) { c.APIKey = "" })
	f.Answer(llmtest.Reply{Text: "ok"})
	if _, err := f.llm.Complete(t.Context(), ask("?")); err != nil {
		t.Fatal(err)
	}
	if got := f.Requests()[0].Header.Values("Authorization"); len(got) != 0 {
		t.Errorf("got Authorization %q without a key, want none", got)
	}
}

package llm_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
)

// frames writes lines as server-sent events.
func frames(data ...string) string {
	return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n"
}

// events writes events in the form of the Messages API.
func events(data ...string) string {
	var out strings.Builder
	for _, d := range data {
		var event struct{ Type string }
		_ = json.Unmarshal([]byte(d), &event) // all are valid
		out.WriteString("event: " + event.Type + "\ndata: " + d + "\n\n")
	}
	return out.String()
}

// Parts of the recorded streams.
const (
	messageStart = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude-opus-4-8","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":100,"cache_read_input_tokens":1000,"output_tokens":1}}}`
	textStart    = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	hello        = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`
	there        = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" there"}}`
	blockStop    = `{"type":"content_block_stop","index":0}`
	endTurn      = `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}}`
	messageStop  = `{"type":"message_stop"}`
)

// TestRecordedAnswers replays answers in the forms that endpoints document or are known to send.
func TestRecordedAnswers(t *testing.T) {
	for _, row := range []struct {
		name, raw, kind, api string
		in, out              int
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
		{name: "Responses", api: llm.APIResponses, in: 37, out: 11, raw: strings.Join([]string{
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
		{name: "Responses, not streamed", api: llm.APIResponses, kind: "application/json", in: 1, out: 2,
			raw: `{"id":"resp_1","object":"response","created_at":1,"status":"completed","error":null,"model":"m","output":[{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello there","annotations":[]}]}],"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}`},
		{api: llm.APIAnthropic, name: "Messages, streamed", in: 1125, out: 15, raw: events(messageStart, textStart, `{"type":"ping"}`, hello, there, blockStop, endTurn, messageStop)},
		{api: llm.APIAnthropic, name: "Messages, without names", in: 1125, out: 15, raw: frames(messageStart, textStart, hello, there, blockStop, endTurn, messageStop)},
		{api: llm.APIAnthropic, name: "Messages, with thinking", in: 1125, out: 15, raw: events(messageStart,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"I need to greet. {\"error\":1}"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds"}}`,
			blockStop,
			`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"EmwKAhgB"}}`, `{"type":"content_block_stop","index":1}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"Hello"}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":" there"}}`,
			`{"type":"content_block_stop","index":2}`, endTurn, messageStop)},
		{api: llm.APIAnthropic, name: "Messages, an event of a later version", in: 1125, out: 15, raw: events(messageStart, `{"type":"weather","sky":"blue"}`, textStart, hello, there,
			`{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{}}}`, blockStop, endTurn, messageStop)},
		{api: llm.APIAnthropic, name: "Messages, not streamed", kind: "application/json", in: 12, out: 6,
			raw: `{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-4-8","content":[{"type":"thinking","thinking":"Greet.","signature":"x"},{"type":"text","text":"Hello there"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":12,"output_tokens":6}}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := connect(t, func(c *llm.Config) { c.API = row.api })
			f.Answer(llmtest.Reply{Raw: row.raw, RawType: cmp.Or(row.kind, "text/event-stream; charset=utf-8")})
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
	stopped := func(reason string) string {
		return events(messageStart, textStart, hello, blockStop, strings.Replace(endTurn, "end_turn", reason, 1), messageStop)
	}
	for _, row := range []struct {
		name, raw, kind, api string
		status               int
		want                 llm.Kind
		wantStatus           int
		message              string
		refusal              bool // of the model itself
		calls                int  // 0 is any
	}{
		{name: "OpenAI key", status: 401, raw: `{"error":{"message":"Incorrect API key provided: ` + apiKey + `. You can find your API key at https://platform.openai.com.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`,
			want: llm.Refused, wantStatus: 401, message: "Incorrect API key provided: [redacted].", calls: 1},
		{name: "OpenAI quota", status: 429, raw: `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`,
			want: llm.RateLimited, wantStatus: 429, message: "You exceeded your current quota"},
		{name: "Ollama", status: 404, raw: `{"error":{"message":"model \"nope\" not found, try pulling it first","type":"api_error","param":null,"code":null}}`,
			want: llm.Refused, wantStatus: 404, message: `model "nope" not found, try pulling it first`},
		{name: "older vLLM", status: 404, raw: `{"object":"error","message":"The model ` + "`x`" + ` does not exist.","type":"NotFoundError","param":null,"code":404}`,
			want: llm.Refused, wantStatus: 404, message: "The model `x` does not exist.", calls: 1},
		{name: "FastAPI", status: 403, raw: `{"detail":"Forbidden"}`, want: llm.Refused, wantStatus: 403, message: "Forbidden", calls: 1},
		{name: "llama.cpp in a stream", kind: "text/event-stream", raw: "error: {\"code\":500,\"message\":\"slot failed\",\"type\":\"server_error\"}\n\n",
			want: llm.Server, wantStatus: 500, message: "slot failed"},
		{name: "llama.cpp refusing in a stream", kind: "text/event-stream", raw: frames(`{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}`),
			want: llm.Refused, wantStatus: 400, message: "the request exceeds the available context size, try increasing it"},
		{name: "Gemini", status: 400, raw: `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}]`,
			want: llm.Refused, wantStatus: 400, message: "API key not valid. Please pass a valid API key.", calls: 1},
		{name: "Anthropic in a stream", kind: "text/event-stream", raw: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
			want: llm.RateLimited, message: "Overloaded"},
		{name: "context", status: 400, raw: `{"error":{"message":"This model's maximum context length is 4096 tokens","code":"context_length_exceeded"}}`,
			want: llm.Refused, wantStatus: 400, message: "maximum context length", calls: 1},
		{name: "policy", status: 400, raw: `{"error":{"message":"The response was filtered due to the prompt triggering our content management policy.","code":"content_filter"}}`,
			want: llm.Refused, wantStatus: 400, message: "was filtered", calls: 1},
		{name: "gateway page", status: 502, kind: "text/html", raw: "<html>\n<h1>502 Bad Gateway</h1></html>", want: llm.Server, wantStatus: 502, message: "Bad Gateway"},
		{name: "Responses failed", api: llm.APIResponses, kind: "text/event-stream", raw: "event: response.failed\n" + frames(`{"type":"response.failed","sequence_number":3,"response":{"id":"resp_1","object":"response","status":"failed","error":{"code":"rate_limit_exceeded","message":"Slow down."},"output":[]}}`),
			want: llm.RateLimited, message: "Slow down."},
		{name: "Responses error event", api: llm.APIResponses, kind: "text/event-stream", raw: "event: error\n" + frames(`{"type":"error","code":"server_error","message":"Try again.","param":null,"sequence_number":1}`),
			want: llm.Server, message: "Try again."},
		{name: "Responses incomplete", api: llm.APIResponses, kind: "text/event-stream", raw: "event: response.incomplete\n" + frames(`{"type":"response.incomplete","response":{"id":"resp_1","object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}}`),
			want: llm.Truncated, message: "the answer reached the length limit"},
		{name: "Responses refusal", api: llm.APIResponses, kind: "text/event-stream", raw: "event: response.refusal.delta\n" + frames(`{"type":"response.refusal.delta","delta":"I cannot."}`, `{"type":"response.completed","response":{"id":"resp_1","object":"response","status":"completed","output":[]}}`),
			want: llm.Refused, message: "I cannot.", refusal: true},
		{name: "Responses queued", api: llm.APIResponses, kind: "application/json", raw: `{"id":"resp_1","object":"response","status":"queued","output":[]}`,
			want: llm.Cut, message: "the response is queued"},
		{name: "chat refusal", kind: "application/json", raw: `{"choices":[{"message":{"content":null,"refusal":"I cannot."},"finish_reason":"stop"}]}`,
			want: llm.Refused, message: "I cannot.", refusal: true},
		{api: llm.APIAnthropic, name: "Messages, overloaded", status: 529, wantStatus: 529, raw: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`, want: llm.Server, message: "Overloaded", calls: 3},
		{api: llm.APIAnthropic, name: "Messages, rate limit", status: 429, wantStatus: 429, raw: `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit"}}`, want: llm.RateLimited, message: "rate limit", calls: 3},
		{api: llm.APIAnthropic, name: "Messages, key", status: 401, wantStatus: 401, raw: `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key ` + apiKey + `"}}`, want: llm.Refused, message: "invalid x-api-key [redacted]", calls: 1},
		{api: llm.APIAnthropic, name: "Messages, model", status: 404, wantStatus: 404, raw: `{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}`, want: llm.Refused, message: "model: claude-9", calls: 1},
		{api: llm.APIAnthropic, name: "Messages, size", status: 413, wantStatus: 413, raw: `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, want: llm.Refused, message: "maximum size", calls: 1},
		{api: llm.APIAnthropic, name: "Messages, credit", status: 400, wantStatus: 400, raw: `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, want: llm.Refused, message: "credit balance", calls: 1},
		{api: llm.APIAnthropic, name: "Messages, prompt", status: 400, wantStatus: 400, raw: `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, want: llm.Refused, message: "too long", calls: 1},
		{api: llm.APIAnthropic, name: "Messages, limit", status: 400, wantStatus: 400, raw: `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: 99999 > 64000, which is the maximum allowed number of output tokens for stub"}}`, want: llm.Refused, message: "maximum allowed", calls: 1},
		{api: llm.APIAnthropic, name: "Messages, overloaded in the stream", kind: "text/event-stream", raw: events(messageStart, textStart, hello) + "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", want: llm.RateLimited, message: "Overloaded", calls: 3},
		{api: llm.APIAnthropic, name: "Messages, length", kind: "text/event-stream", raw: stopped("max_tokens"), want: llm.Truncated, message: "length limit", calls: 1},
		{api: llm.APIAnthropic, name: "Messages, context", kind: "text/event-stream", raw: stopped("model_context_window_exceeded"), want: llm.Truncated, message: "length limit", calls: 1},
		{api: llm.APIAnthropic, name: "Messages, refusal", kind: "text/event-stream", raw: stopped("refusal"), want: llm.Refused, message: "the model declines", refusal: true, calls: 1},
		{api: llm.APIAnthropic, name: "Messages, refusal with words", want: llm.Refused, message: "That would harm.", refusal: true, calls: 1,
			kind: "text/event-stream", raw: events(messageStart, `{"type":"message_delta","delta":{"stop_reason":"refusal","stop_sequence":null,"stop_details":{"type":"refusal","category":"cyber","explanation":"That would harm."}},"usage":{"output_tokens":1}}`, messageStop)},
		{api: llm.APIAnthropic, name: "Messages, pause", kind: "text/event-stream", raw: stopped("pause_turn"), want: llm.Invalid, message: "pause_turn", calls: 1},
		{api: llm.APIAnthropic, name: "Messages, no end", kind: "text/event-stream", raw: events(messageStart, textStart, hello, blockStop), want: llm.Cut, message: "ended before", calls: 3},
		{api: llm.APIAnthropic, name: "Messages, nothing", kind: "text/event-stream", raw: events(messageStart, endTurn, messageStop), want: llm.Empty, message: "nothing", calls: 1},
		{api: llm.APIAnthropic, name: "Messages, another shape", kind: "text/event-stream", raw: events(`{"type":"message_start","message":7}`), want: llm.Invalid, message: "unexpected form", calls: 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := connect(t, func(c *llm.Config) { c.API = row.api })
			f.Answer(llmtest.Reply{Raw: row.raw, RawType: cmp.Or(row.kind, "application/json"), Status: row.status})
			req := ask("?")
			req.Schema = schema
			got, err := f.llm.Complete(t.Context(), req)
			f.expect(t, got, err, row.want, row.wantStatus)
			if !strings.Contains(err.Error(), row.message) || row.calls != 0 && got.Usage.Calls != row.calls {
				t.Errorf("got %v after %d calls, want %q after %d", err, got.Usage.Calls, row.message, row.calls)
			}
			if e := (*llm.Error)(nil); errors.As(err, &e) && e.Refusal != row.refusal {
				t.Errorf("got a refusal of the model: %t, want %t", e.Refusal, row.refusal)
			}
		})
	}
}

// TestOddStreams: what is no stream in name or in form is read for what it is.
func TestOddStreams(t *testing.T) {
	whole := `{"choices":[{"message":{"content":"Hello"}}]}`
	chunks := frames(`{"choices":[{"delta":{"content":"Hello"}}]}`, `[DONE]`)
	for _, row := range []struct{ name, kind, raw, want string }{
		{"JSON called a stream", "text/event-stream", whole, ""},
		{"stream called JSON", "application/json", chunks, ""},
		{"stream called text", "text/plain", chunks, ""},
		{"stream that begins with a comment", "text/plain", ":\n\n" + chunks, ""},
		{"stream that begins with an event", "text/plain", "event: message\n" + chunks, ""},
		{"byte order mark", "application/json", "\ufeff" + whole, ""},
		{"page called JSON", "application/json", "<html>", "HTML"},
		{"prose", "text/plain", "All models are busy.", "text/plain"},
		{"image", "image/png", "\x89PNG", "image/png"},
		{"empty stream", "text/event-stream", "", "nothing"},
		{"broken JSON", "application/json", `{"choices":[`, "not a completion"},
		{"list", "application/json", `[1]`, "not a completion"},
		{"no message", "application/json", `{"choices":[{}]}`, "not a completion"},
		{"event of another form", "text/event-stream", frames(`{"choices":7}`), "unexpected form"},
		{"array in the stream", "text/event-stream", frames(`[]`), "unexpected form"},
		{"large event in many lines", "text/event-stream", strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", 2000), "larger than"},
		{"large document", "application/json", `{"choices":[{"message":{"content":"` + strings.Repeat("x", 3<<20) + `"}}]}`, "larger than"},
		{"endless comments", "text/event-stream", ":\n" + strings.Repeat(": "+strings.Repeat("x", 1000)+"\n", 35_000), "larger than"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			f := connect(t, nil)
			f.Answer(llmtest.Reply{Raw: row.raw + " ", RawType: row.kind})
			began := time.Now()
			got, err := f.llm.Complete(t.Context(), ask("?"))
			if row.want == "" {
				if err != nil || got.Text != "Hello" {
					t.Errorf("got %q, %v, want the answer", got.Text, err)
				}
				return
			}
			f.expect(t, got, err, llm.Invalid, 0)
			if !strings.Contains(err.Error(), row.want) {
				t.Errorf("got error %q, want %q in it", err, row.want)
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func askWithTools() llm.Request {
	req := ask("weather?")
	req.Tools = []llm.Tool{
		{Name: "get_weather", Description: "Get the weather", Schema: []byte(`{"type":"object","properties":{"z":{"type":"string"},"a":{}}}`)},
		{Name: "get_time", Schema: []byte(`{"type":"object"}`)},
	}
	return req
}

// TestCalls: calls in parallel arrive whole and in order, streamed or not.
func TestCalls(t *testing.T) {
	apis(t, func(t *testing.T, api func(*llm.Config)) {
		for _, fault := range []llmtest.Fault{"", llmtest.Whole} {
			for _, text := range []string{"Let me see.", ""} {
				f := connect(t, api)
				f.Answer(llmtest.Reply{Text: text, Fault: fault, Calls: []llmtest.Call{{Name: "get_weather", Arguments: `{"z":"Rome"}`}, {Name: "get_time", Arguments: `{}`}, {Name: "get_weather", Arguments: `{"z":"Oslo"}`}}})
				got, err := f.llm.Complete(t.Context(), askWithTools())
				want := `[{get_weather {"z":"Rome"}} {get_time {}} {get_weather {"z":"Oslo"}}]`
				if err != nil || got.Text != text || fmt.Sprint(got.Calls) != want {
					t.Errorf("%q: got %q with calls %v, %v, want %s", fault, got.Text, got.Calls, err, want)
				}
				r := f.Requests()[0]
				if fmt.Sprint(r.Tools) != "[get_weather get_time]" || !strings.Contains(string(r.Body), `{"type":"object","properties":{"z":{"type":"string"},"a":{}}}`) {
					t.Errorf("got request %s, want both tools with their schemas as they stand", r.Body)
				}
			}
		}
	})
}

// TestRecordedCalls replays calls in the forms that endpoints document.
func TestRecordedCalls(t *testing.T) {
	for _, row := range []struct{ name, api, raw, kind string }{
		{name: "OpenAI, in parallel by index", raw: frames(
			`{"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"get_weather","arguments":""}}],"refusal":null},"finish_reason":null}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"z\":"}}]},"finish_reason":null}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"get_time","arguments":""}}]},"finish_reason":null}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]},"finish_reason":null}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"Rome\"}"}}]},"finish_reason":null}]}`,
			`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`) + "data: [DONE]\n\n"},
		{name: "Ollama, all of index 0", raw: frames(
			`{"choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_1","index":0,"type":"function","function":{"name":"get_weather","arguments":"{\"z\":\"Rome\"}"}}]},"finish_reason":null}]}`,
			`{"choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_2","index":0,"type":"function","function":{"name":"get_time","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`) + "data: [DONE]\n\n"},
		{name: "Gemini, without an index", raw: frames(
			`{"choices":[{"delta":{"role":"assistant","tool_calls":[{"function":{"arguments":"{\"z\":\"Rome\"}","name":"get_weather"},"id":"f1","type":"function"},{"function":{"arguments":"{}","name":"get_time"},"id":"f2","type":"function"}]},"finish_reason":"stop","index":0}]}`) + "data: [DONE]\n\n"},
		{name: "Responses", api: llm.APIResponses, raw: "event: response.output_item.added\n" + frames(
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"call_a","name":"get_weather","arguments":""}}`,
			`{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":0,"delta":"{\"z\":"}`,
			`{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":0,"arguments":"{\"z\":\"Rome\"}"}`,
			`{"type":"response.completed","response":{"id":"resp_1","object":"response","status":"completed","output":[{"type":"reasoning","id":"rs_1","summary":[]},{"type":"function_call","id":"fc_1","call_id":"call_a","name":"get_weather","arguments":"{\"z\":\"Rome\"}","status":"completed"},{"type":"function_call","id":"fc_2","call_id":"call_b","name":"get_time","arguments":"{}","status":"completed"}]}}`)},
		{name: "Anthropic", api: llm.APIAnthropic, raw: events(messageStart,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`, blockStop,
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{}}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":""}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"z\":"}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"\"Rome\"}"}}`,
			`{"type":"content_block_stop","index":1}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_2","name":"get_time","input":{}}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{}"}}`,
			`{"type":"content_block_stop","index":2}`, strings.Replace(endTurn, "end_turn", "tool_use", 1), messageStop)},
		{name: "compatible with Anthropic, input at the start", api: llm.APIAnthropic, raw: events(messageStart,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"get_weather","input":{"z":"Rome"}}}`, blockStop,
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t2","name":"get_time","input":{}}}`,
			`{"type":"content_block_stop","index":1}`, strings.Replace(endTurn, "end_turn", "tool_use", 1), messageStop)},
		{name: "compatible with Anthropic, input at the start and an empty one", api: llm.APIAnthropic, raw: events(messageStart,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"get_weather","input":{"z":"Rome"}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}`, blockStop,
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t2","name":"get_time","input":null}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}`,
			`{"type":"content_block_stop","index":1}`, strings.Replace(endTurn, "end_turn", "tool_use", 1), messageStop)},
		{name: "compatible with Anthropic, input twice", api: llm.APIAnthropic, raw: events(messageStart,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"get_weather","input":{"z":"Rome"}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"z\":\"Rome\"}"}}`, blockStop,
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t2","name":"get_time","input":{}}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}`,
			`{"type":"content_block_stop","index":1}`, strings.Replace(endTurn, "end_turn", "tool_use", 1), messageStop)},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := connect(t, func(c *llm.Config) { c.API = row.api })
			f.Answer(llmtest.Reply{Raw: row.raw, RawType: "text/event-stream"})
			got, err := f.llm.Complete(t.Context(), askWithTools())
			if want := `[{get_weather {"z":"Rome"}} {get_time {}}]`; err != nil || fmt.Sprint(got.Calls) != want {
				t.Errorf("got calls %v, %v, want %s", got.Calls, err, want)
			}
		})
	}
}

// TestCallsCutShort: calls of a response that did not end are none.
func TestCallsCutShort(t *testing.T) {
	apis(t, func(t *testing.T, api func(*llm.Config)) {
		for finish, kind := range map[string]llm.Kind{"length": llm.Truncated, "content_filter": llm.Refused} {
			f := connect(t, api)
			f.Answer(llmtest.Reply{Text: "x", Finish: finish, Calls: []llmtest.Call{{Name: "get_time", Arguments: "{}"}}})
			got, err := f.llm.Complete(t.Context(), askWithTools())
			if e := (*llm.Error)(nil); !errors.As(err, &e) || e.Kind != kind || len(got.Calls) > 0 {
				t.Errorf("%s: got %v with calls %v, want %s", finish, err, got.Calls, kind)
			}
		}
		f := connect(t, api)
		f.Answer(llmtest.Reply{Text: "x", Calls: make([]llmtest.Call, 300)})
		if _, err := f.llm.Complete(t.Context(), askWithTools()); err == nil || !strings.Contains(err.Error(), "more than 200 calls") {
			t.Errorf("got %v for 300 calls, want them refused", err)
		}
	})
}

// TestMessageRequest: what each model gets for the settings, and where the cache ends.
func TestMessageRequest(t *testing.T) {
	for _, row := range []struct {
		model, effort string
		limit         int
		want, not     []string
	}{
		{"claude-opus-4-8", "", 0, []string{`"max_tokens":16000`}, []string{"thinking", "effort", "temperature"}},
		{"claude-opus-4-8", "minimal", 0, []string{`"thinking":{"type":"adaptive"}`, `"effort":"low"`, `"max_tokens":16000`}, []string{"budget"}},
		{"claude-sonnet-5", "xhigh", 900, []string{`"thinking":{"type":"adaptive"}`, `"effort":"xhigh"`, `"max_tokens":900`}, []string{"budget"}},
		{"anthropic/claude-haiku-4-5-20251001", "medium", 0, []string{`"thinking":{"budget_tokens":8192,"type":"enabled"}`, `"max_tokens":16192`}, []string{"effort"}},
		{"claude-sonnet-4-5", "max", 4000, []string{`"thinking":{"budget_tokens":2000,"type":"enabled"}`, `"max_tokens":4000`}, []string{"effort"}},
		{"claude-3-7-sonnet-20250219", "high", 2000, []string{`"max_tokens":2000`}, []string{"thinking"}},
		{"claude-opus-5", "none", 0, []string{`"thinking":{"type":"disabled"}`}, []string{"effort"}},
	} {
		f := connect(t, func(c *llm.Config) {
			c.API, c.Model, c.ReasoningEffort, c.MaxTokens = llm.APIAnthropic, row.model, row.effort, row.limit
			c.Verbosity = "low"
		})
		f.Answer(llmtest.Reply{Text: "{}"})
		req := ask("?")
		req.Schema = schema
		req.Messages = append(req.Messages, llm.Message{Role: llm.RoleAssistant, Content: "what?"}, llm.Message{Role: llm.RoleUser, Content: "this"})
		if _, err := f.llm.Complete(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		r := f.Requests()[0]
		always := []string{`"system":[{"cache_control":{"type":"ephemeral"},"text":"Be brief.","type":"text"}]`, `"schema":` + string(schema.Strict), `"role":"assistant"`}
		for _, want := range append(always, row.want...) {
			if !strings.Contains(string(r.Body), want) {
				t.Errorf("%s %s: got %s, want %s in it", row.model, row.effort, r.Body, want)
			}
		}
		for _, not := range append(row.not, "verbosity") {
			if strings.Contains(string(r.Body), not) {
				t.Errorf("%s %s: got %s, want no %s in it", row.model, row.effort, r.Body, not)
			}
		}
		if r.Header.Get("Anthropic-Version") != "2023-06-01" || r.Header.Get("X-Api-Key") != apiKey || r.Header.Get("Authorization") != "" || r.Path != "/v1/messages" {
			t.Errorf("got %s with headers %v", r.Path, r.Header)
		}
	}
}

// TestMessageProbe: a refused key is found without a question.
func TestMessageProbe(t *testing.T) {
	for _, suffix := range []string{"", "/"} {
		f := connect(t, func(c *llm.Config) { c.API = llm.APIAnthropic; c.BaseURL += suffix })
		f.Answer(llmtest.Reply{Status: 401, Text: "invalid x-api-key"})
		f.llm.Probe(t.Context())
		if s := f.llm.Status(); s.State != llm.StateRejected || !strings.Contains(s.LastError, "invalid x-api-key") {
			t.Errorf("got %+v, want the key rejected", s)
		}
		if r := f.Requests(); len(r) != 1 || r[0].Path != "/v1/messages" || r[0].Header.Get("X-Api-Key") != apiKey {
			t.Errorf("got requests %+v", r)
		}
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

// recorded is a transport that answers every request with the same bytes.
type recorded struct {
	kind string
	body []byte
}

// RoundTrip implements http.RoundTripper.
func (r recorded) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {r.kind}}, Request: req,
		Body: io.NopCloser(bytes.NewReader(r.body)),
	}, nil
}

// FuzzResponse feeds arbitrary responses to each API: the result is an answer or one error, and never a part of an
// answer.
func FuzzResponse(f *testing.F) {
	for _, seed := range []string{
		events(messageStart, textStart, hello, there, blockStop, endTurn, messageStop),
		frames(messageStart, hello, endTurn), frames(`{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}`),
		frames(`{"type":"response.completed","response":{"output":[]}}`), `{"type":"message","content":[]}`, "event: \ndata: {}\n\n", "<html>", "",
		"event: error\ndata: x\n\n", `{"error":{"message":[]}}`, `[{"error":1}]`, "data: [DONE]",
		frames(`{"type":"response.completed","response":{"output":[{"content":[{"type":"output_text","text":"x"}]}]}}`),
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, body []byte, stream bool) {
		kind := "application/json"
		if stream {
			kind = "text/event-stream"
		}
		for _, api := range []string{llm.APIChat, llm.APIResponses, llm.APIAnthropic} {
			c := llm.New(llm.Config{BaseURL: "http://x/v1", Model: "m", API: api}, llm.Options{
				HTTPClient: &http.Client{Transport: recorded{kind, body}}, RetryDelay: time.Nanosecond,
			})
			got, err := c.Complete(t.Context(), ask("?"))
			var e *llm.Error
			if err == nil && got.Text == "" || err != nil && (!errors.As(err, &e) || got.Text != "") {
				t.Errorf("%s: got %q, %v", api, got.Text, err)
			}
			if err != nil && (strings.ContainsAny(err.Error(), "\r\n") || len(err.Error()) > 500) {
				t.Errorf("%s: got error %q, want one short line", api, err)
			}
		}
	})
}

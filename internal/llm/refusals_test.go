package llm_test

import (
	"slices"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
)

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

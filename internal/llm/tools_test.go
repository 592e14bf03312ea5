package llm_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
)

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

// TestToolsFallback: an endpoint that refuses a schema gets tools that take anything, and only requests with tools change.
func TestToolsFallback(t *testing.T) {
	apis(t, func(t *testing.T, api func(*llm.Config)) {
		f := connect(t, api)
		f.When(func(r llmtest.Request) bool {
			return strings.Contains(string(r.Body), `"properties":{"z"`) && llmtest.WithTools(r)
		},
			llmtest.Reply{Status: 400, Text: "Invalid schema for function 'get_weather': In context=('properties', 'a'), schema must have a 'type' key."})
		f.Answer(llmtest.Reply{Text: "{}"})
		structured := ask("?")
		structured.Schema = schema
		for _, req := range []llm.Request{askWithTools(), structured, askWithTools()} {
			if _, err := f.llm.Complete(t.Context(), req); err != nil {
				t.Fatal(err)
			}
		}
		if r := f.Requests(); len(r) != 4 || r[2].Form == "" || len(r[3].Tools) != 2 {
			t.Errorf("got %d requests, want 4: one refused, and plans as before", len(r))
		}
	})
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

package app_test

import (
	"bytes"
	"encoding/json"
	"regexp"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/agenticnexus/agenticnexus/router"
)

// toolResult is a result of tools/call.
type toolResult struct {
	Content           []json.RawMessage `json:"content"`
	StructuredContent json.RawMessage   `json:"structuredContent"`
	IsError           bool              `json:"isError"`
}

// text returns the text of the first block.
func (r *toolResult) text() string {
	var block struct{ Text string }
	if len(r.Content) > 0 {
		_ = json.Unmarshal(r.Content[0], &block) // then there is no text
	}
	return block.Text
}

// result reads a reply as a tool result.
func (c *client) result(r *reply) *toolResult {
	c.t.Helper()
	var result toolResult
	if r.Error != nil {
		c.t.Fatalf("got error %s, want a result", r.Error)
	}
	if err := json.Unmarshal(r.Result, &result); err != nil {
		c.t.Fatalf("result %s: %v", r.Result, err)
	}
	return &result
}

// structured reads the structuredContent of a result that is no error, and checks it against the
// outputSchema that the tool declares.
func (c *client) structured(tool string, r *reply, into any) *toolResult {
	c.t.Helper()
	result := c.result(r)
	if result.IsError {
		c.t.Fatalf("%s: got isError %s, want a result", tool, result.text())
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(result.StructuredContent))
	if err == nil {
		err = c.outputSchema(tool).Validate(v)
	}
	if err != nil {
		c.t.Errorf("structuredContent of %s: got %s, want it to conform to the outputSchema: %v", tool, result.StructuredContent, err)
	}
	if err := json.Unmarshal(result.StructuredContent, into); err != nil {
		c.t.Fatalf("structuredContent of %s: %v", tool, err)
	}
	return result
}

// answerOf reads the reply of process_query and checks what holds of all answers.
func (c *client) answerOf(r *reply) *router.AnswerContent {
	c.t.Helper()
	var a router.AnswerContent
	result := c.structured("process_query", r, &a)
	if a.Answer != result.text() {
		c.t.Errorf("answer: got %q and the text %q, want the same", a.Answer, result.text())
	}
	if !regexp.MustCompile("^[0-9a-f]{32}$").MatchString(a.TraceID) {
		c.t.Errorf("trace_id: got %q, want 32 hexadecimal digits", a.TraceID)
	}
	if total := a.Timings.Total; total <= 0 || a.Timings.Plan+a.Timings.Execute+a.Timings.Synthesize > total+1 {
		c.t.Errorf("timings: got %+v, want parts of a positive total", a.Timings)
	}
	return &a
}

// query calls process_query with the arguments, a raw object, and returns the answer.
func (c *client) query(arguments string) *router.AnswerContent {
	c.t.Helper()
	return c.answerOf(c.call("process_query", arguments, ""))
}

// refused calls a tool and returns the text of the error result that it must give.
func (c *client) refused(tool, arguments string) string {
	c.t.Helper()
	result := c.result(c.call(tool, arguments, ""))
	if !result.IsError {
		c.t.Errorf("%s %s: got a result %s, want isError", tool, arguments, result.text())
	}
	return result.text()
}

// list returns the definitions of tools/list by name.
func (c *client) list() map[string]json.RawMessage {
	c.t.Helper()
	var list struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(c.do("tools/list", "{}").Result, &list); err != nil {
		c.t.Fatalf("tools/list: %v", err)
	}
	tools := map[string]json.RawMessage{}
	for _, raw := range list.Tools {
		var def struct{ Name string }
		if err := json.Unmarshal(raw, &def); err != nil || tools[def.Name] != nil {
			c.t.Errorf("tools/list: got %s, want a tool with a name of its own", raw)
		}
		tools[def.Name] = raw
	}
	return tools
}

// outputSchema returns what a tool declares.
func (c *client) outputSchema(tool string) *jsonschema.Schema {
	c.t.Helper()
	if s := c.schemas[tool]; s != nil {
		return s
	}
	var def struct{ OutputSchema json.RawMessage }
	if err := json.Unmarshal(c.list()[tool], &def); err != nil {
		c.t.Fatalf("definition of %s: %v", tool, err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(def.OutputSchema))
	if err != nil {
		c.t.Fatalf("outputSchema of %s: %v", tool, err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("mem:"+tool, doc); err != nil {
		c.t.Fatal(err)
	}
	s, err := compiler.Compile("mem:" + tool)
	if err != nil {
		c.t.Fatalf("outputSchema of %s: %v", tool, err)
	}
	c.schemas[tool] = s
	return s
}

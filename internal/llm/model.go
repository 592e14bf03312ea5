package llm

import (
	"context"
	"encoding/json"
)

// Model completes prompts. [Client] is a Model over HTTP for concurrent requests. The sampling of an MCP client is
// another, for one query and one request at a time. An error means that there is no response; a partial response is
// an error.
type Model interface {
	Complete(ctx context.Context, req Request) (Response, error)
}

// Roles of a message.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// Message is one turn of a conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Request is one request to a model.
type Request struct {
	System   string    // instructions; stable texts first, so that providers can cache them
	Messages []Message // the turns, the newest last
	Schema   *Schema   // the form of the response; nil = free text
	Tools    []Tool    // tools that the model may call instead of writing; optional for a Model

	// OnDelta receives the response piece by piece, in the goroutine that called Complete. May be nil.
	OnDelta func(text string)
	// OnRestart is called when the stream broke and the request is repeated: discard the pieces so far. May be nil.
	OnRestart func()
}

// Schema is the JSON form that a response should have. It is not guaranteed: endpoints without schemas get only the
// prompt.
type Schema struct {
	Name   string
	Strict json.RawMessage // for strict modes: closed objects, every property required
	System string          // instructions for strict modes; "" = those of the request
	Loose  json.RawMessage // the same form for endpoints without a strict mode
}

// Response is a complete response.
type Response struct {
	Text  string
	Calls []Call // calls of the request's tools, in the model's order
	Usage Usage
}

// Usage is the cost of responses. The token counts are those of the endpoint, 0 if it sends none.
type Usage struct {
	Model        string `json:"model"`
	InputTokens  int    `json:"input_tokens"`
	OutputTokens int    `json:"output_tokens"`
	Calls        int    `json:"calls"` // requests sent, including failed ones
}

// Add adds the cost of other.
func (u *Usage) Add(other Usage) {
	if other.Model != "" {
		u.Model = other.Model
	}
	u.InputTokens += other.InputTokens
	u.OutputTokens += other.OutputTokens
	u.Calls += other.Calls
}

// Tool is a tool that a model may call.
type Tool struct {
	Name        string          // 1 to MaxToolName letters, digits, "_" and "-"
	Description string          // may be empty
	Schema      json.RawMessage // JSON Schema of the arguments, an object
	Plain       string          // the description for endpoints that refuse schemas; "" = Description
}

// MaxToolName is the length of the longest tool name that all endpoints accept.
const MaxToolName = 64

// Call is a tool call requested by a model. It is not validated.
type Call struct {
	Name      string
	Arguments string // as written by the model; should be a JSON object
}

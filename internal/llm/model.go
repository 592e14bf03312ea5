package llm

import (
	"context"
	"encoding/json"
)

// Model completes prompts. [Client] is a Model over HTTP for concurrent requests. The sampling of an MCP client is
// another, for one query and one request at a time. An error means that there is no response: a partial response is
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
	Tools    []Tool    // that the model may call instead of writing; a Model without tools ignores them

	// OnDelta gets the response piece by piece, from the goroutine that called Complete. May be nil.
	OnDelta func(text string)
	// OnRestart is called when the stream broke and the request is sent again: the pieces so far are void. May be nil.
	OnRestart func()
}

// Schema is the JSON form that a response should have. It is not a guarantee: endpoints without support for schemas get
// the prompt alone.
type Schema struct {
	Name   string
	Strict json.RawMessage // for strict modes: closed objects, every property required
	Loose  json.RawMessage // the same form for endpoints without a strict mode
}

// Response is a complete response.
type Response struct {
	Text  string
	Calls []Call // of the tools of the request, in the model's order
	Usage Usage
}

// Usage is the cost of responses. The token counts are those of the endpoint, 0 if it sends none.
type Usage struct {
	Model        string `json:"model"`
	InputTokens  int    `json:"input_tokens"`
	OutputTokens int    `json:"output_tokens"`
	Calls        int    `json:"calls"` // requests sent, including those that failed
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

package llm

import (
	"context"
	"encoding/json"
)

// Model answers prompts. Client is the one over HTTP, for any number of questions at once; a model that an MCP client
// lends by sampling is another, for one query and one question after the other. An error means that there is no answer:
// half an answer is never returned as a whole one.
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

// Request is one question to a model.
type Request struct {
	System   string    // instructions; stable texts first, so that providers can cache them
	Messages []Message // the turns, the newest last
	Schema   *Schema   // the form of the answer, or nil for free text

	// OnDelta gets the answer piece by piece, from the goroutine that called Complete. May be nil.
	OnDelta func(text string)
	// OnRestart says that the pieces so far are void: the stream broke and the question is asked anew. May be nil.
	OnRestart func()
}

// Schema is the JSON form an answer should have. It is a help for the model, not a guarantee: endpoints
// that know no schemas get the prompt alone.
type Schema struct {
	Name   string
	Strict json.RawMessage // within what strict modes accept: closed objects, every property required
	Loose  json.RawMessage // the same form for endpoints without a strict mode
}

// Response is a complete answer.
type Response struct {
	Text  string
	Usage Usage
}

// Usage is what answers cost. The token counts are the endpoint's, 0 where it tells none.
type Usage struct {
	Model        string `json:"model"`
	InputTokens  int    `json:"input_tokens"`
	OutputTokens int    `json:"output_tokens"`
	Calls        int    `json:"calls"` // requests sent, those that failed included
}

// Add puts what other cost on top.
func (u *Usage) Add(other Usage) {
	if other.Model != "" {
		u.Model = other.Model
	}
	u.InputTokens += other.InputTokens
	u.OutputTokens += other.OutputTokens
	u.Calls += other.Calls
}

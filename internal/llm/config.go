package llm

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/secret"
)

// APIs of a model endpoint.
const (
	APIChat      = "chat"      // POST {base_url}/chat/completions
	APIResponses = "responses" // POST {base_url}/responses
	APIAnthropic = "anthropic" // POST {base_url}/messages; a missing /v1 is added
)

// Config describes one model endpoint.
type Config struct {
	BaseURL string        `yaml:"base_url"`
	APIKey  secret.String `yaml:"api_key"`
	Model   string        `yaml:"model"`
	API     string        `yaml:"api"`     // chat, responses or anthropic
	Timeout time.Duration `yaml:"timeout"` // for one response, streamed or not

	// Settings of the model. A zero value leaves the choice to the endpoint.
	ReasoningEffort string                   `yaml:"reasoning_effort"`
	Verbosity       string                   `yaml:"verbosity"`
	MaxTokens       int                      `yaml:"max_tokens"` // of a response, thinking included
	Temperature     *float64                 `yaml:"temperature"`
	Headers         map[string]secret.String `yaml:"headers"` // of every request; override the client's
	Extra           Extra                    `yaml:"extra"`
}

// Extra are members merged into the body of every request, objects member by member. Its text contains only the
// names, because values may be secrets.
type Extra map[string]json.RawMessage

// String implements fmt.Stringer.
func (e Extra) String() string {
	return "[" + strings.Join(slices.Sorted(maps.Keys(e)), ", ") + "]"
}

// AnthropicURL is the base URL of Anthropic.
const AnthropicURL = "https://api.anthropic.com/v1"

// Default returns the documented defaults.
func Default() Config {
	return Config{BaseURL: "https://api.openai.com/v1", Model: "gpt-5", API: APIChat, Timeout: time.Minute}
}

// EmbeddingsConfig describes an endpoint for embeddings: POST {base_url}/embeddings.
type EmbeddingsConfig struct {
	BaseURL string        `yaml:"base_url"`
	APIKey  secret.String `yaml:"api_key"`
	Model   string        `yaml:"model"`
	Timeout time.Duration `yaml:"timeout"` // for all texts of one search
}

// DefaultEmbeddings returns the documented defaults.
func DefaultEmbeddings() EmbeddingsConfig {
	return EmbeddingsConfig{BaseURL: Default().BaseURL, Model: "text-embedding-3-small", Timeout: time.Second}
}

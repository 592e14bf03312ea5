package llm

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/pattern"
	"github.com/agenticnexus/agenticnexus/internal/redact"
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
	APIKey  redact.Secret `yaml:"api_key"`
	Model   string        `yaml:"model"`
	API     string        `yaml:"api"`     // chat, responses or anthropic
	Timeout time.Duration `yaml:"timeout"` // for one response, streamed or not

	// Settings of the model. A zero value leaves the choice to the endpoint.
	ReasoningEffort string                   `yaml:"reasoning_effort"`
	Verbosity       string                   `yaml:"verbosity"`
	MaxTokens       int                      `yaml:"max_tokens"` // of a response, thinking included
	Temperature     *float64                 `yaml:"temperature"`
	Headers         map[string]redact.Secret `yaml:"headers"` // of every request; override the client's
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
	APIKey  redact.Secret `yaml:"api_key"`
	Model   string        `yaml:"model"`
	Timeout time.Duration `yaml:"timeout"` // for all texts of one search
}

// DefaultEmbeddings returns the documented defaults.
func DefaultEmbeddings() EmbeddingsConfig {
	return EmbeddingsConfig{BaseURL: Default().BaseURL, Model: "text-embedding-3-small", Timeout: time.Second}
}

// Efforts returns the values of Config.ReasoningEffort. Each model supports some of them.
func Efforts() []string { return []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"} }

// Verbosities returns the values of Config.Verbosity.
func Verbosities() []string { return []string{"low", "medium", "high"} }

// MaxTemperature returns the highest temperature that endpoints of an API accept.
func MaxTemperature(api string) float64 {
	if api == APIAnthropic {
		return 1
	}
	return 2
}

// Members of a request that Extra must not contain: those that a Client writes, and those with a setting.
var (
	written = []string{"model", "messages", "input", "instructions", "system", "stream", "stream_options", "tools",
		"tool_choice", "response_format", "text.format", "output_config.format"}
	settable = []string{"temperature", "max_tokens", "reasoning_effort", "verbosity"}
)

// Refused returns the path of a member that Extra must not contain, and the reason; empty if there is none.
func (e Extra) Refused() (path, why string) {
	for _, path := range written {
		if e.has(path) {
			return path, "is written by the router; leave it out"
		}
	}
	for _, path := range settable {
		if e.has(path) {
			return path, "has its own setting: write " + path + " beside extra"
		}
	}
	return "", ""
}

// has reports whether there is a member at a path such as "text.format".
func (e Extra) has(path string) bool {
	name, rest, nested := strings.Cut(path, ".")
	raw, ok := e[name]
	if !ok || !nested {
		return ok
	}
	var inner Extra
	return json.Unmarshal(raw, &inner) == nil && inner.has(rest)
}

// object is a JSON object.
type object = map[string]any

// family returns the name of a model without its provider, in lower case.
func family(model string) string {
	return strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
}

// temperature returns the configured temperature or, for models known to work well with it, 0; nil means none is
// sent. Many reasoning models refuse a temperature or repeat themselves at 0.
func (c Config) temperature() *float64 {
	if c.Temperature == nil && steadyModel().MatchString(family(c.Model)) {
		return new(float64)
	}
	return c.Temperature
}

// steadyModel matches models that work well with a temperature of 0.
var steadyModel = pattern.New(`^(gpt-3\.5|gpt-4|chatgpt-4o|gemini-[12]|gemma|llama|mistral|mixtral|ministral|codestral)`)

// merge returns a request body with the members of Extra. Objects are merged member by member; anything else is
// replaced.
func (e Extra) merge(body object) (any, error) {
	if len(e) == 0 {
		return body, nil
	}
	members := make(map[string]json.RawMessage, len(body)+len(e))
	for name, value := range body {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("writing the request: %w", err)
		}
		members[name] = raw
	}
	mergeObjects(members, e)
	return members, nil
}

func mergeObjects(into, from map[string]json.RawMessage) {
	for name, value := range from {
		var before, more map[string]json.RawMessage
		if isObject(into[name]) && isObject(value) &&
			json.Unmarshal(into[name], &before) == nil && json.Unmarshal(value, &more) == nil {
			mergeObjects(before, more)
			value, _ = json.Marshal(before) // raw members always marshal
		}
		into[name] = value
	}
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

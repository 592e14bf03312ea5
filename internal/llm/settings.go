package llm

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

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

// settings returns the request members for the settings, in the API's spelling.
func (c Config) settings(d dialect) map[string]json.RawMessage {
	out := object{}
	if t := c.temperature(); t != nil && !d.noTemperature {
		out["temperature"] = *t
	}
	if c.MaxTokens > 0 && c.API != APIAnthropic {
		out[c.limitName(d)] = c.MaxTokens
	}
	effort, verbosity := c.ReasoningEffort != "" && !d.noEffort, c.Verbosity != "" && !d.noVerbosity
	switch {
	case c.API == APIAnthropic:
		c.messageSettings(out, d)
	case c.API == APIResponses:
		if effort {
			out["reasoning"] = object{"effort": c.ReasoningEffort}
		}
		if verbosity {
			out["text"] = object{"verbosity": c.Verbosity}
		}
	default:
		if effort {
			out["reasoning_effort"] = c.ReasoningEffort
		}
		if verbosity {
			out["verbosity"] = c.Verbosity
		}
	}
	return members(out)
}

// members encodes values that can always be encoded.
func members(values object) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(values))
	for name, v := range values {
		out[name], _ = json.Marshal(v)
	}
	return out
}

// limitName returns the name of the token limit. OpenAI's reasoning models refuse the older name, which other Chat
// Completions endpoints use.
func (c Config) limitName(d dialect) string {
	if c.API == APIResponses {
		return "max_output_tokens"
	}
	u, err := url.Parse(c.BaseURL)
	newer := err == nil && (u.Hostname() == "api.openai.com" || strings.HasSuffix(u.Hostname(), ".openai.azure.com"))
	if (newer || reasons(c.Model)) != d.otherLimit {
		return "max_completion_tokens"
	}
	return "max_tokens"
}

var (
	reasoningModel = regexp.MustCompile(`^(gpt-[5-9]|o[0-9])`)
	steadyModel    = regexp.MustCompile(`^(gpt-3\.5|gpt-4|chatgpt-4o|gemini-[12]|gemma|llama|mistral|mixtral|ministral|codestral)`)
)

// reasons reports whether the model is a reasoning model of OpenAI.
func reasons(model string) bool { return reasoningModel.MatchString(family(model)) }

// family returns the name of a model without its provider, in lower case.
func family(model string) string {
	return strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
}

// temperature returns the configured temperature or, for models known to work well with it, 0; nil means none is
// sent. Many reasoning models refuse a temperature or repeat themselves at 0.
func (c Config) temperature() *float64 {
	if c.Temperature == nil && steadyModel.MatchString(family(c.Model)) {
		return new(float64)
	}
	return c.Temperature
}

// merge merges from into a request body. Objects are merged member by member; anything else is replaced.
func merge(into, from map[string]json.RawMessage) {
	for name, value := range from {
		var before, more map[string]json.RawMessage
		if isObject(into[name]) && isObject(value) &&
			json.Unmarshal(into[name], &before) == nil && json.Unmarshal(value, &more) == nil {
			merge(before, more)
			value, _ = json.Marshal(before) // raw members always marshal
		}
		into[name] = slices.Clone(value)
	}
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

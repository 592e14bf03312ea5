package llm

import (
	"slices"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/pattern"
)

// form is how a request specifies the form of a response, from strictest to loosest.
type form int

const (
	formStrict form = iota // json_schema, strict
	formSchema             // json_schema
	formObject             // json_object
	formPrompt             // the prompt alone
)

// parameter is a part of a request that an endpoint may refuse.
type parameter int

const (
	paramTemperature parameter = iota
	paramLimitName             // the usual name of the token limit; without it, the other name is sent
	paramVerbosity
	paramEffort
	paramUsage // stream_options
	paramStreaming
	paramToolSchemas     // without them, tools accept any arguments, and their descriptions contain short schemas
	paramForm            // the next form is tried instead
	parameters       int = iota
)

// dialect is how a request is written for an endpoint. A refused parameter is left out in the next request.
type dialect struct {
	form    form
	without [parameters]bool
}

// requestKind is the kind of a request. An endpoint may refuse a parameter for one kind and accept it for another.
type requestKind struct{ form, tools bool }

// askAgain is how long a Client remembers a dialect that worked. Then it tries all parameters again, because
// endpoints are updated and a refusal may have had another cause.
const askAgain = 10 * time.Minute

// learned is a dialect that worked.
type learned struct {
	dialect dialect
	until   time.Time
}

// known returns the dialect for a kind of request.
func (c *Client) known(k requestKind) dialect {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l, ok := c.learned[k]; ok && time.Now().Before(l.until) {
		return l.dialect
	}
	return c.start()
}

// learn remembers the dialect that worked for a kind of request after the endpoint has refused another.
func (c *Client) learn(k requestKind, d dialect) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.learned[k] = learned{d, time.Now().Add(askAgain)}
}

// start returns the dialect with all parameters.
func (c *Client) start() (d dialect) {
	d.without[paramTemperature] = c.cfg.temperature() == nil
	d.without[paramEffort] = c.cfg.ReasoningEffort == ""
	d.without[paramVerbosity] = c.cfg.Verbosity == "" || c.cfg.API == APIAnthropic
	d.without[paramUsage] = c.cfg.API == APIAnthropic
	return d
}

// badTool matches messages that refuse one tool's definition. Other text in them, such as the names of the tool and
// its properties, says nothing about other parameters.
var badTool = pattern.New("invalid_function|function_declarations|input_schema|" +
	"(for|of|in) function ?['\"`:]|tools(\\[|\\.|['\"], ?)[0-9]")

// refusedBy are words of messages that refuse a parameter, in the order in which they are looked for.
var refusedBy = []struct {
	parameter parameter
	words     []string
}{
	{paramTemperature, []string{"temperature"}},
	{paramLimitName, []string{"max_completion_tokens"}},
	{paramVerbosity, []string{"verbosity"}},
	{paramEffort, []string{"reasoning", "effort", "thinking"}},
	{paramUsage, []string{"stream_options", "include_usage"}},
	{paramStreaming, []string{"streaming"}},
	{paramToolSchemas, []string{"tools", "function", "parameters", "schema"}},
	{paramForm, []string{"schema", "response_format", "text.format", "output_config", "strict", "grammar",
		"json_object", "structured"}},
	{paramStreaming, []string{"stream"}},
}

// unnamed are the parameters to leave out, one after another, if the message names none.
var unnamed = []parameter{paramForm, paramUsage, paramVerbosity, paramEffort, paramTemperature, paramStreaming}

// otherCause are words of messages that refuse a request whatever its parameters.
var otherCause = []string{"context_length", "context length", "context size", "content_policy", "content_filter",
	"content management policy", "api key", "api_key", "credit balance", "too long", "too large", "maximum allowed"}

// drop returns the parameter to leave out after a refusal. The message of the endpoint decides which. If it is about
// one tool, only the schemas of tools go. It reports false if the refusal has another cause or no parameter is left.
func (d dialect) drop(refusal *Error, asked requestKind) (parameter, bool) {
	if refusal.Kind != Refused || refusal.Status != 400 && refusal.Status != 422 {
		return 0, false
	}
	text := strings.ToLower(refusal.param + " " + refusal.Code + " " + refusal.Message)
	if asked.tools && badTool().MatchString(text) {
		return paramToolSchemas, !d.without[paramToolSchemas]
	}
	names := func(word string) bool { return strings.Contains(text, word) }
	if slices.ContainsFunc(otherCause, names) {
		return 0, false
	}
	for _, r := range refusedBy {
		if d.has(r.parameter, asked) && slices.ContainsFunc(r.words, names) {
			return r.parameter, true
		}
	}
	for _, p := range unnamed {
		if d.has(p, asked) {
			return p, true
		}
	}
	return 0, false
}

// has reports whether a request has a parameter.
func (d dialect) has(p parameter, asked requestKind) bool {
	switch p {
	case paramUsage:
		return !d.without[paramUsage] && !d.without[paramStreaming]
	case paramToolSchemas:
		return !d.without[paramToolSchemas] && asked.tools
	case paramForm:
		return asked.form && d.form < formPrompt
	}
	return !d.without[p]
}

// withoutParameter returns the dialect that leaves out a parameter. The Messages API has one form only.
func (c Config) withoutParameter(d dialect, p parameter) dialect {
	switch {
	case p != paramForm:
		d.without[p] = true
	case c.API == APIAnthropic:
		d.form = formPrompt
	default:
		d.form++
	}
	return d
}

// setting returns the configured setting that a parameter comes from; "" if there is none.
func (c Config) setting(p parameter) string {
	switch {
	case p == paramTemperature && c.Temperature != nil:
		return "temperature"
	case p == paramEffort:
		return "reasoning_effort"
	case p == paramVerbosity:
		return "verbosity"
	}
	return ""
}

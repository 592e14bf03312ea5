package llm

import (
	"regexp"
	"strings"
	"time"
)

// form is how a request specifies the form of a response, from strictest to loosest.
type form int

const (
	formStrict form = iota // json_schema, strict
	formSchema             // json_schema
	formObject             // json_object
	formPrompt             // the prompt alone
)

// dialect describes the parameters that an endpoint accepts. The zero value uses all; a refused parameter is left out
// in the next request.
type dialect struct {
	form          form
	whole         bool // no streaming
	noTemperature bool
	noEffort      bool
	noVerbosity   bool
	noUsage       bool // no stream_options
	otherLimit    bool // the other name of the token limit
	openTools     bool // tools accept any arguments; descriptions contain short schemas
	strictOnly    bool // no form between the strictest and the prompt alone is supported
}

// shape is the shape of a request. An endpoint may refuse a parameter for one shape and accept it for another.
type shape struct{ form, tools bool }

// askAgain is how long a Client remembers a dialect that worked. Then it tries all parameters again, because
// endpoints are updated and a refusal may have had another cause.
const askAgain = 10 * time.Minute

// learned is a dialect that worked.
type learned struct {
	dialect dialect
	until   time.Time
}

// known returns the dialect for a shape.
func (c *Client) known(s shape) dialect {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l, ok := c.learned[s]; ok && c.now().Before(l.until) {
		return l.dialect
	}
	return c.start()
}

// learn remembers the dialect that worked for a shape after the endpoint has refused another.
func (c *Client) learn(s shape, d dialect) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.learned[s] = learned{d, c.now().Add(askAgain)}
}

// start returns the dialect with all parameters.
func (c *Client) start() dialect {
	return dialect{
		noTemperature: c.cfg.temperature() == nil, noEffort: c.cfg.ReasoningEffort == "",
		noVerbosity: c.cfg.Verbosity == "" || c.cfg.API == APIAnthropic,
		noUsage:     c.cfg.API == APIAnthropic, strictOnly: c.cfg.API == APIAnthropic,
	}
}

// badTool matches messages that refuse one tool's definition. Other text in them, such as the names of the tool and
// its properties, says nothing about other parameters.
var badTool = regexp.MustCompile("invalid_function|function_declarations|input_schema|" +
	"(for|of|in) function ?['\"`:]|tools(\\[|\\.|['\"], ?)[0-9]")

// plainer returns the dialect to try after a refusal. The message of the endpoint decides which parameter goes. If it
// is about one tool, only the schemas of tools go. If it names nothing, the form goes first, step by step. It reports
// false if the refusal has another cause or no parameter is left.
func (d dialect) plainer(refusal *Error, asked shape) (dialect, bool) {
	if refusal.Kind != Refused || refusal.Status != 400 && refusal.Status != 422 {
		return d, false
	}
	text := strings.ToLower(refusal.param + " " + refusal.code + " " + refusal.Message)
	if asked.tools && badTool.MatchString(text) {
		again := !d.openTools
		d.openTools = true
		return d, again
	}
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	if has("context_length", "context length", "context size", "content_policy", "content_filter",
		"content management policy", "api key", "api_key", "credit balance", "too long", "too large", "maximum allowed") {
		return d, false
	}
	asksForm := asked.form && d.form < formPrompt
	switch {
	case !d.noTemperature && has("temperature"):
		d.noTemperature = true
	case !d.otherLimit && has("max_completion_tokens"):
		d.otherLimit = true
	case !d.noVerbosity && has("verbosity"):
		d.noVerbosity = true
	case !d.noEffort && has("reasoning", "effort", "thinking"):
		d.noEffort = true
	case !d.noUsage && !d.whole && has("stream_options", "include_usage"):
		d.noUsage = true
	case !d.whole && has("streaming"):
		d.whole = true
	case asked.tools && !d.openTools && has("tools", "function", "parameters", "schema"):
		d.openTools = true
	case asksForm && has("schema", "response_format", "text.format", "output_config", "strict", "grammar", "json_object",
		"structured"):
		d.loosen()
	case !d.whole && has("stream"):
		d.whole = true
	case asksForm:
		d.loosen()
	case !d.noUsage && !d.whole:
		d.noUsage = true
	case !d.noVerbosity:
		d.noVerbosity = true
	case !d.noEffort:
		d.noEffort = true
	case !d.noTemperature:
		d.noTemperature = true
	case !d.whole:
		d.whole = true
	default:
		return d, false
	}
	return d, true
}

// loosen selects the next form.
func (d *dialect) loosen() {
	if d.form++; d.strictOnly {
		d.form = formPrompt
	}
}

// drops returns the setting that next omits and d does not; "" if there is none.
func (d dialect) drops(next dialect) string {
	switch {
	case next.noTemperature && !d.noTemperature:
		return "temperature"
	case next.noEffort && !d.noEffort:
		return "reasoning_effort"
	case next.noVerbosity && !d.noVerbosity:
		return "verbosity"
	}
	return ""
}

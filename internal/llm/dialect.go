package llm

import (
	"regexp"
	"strings"
)

// form is how the form of an answer is asked for, from the firmest to the loosest.
type form int

const (
	formStrict form = iota // json_schema, strict
	formSchema             // json_schema
	formObject             // json_object
	formPrompt             // the prompt alone
)

// dialect is what an endpoint understands. The zero value asks for everything; an endpoint that refuses a
// parameter gets a plainer one. What worked is remembered, so that an endpoint is probed once.
type dialect struct {
	form          form
	whole         bool // no streaming
	noTemperature bool
	noUsage       bool // no stream_options
}

// startDialect leaves out what a model is known to refuse.
func startDialect(model string) dialect {
	return dialect{noTemperature: reasons(model)}
}

var reasoningModel = regexp.MustCompile(`^(gpt-[5-9]|o[0-9])`)

// reasons reports whether the model is one of those that refuse a temperature and max_tokens.
func reasons(model string) bool {
	return reasoningModel.MatchString(model[strings.LastIndexByte(model, '/')+1:])
}

// plainer returns the dialect to try after a refusal. The endpoint's words decide which part goes; where they
// tell nothing, the form goes first, step by step. It reports false when the refusal has another cause or
// nothing is left to leave out.
func (d dialect) plainer(refusal *Error, asksForm bool) (dialect, bool) {
	if refusal.Kind != Refused || refusal.Status != 400 && refusal.Status != 422 {
		return d, false
	}
	text := strings.ToLower(refusal.param + " " + refusal.code + " " + refusal.Message)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	if has("context_length", "context length", "context size", "content_policy", "content_filter",
		"content management policy", "api key", "api_key") {
		return d, false
	}
	asksForm = asksForm && d.form < formPrompt
	switch {
	case !d.noTemperature && has("temperature"):
		d.noTemperature = true
	case !d.noUsage && !d.whole && has("stream_options", "include_usage"):
		d.noUsage = true
	case !d.whole && has("streaming"):
		d.whole = true
	case asksForm && has("schema", "response_format", "text.format", "strict", "grammar", "json_object", "structured"):
		d.form++
	case !d.whole && has("stream"):
		d.whole = true
	case asksForm:
		d.form++
	case !d.noUsage && !d.whole:
		d.noUsage = true
	case !d.noTemperature:
		d.noTemperature = true
	case !d.whole:
		d.whole = true
	default:
		return d, false
	}
	return d, true
}

// known merges a dialect that worked into what was known: a question that asked for no form tells nothing
// about forms.
func (d dialect) known(before dialect, askedForm bool) dialect {
	if !askedForm {
		d.form = before.form
	}
	return d
}

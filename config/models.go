package config

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/secret"
)

// Environment variables with the key for an endpoint if the files give none. No other endpoint gets this key.
const (
	openAIKey    = "OPENAI_API_KEY"
	anthropicKey = "ANTHROPIC_API_KEY"
)

// keyOf returns the variable with the key for a model, "" if there is none.
func keyOf(api, baseURL string) string {
	switch {
	case api == llm.APIAnthropic && baseURL == llm.AnthropicURL:
		return anthropicKey
	case api != llm.APIAnthropic && baseURL == llm.Default().BaseURL:
		return openAIKey
	}
	return ""
}

// models completes and checks the models. The other models inherit unset values from the planner, but its key only
// for the same host.
func (d *decoder) models(s *Settings) {
	if s.LLM == nil {
		return
	}
	_, given := d.places["llm.planner"]
	if !given && s.LLM.Synthesizer == nil && (s.LLM.Embeddings != nil || s.LLM.UseClient) {
		s.LLM.Planner = llm.Config{}
	} else {
		d.provider("llm.planner", &s.LLM.Planner, llm.APIChat)
		d.model("llm.planner", &s.LLM.Planner)
	}
	if s.LLM.UseClient && s.LLM.Plans() {
		d.warn(d.places["llm.use_client"].at, "llm.use_client has no effect, because a model is named")
	}
	if s.LLM.Synthesizer != nil {
		d.synthesizer(s.LLM.Synthesizer, s.LLM.Planner)
	}
	if s.LLM.Embeddings != nil {
		d.embeddings(s.LLM.Embeddings, s.LLM.Planner)
	}
}

func (d *decoder) synthesizer(synth *llm.Config, planner llm.Config) {
	const path = "llm.synthesizer"
	unless(d, path, "base_url", &synth.BaseURL, planner.BaseURL)
	unless(d, path, "api", &synth.API, planner.API)
	unless(d, path, "model", &synth.Model, planner.Model)
	d.provider(path, synth, planner.API)
	unless(d, path, "timeout", &synth.Timeout, planner.Timeout)
	unless(d, path, "reasoning_effort", &synth.ReasoningEffort, planner.ReasoningEffort)
	unless(d, path, "verbosity", &synth.Verbosity, planner.Verbosity)
	unless(d, path, "max_tokens", &synth.MaxTokens, planner.MaxTokens)
	unless(d, path, "temperature", &synth.Temperature, planner.Temperature)
	if sameHost(synth.BaseURL, planner.BaseURL) { // secrets of the planner go to its host only
		unless(d, path, "api_key", &synth.APIKey, planner.APIKey)
		unless(d, path, "headers", &synth.Headers, planner.Headers)
		unless(d, path, "extra", &synth.Extra, planner.Extra)
	}
	d.model(path, synth)
}

// unless sets a setting that the files do not give.
func unless[T any](d *decoder, path, key string, setting *T, value T) {
	if !d.given(path, key) {
		*setting = value
	}
}

// provider checks the API of a model. If the API belongs to another provider than before, it sets that provider's
// defaults.
func (d *decoder) provider(path string, m *llm.Config, before string) {
	if d.given(path, "api") {
		d.oneOf(path+".api", m.API, llm.APIChat, llm.APIResponses, llm.APIAnthropic)
	}
	if d.failed[path+".api"] || (m.API == llm.APIAnthropic) == (before == llm.APIAnthropic) {
		return
	}
	if !d.given(path, "base_url") {
		m.BaseURL = llm.Default().BaseURL
		if m.API == llm.APIAnthropic {
			m.BaseURL = llm.AnthropicURL
		}
	}
	if !d.given(path, "model") {
		d.fail(d.modelPlace(path), path+".model", "is required, because api: %s belongs to another provider", m.API)
	}
}

func (d *decoder) embeddings(e *llm.EmbeddingsConfig, planner llm.Config) {
	const path = "llm.embeddings"
	usual := llm.DefaultEmbeddings()
	if !d.given(path, "base_url") {
		if e.BaseURL = planner.BaseURL; planner.API == llm.APIAnthropic || e.BaseURL == "" {
			e.BaseURL = usual.BaseURL
		}
	}
	if sameHost(e.BaseURL, planner.BaseURL) {
		unless(d, path, "api_key", &e.APIKey, planner.APIKey)
	}
	unless(d, path, "model", &e.Model, usual.Model)
	unless(d, path, "timeout", &e.Timeout, usual.Timeout)
	d.endpoint(path, &e.BaseURL, &e.APIKey, keyOf("", strings.TrimRight(e.BaseURL, "/")), e.Model, e.Timeout)
}

func (d *decoder) given(path, key string) bool {
	_, ok := d.places[path+"."+key]
	return ok
}

func (d *decoder) model(path string, m *llm.Config) {
	d.endpoint(path, &m.BaseURL, &m.APIKey, keyOf(m.API, strings.TrimRight(m.BaseURL, "/")), m.Model, m.Timeout)
	if d.given(path, "reasoning_effort") {
		d.oneOf(path+".reasoning_effort", m.ReasoningEffort, llm.Efforts()...)
	}
	if d.given(path, "verbosity") {
		d.oneOf(path+".verbosity", m.Verbosity, llm.Verbosities()...)
	}
	if d.given(path, "max_tokens") {
		d.atLeast(path+".max_tokens", m.MaxTokens, 1)
	}
	most := llm.MaxTemperature(m.API)
	if d.given(path, "temperature") && m.Temperature != nil && *m.Temperature > most {
		d.wrong(path+".temperature", "must be from 0 to %g, got %g", most, *m.Temperature)
	}
	if d.given(path, "verbosity") && m.API == llm.APIAnthropic {
		d.warn(d.places[path+".verbosity"].at, "%s.verbosity has no effect with api: anthropic", path)
	}
	if d.given(path, "headers") {
		d.modelHeaders(path+".headers", m)
	}
	if member, why := m.Extra.Refused(); why != "" && d.given(path, "extra") {
		at := path + ".extra." + member
		d.fail(d.places[at].at, at, "%s", why)
	}
}

// modelHeaders checks the headers for a model. Its key must be in one place only.
func (d *decoder) modelHeaders(path string, m *llm.Config) {
	checkHeaders(m.Headers, func(name, why string) { d.wrong(path+"."+name, "%s", why) })
	for name := range m.Headers {
		switch lower := strings.ToLower(name); {
		case ownHeader(lower), strings.HasPrefix(lower, "proxy-"):
			d.wrong(path+"."+name, "is written by the transport; leave it out")
		case m.APIKey != "" && slices.Contains([]string{"authorization", "api-key", "x-api-key"}, lower):
			d.wrong(path+"."+name, "carries the key; remove it or api_key")
		}
	}
}

// endpoint completes and checks the settings that all models have. variable may hold the key.
func (d *decoder) endpoint(
	path string, baseURL *string, key *secret.String, variable, model string, timeout time.Duration,
) {
	*baseURL = strings.TrimRight(*baseURL, "/")
	if why := checkURL(*baseURL); why != "" && d.given(path, "base_url") {
		d.wrong(path+".base_url", "%s", why)
	}
	if variable != "" && *key == "" && !d.given(path, "api_key") {
		value, _ := d.env(variable)
		if value == "" && !d.failed[path] { // a misspelt key may be that one
			d.fail(d.modelPlace(path), path, "has no api_key, and environment variable %s is not set", variable)
		}
		*key = secret.String(value)
	}
	if model == "" && d.given(path, "model") {
		d.wrong(path+".model", "must not be empty")
	}
	if d.given(path, "timeout") {
		d.above(path+".timeout", timeout)
	}
}

// modelPlace returns the position of the model at path, or else of the models.
func (d *decoder) modelPlace(path string) position {
	if p, ok := d.places[path]; ok {
		return p.at
	}
	return d.places["llm"].at
}

func sameHost(a, b string) bool {
	left, err := url.Parse(a)
	if err != nil {
		return false
	}
	right, err := url.Parse(b)
	return err == nil && left.Scheme == right.Scheme && strings.EqualFold(left.Host, right.Host)
}

package config

import (
	"net/url"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

// Environment variables with the keys for models.
const (
	anthropicKey = "ANTHROPIC_API_KEY"
	openAIKey    = "OPENAI_API_KEY"
)

// keyVariableOf returns the environment variable with the key for a model if the files give none, "" if there is none.
// No other endpoint gets this key.
func keyVariableOf(api, baseURL string) string {
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
func (c settingsCheck) models(s *Settings) {
	l := s.LLM
	if l == nil {
		return
	}
	if !c.given("llm.planner") && l.Synthesizer == nil && (l.Embeddings != nil || l.UseClient) {
		l.Planner = llm.Config{}
	} else {
		c.provider("llm.planner", &l.Planner, llm.APIChat)
		c.model("llm.planner", &l.Planner)
	}
	if l.UseClient && l.Plans() {
		c.warn("llm.use_client", "llm.use_client has no effect, because a model is named")
	}
	if l.Synthesizer != nil {
		c.synthesizer(l.Synthesizer, l.Planner)
	}
	if l.Embeddings != nil {
		c.embeddings(l.Embeddings, l.Planner)
	}
}

func (c settingsCheck) synthesizer(m *llm.Config, planner llm.Config) {
	const path = "llm.synthesizer"
	unless(c, path+".base_url", &m.BaseURL, planner.BaseURL)
	unless(c, path+".api", &m.API, planner.API)
	unless(c, path+".model", &m.Model, planner.Model)
	c.provider(path, m, planner.API)
	unless(c, path+".timeout", &m.Timeout, planner.Timeout)
	unless(c, path+".reasoning_effort", &m.ReasoningEffort, planner.ReasoningEffort)
	unless(c, path+".verbosity", &m.Verbosity, planner.Verbosity)
	unless(c, path+".max_tokens", &m.MaxTokens, planner.MaxTokens)
	unless(c, path+".temperature", &m.Temperature, planner.Temperature)
	if sameHost(m.BaseURL, planner.BaseURL) { // secrets of the planner go to its host only
		unless(c, path+".api_key", &m.APIKey, planner.APIKey)
		unless(c, path+".headers", &m.Headers, planner.Headers)
		unless(c, path+".extra", &m.Extra, planner.Extra)
	}
	c.model(path, m)
}

// unless sets a setting that the files do not give.
func unless[T any](c settingsCheck, path string, setting *T, value T) {
	if !c.given(path) {
		*setting = value
	}
}

// provider checks the API of a model. If the API belongs to another provider than before, it sets that provider's
// defaults.
func (c settingsCheck) provider(path string, m *llm.Config, before string) {
	if c.given(path + ".api") {
		c.oneOf(path+".api", m.API, llm.APIChat, llm.APIResponses, llm.APIAnthropic)
	}
	if (m.API == llm.APIAnthropic) == (before == llm.APIAnthropic) {
		return
	}
	usual := llm.Default().BaseURL
	if m.API == llm.APIAnthropic {
		usual = llm.AnthropicURL
	}
	unless(c, path+".base_url", &m.BaseURL, usual)
	if !c.given(path + ".model") {
		c.fail(path+".model", "is required, because api: %s belongs to another provider", m.API)
	}
}

func (c settingsCheck) embeddings(e *llm.EmbeddingsConfig, planner llm.Config) {
	const path = "llm.embeddings"
	usual := llm.DefaultEmbeddings()
	if planner.API != llm.APIAnthropic && planner.BaseURL != "" {
		usual.BaseURL = planner.BaseURL
	}
	unless(c, path+".base_url", &e.BaseURL, usual.BaseURL)
	if sameHost(e.BaseURL, planner.BaseURL) {
		unless(c, path+".api_key", &e.APIKey, planner.APIKey)
	}
	unless(c, path+".model", &e.Model, usual.Model)
	unless(c, path+".timeout", &e.Timeout, usual.Timeout)
	m := llm.Config{BaseURL: e.BaseURL, APIKey: e.APIKey, Model: e.Model, Timeout: e.Timeout}
	c.model(path, &m)
	e.BaseURL, e.APIKey = m.BaseURL, m.APIKey
}

// model completes and checks the model at a path. Inherited values were checked where they are given.
func (c settingsCheck) model(path string, m *llm.Config) {
	m.BaseURL = strings.TrimRight(m.BaseURL, "/")
	if why := checkURL(m.BaseURL); why != "" && c.given(path+".base_url") {
		c.fail(path+".base_url", "%s", why)
	}
	if variable := keyVariableOf(m.API, m.BaseURL); variable != "" && m.APIKey == "" && !c.given(path+".api_key") {
		value, _ := c.env(variable)
		if value == "" {
			c.fail(path, "has no api_key, and environment variable %s is not set", variable)
		}
		m.APIKey = redact.Secret(value)
	}
	if m.Model == "" && c.given(path+".model") {
		c.fail(path+".model", "must not be empty")
	}
	if m.Timeout <= 0 && c.given(path+".timeout") {
		c.fail(path+".timeout", "must be above zero, got %s", c.got(path+".timeout"))
	}
	if c.given(path + ".reasoning_effort") {
		c.oneOf(path+".reasoning_effort", m.ReasoningEffort, llm.Efforts()...)
	}
	if c.given(path + ".verbosity") {
		c.oneOf(path+".verbosity", m.Verbosity, llm.Verbosities()...)
		if m.API == llm.APIAnthropic {
			c.warn(path+".verbosity", "%s.verbosity has no effect with api: anthropic", path)
		}
	}
	if c.given(path + ".max_tokens") {
		c.atLeast(path+".max_tokens", m.MaxTokens, 1)
	}
	if most := llm.MaxTemperature(m.API); c.given(path+".temperature") && *m.Temperature > most {
		c.fail(path+".temperature", "must be from 0 to %g, got %g", most, *m.Temperature)
	}
	if c.given(path + ".headers") {
		c.modelHeaders(path+".headers", m)
	}
	if member, why := m.Extra.Refused(); why != "" && c.given(path+".extra") {
		c.fail(path+".extra."+member, "%s", why)
	}
}

// modelHeaders checks the headers for a model. Its key must be in one place only.
func (c settingsCheck) modelHeaders(path string, m *llm.Config) {
	c.headers(path, m.Headers)
	for name := range m.Headers {
		switch lower := strings.ToLower(name); {
		case ownHeader(lower), strings.HasPrefix(lower, "proxy-"):
			c.fail(path+"."+name, "is written by the transport; leave it out")
		case m.APIKey != "" && slices.Contains([]string{"authorization", "api-key", "x-api-key"}, lower):
			c.fail(path+"."+name, "carries the key; remove it or api_key")
		}
	}
}

func sameHost(a, b string) bool {
	left, err := url.Parse(a)
	if err != nil {
		return false
	}
	right, err := url.Parse(b)
	return err == nil && left.Scheme == right.Scheme && strings.EqualFold(left.Host, right.Host)
}

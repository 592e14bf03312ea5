package config

import (
	"cmp"
	"net/url"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/secret"
)

// openAIKey holds the key for llm.Default's endpoint where the files give none. No other endpoint is sent it.
const openAIKey = "OPENAI_API_KEY"

// models completes and checks the models. What the others leave open is as for the planner, except that the
// planner's key never goes to another host.
func (d *decoder) models(s *Settings) {
	if s.LLM == nil {
		return
	}
	if _, given := d.places["llm.planner"]; !given && s.LLM.Synthesizer == nil &&
		(s.LLM.Embeddings != nil || s.LLM.UseClient) {
		s.LLM.Planner = llm.Config{}
	} else {
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
	if !d.given(path, "base_url") {
		synth.BaseURL = planner.BaseURL
	}
	if !d.given(path, "api_key") && sameHost(synth.BaseURL, planner.BaseURL) {
		synth.APIKey = planner.APIKey
	}
	if !d.given(path, "model") {
		synth.Model = planner.Model
	}
	if !d.given(path, "api") {
		synth.API = planner.API
	}
	if !d.given(path, "timeout") {
		synth.Timeout = planner.Timeout
	}
	d.model(path, synth)
}

func (d *decoder) embeddings(e *llm.EmbeddingsConfig, planner llm.Config) {
	const path = "llm.embeddings"
	usual := llm.DefaultEmbeddings()
	if !d.given(path, "base_url") {
		e.BaseURL = cmp.Or(planner.BaseURL, usual.BaseURL)
	}
	if !d.given(path, "api_key") && sameHost(e.BaseURL, planner.BaseURL) {
		e.APIKey = planner.APIKey
	}
	if !d.given(path, "model") {
		e.Model = usual.Model
	}
	if !d.given(path, "timeout") {
		e.Timeout = usual.Timeout
	}
	d.endpoint(path, &e.BaseURL, &e.APIKey, e.Model, e.Timeout)
}

func (d *decoder) given(path, key string) bool {
	_, ok := d.places[path+"."+key]
	return ok
}

func (d *decoder) model(path string, m *llm.Config) {
	d.endpoint(path, &m.BaseURL, &m.APIKey, m.Model, m.Timeout)
	if d.given(path, "api") {
		d.oneOf(path+".api", m.API, llm.APIChat, llm.APIResponses)
	}
}

// endpoint completes and checks what all models have.
func (d *decoder) endpoint(path string, baseURL *string, key *secret.String, model string, timeout time.Duration) {
	*baseURL = strings.TrimRight(*baseURL, "/")
	if why := checkURL(*baseURL); why != "" && d.given(path, "base_url") {
		d.wrong(path+".base_url", "%s", why)
	}
	if *baseURL == llm.Default().BaseURL && *key == "" && !d.given(path, "api_key") {
		value, _ := d.env(openAIKey)
		if value == "" {
			d.fail(d.modelPlace(path), path, "has no api_key, and environment variable %s is not set", openAIKey)
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

// modelPlace returns where the model at path is given, or else where models are.
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

package console

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/agenticnexus/agenticnexus/internal/history"
	"github.com/agenticnexus/agenticnexus/internal/llm"
)

// modelView is a model on the page.
type modelView struct {
	For    string      `json:"for"` // planner, synthesizer or embeddings
	Model  string      `json:"model"`
	Host   string      `json:"host"` // of the endpoint
	API    string      `json:"api,omitempty"`
	Status *llm.Status `json:"status,omitempty"`
	Input  int         `json:"input_tokens"` // in the history
	Output int         `json:"output_tokens"`
	Calls  int         `json:"calls"`
	Cost   *float64    `json:"cost,omitempty"` // nil = the model has no price
}

// models lists the configured models with the tokens and cost of the queries in the history.
func (c *Console) models(w http.ResponseWriter, r *http.Request, v Viewer) {
	list := []modelView{}
	cfg := c.opts.Config.LLM
	if cfg.Plans() {
		health, err := c.opts.Router.Health(v.Visible, "")
		if err != nil {
			fail(w, http.StatusInternalServerError, err.Error())
			return
		}
		synthesizer := cfg.Planner
		if cfg.Synthesizer != nil {
			synthesizer = *cfg.Synthesizer
		}
		list = append(list,
			modelView{For: "planner", Model: cfg.Planner.Model, Host: host(cfg.Planner.BaseURL), API: cfg.Planner.API, Status: health.LLM.Planner},
			modelView{For: "synthesizer", Model: synthesizer.Model, Host: host(synthesizer.BaseURL), API: synthesizer.API,
				Status: health.LLM.Synthesizer})
	}
	if cfg != nil && cfg.Embeddings != nil {
		list = append(list, modelView{For: "embeddings", Model: cfg.Embeddings.Model, Host: host(cfg.Embeddings.BaseURL)})
	}
	c.opts.Journal.log().Each(func(e *history.Entry) bool {
		if !v.sees(e.Caller) {
			return true
		}
		for _, t := range e.Models {
			i := slices.IndexFunc(list, func(m modelView) bool { return m.For == t.For })
			if i < 0 || list[i].Model != t.Model {
				i = slices.IndexFunc(list, func(m modelView) bool { return m.For == t.For && m.Model == t.Model })
			}
			if i < 0 {
				list = append(list, modelView{For: t.For, Model: t.Model}) // of a client, or configured before
				i = len(list) - 1
			}
			list[i].Input += t.Input
			list[i].Output += t.Output
			list[i].Calls += t.Calls
		}
		return true
	})
	for i := range list {
		if price, ok := c.opts.Config.Prices[list[i].Model]; ok {
			cost := price.Of(list[i].Input, list[i].Output)
			list[i].Cost = &cost
		}
	}
	reply(w, map[string]any{"models": list, "client_models": cfg != nil && cfg.UseClient && !cfg.Plans()})
}

// host returns the only part of an endpoint's address that is shown; the rest may contain secrets.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

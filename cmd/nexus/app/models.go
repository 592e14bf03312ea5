package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/tape"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/internal/shapes"
	"github.com/agenticnexus/agenticnexus/router"
)

// models are the clients of the configured models. Each may be nil. One client may serve both purposes.
type models struct {
	planner     *llm.Client
	synthesizer *llm.Client
	embeddings  *llm.Embeddings
	config      *config.LLM
	observed    router.Observed
	tape        *tape.Tape
	finding     *search.Finder
	learned     atomic.Pointer[shapes.Store] // nil learns nothing
	private     func() []string              // the names of servers from whose results nothing is learned
}

// newModels makes the clients. Those of one provider share what is known about its availability.
func newModels(cfg *config.LLM, observed router.Observed, taped *tape.Tape, log *slog.Logger) *models {
	m := &models{config: cfg, observed: observed, tape: taped}
	if cfg.Plans() {
		breaker := llm.NewBreaker()
		m.planner = llm.New(cfg.Planner, llm.Options{Logger: log, Breaker: breaker})
		m.synthesizer = m.planner
		if own := cfg.Synthesizer; own != nil {
			if own.BaseURL != cfg.Planner.BaseURL {
				breaker = nil
			}
			m.synthesizer = llm.New(*own, llm.Options{Logger: log, Breaker: breaker})
		}
	}
	if cfg != nil && cfg.Embeddings != nil {
		m.embeddings = llm.NewEmbeddings(*cfg.Embeddings, nil)
	}
	return m
}

// finder makes the search over the tools, by meaning too if an embedding model is configured.
func (m *models) finder(log *slog.Logger) *search.Finder {
	opts := search.FinderOptions{Logger: log}
	if m.embeddings != nil {
		cfg := m.config.Embeddings
		taped := m.tape.Embedder(m.embeddings, cfg.Model)
		opts.Embedder, opts.Timeout = m.observed.Embedder(taped, cfg.Model, cfg.BaseURL), cfg.Timeout
		if m.tape != nil { // results must not depend on the speed of the endpoint
			opts.Timeout = max(opts.Timeout, tapedTime)
		}
	}
	m.finding = search.NewFinder(search.New(), opts)
	return m.finding
}

// tapedTime is the time that a search waits for vectors while a Tape records or replays.
const tapedTime = time.Minute

// observe returns the models, observed.
func (m *models) observe() (planner, synthesizer llm.Model) {
	o := m.observed
	planner = o.Model(m.tape.Model(m.planner, m.config.Planner.Model), m.config.Planner.Model, m.config.Planner.BaseURL)
	if own := m.config.Synthesizer; own != nil {
		return planner, o.Model(m.tape.Model(m.synthesizer, own.Model), own.Model, own.BaseURL)
	}
	return planner, planner
}

// status returns the availability of the models.
func (m *models) status() router.Models {
	if m.planner == nil {
		return router.Models{}
	}
	p, s := m.planner.Status(), m.synthesizer.Status()
	return router.Models{Planner: &p, Synthesizer: &s}
}

// clients returns each client once.
func (m *models) clients() []*llm.Client {
	switch {
	case m.planner == nil:
		return nil
	case m.planner == m.synthesizer:
		return []*llm.Client{m.planner}
	}
	return []*llm.Client{m.planner, m.synthesizer}
}

// probe checks whether the models can be reached and accept their keys.
func (m *models) probe(ctx context.Context) {
	var wg sync.WaitGroup
	for _, c := range m.clients() {
		wg.Go(func() { c.Probe(ctx) })
	}
	wg.Wait()
}

func (m *models) close() {
	m.finding.Close()
	for _, c := range m.clients() {
		c.Close()
	}
	if m.embeddings != nil {
		m.embeddings.Close()
	}
	m.learned.Load().Close()
}

// keepLearned opens the store of learned results. A Tape turns it off, because recorded prompts must not depend on it.
func (m *models) keepLearned(cfg *config.Config, log *slog.Logger) {
	if !cfg.Planner.Learn || m.tape != nil {
		return
	}
	folder, _ := cfg.StateFolder() // without one, nothing outlives the process
	m.learned.Swap(shapes.Open(folder, log)).Close()
}

// learn learns from the result of a step, unless it is or may show private data, or what one caller alone may see:
// names of fields can be data. It skips the results of tools with an outputSchema, unless they are no more than a text.
func (m *models) learn(t plan.Tool, carries []string, arguments, value json.RawMessage) {
	private := m.private()
	isPrivate := func(server string) bool { return slices.Contains(private, server) }
	switch {
	case isPrivate(t.Server) || slices.ContainsFunc(carries, isPrivate):
		return
	case plan.IsErrorText(value):
		return
	case len(t.OutputSchema) > 0 && !plan.IsText(value):
		value = nil
	}
	m.learned.Load().Learn(shaped(&t), arguments, value)
}

// hint returns what was learned about a tool, nothing if its server has become private or personal since.
func (m *models) hint(t *plan.Tool) (result string, arguments []string) {
	if slices.Contains(m.private(), t.Server) {
		return "", nil
	}
	h, _ := m.learned.Load().Hint(shaped(t))
	return h.Result, h.Arguments
}

func shaped(t *plan.Tool) shapes.Tool {
	return shapes.Tool{Server: t.Server, Name: t.Tool, Input: t.InputSchema}
}

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/cases"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/tape"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/telemetry"
	"github.com/agenticnexus/agenticnexus/router"
)

// asker connects a batch to its router, in this process or remote.
type asker struct {
	ask         batch.Ask
	judge       *batch.Judge // nil without a model
	price       batch.Price  // nil without prices
	fingerprint string
	mask        *redact.Masker // of results and of the judge's prompts
	close       func() error   // tells whether a recording is complete
}

// router opens the router that the flags name.
func (c *batchRunCmd) router(w *world, chosen []cases.Case) (*asker, error) {
	judged := slices.ContainsFunc(chosen, func(c cases.Case) bool { return c.Expect != nil && c.Expect.Judge != "" })
	var cfg config.Config
	var err error
	if c.Remote == "" || judged || len(c.Config) > 0 {
		if cfg, err = c.load(); err != nil {
			return nil, err
		}
	}
	t, err := c.tape(cfg)
	if err != nil {
		return nil, &exitError{exitUsage, err.Error()}
	}
	a := &asker{price: prices(cfg), mask: redact.NewMasker(cfg.Secrets())}
	a.judge = c.judge(cfg, t, a.mask)
	var b backend
	var done func()
	if c.Remote != "" {
		b, done, err = c.askRemote(w, a)
	} else {
		b, done, err = c.askLocal(w, a, t)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	a.close = func() error {
		done()
		return t.Close()
	}
	if err := a.prepare(w, b, cfg, c.Remote != ""); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

// tape opens the recording or replay that the flags name, or returns nil.
func (c *batchRunCmd) tape(cfg config.Config) (*tape.Tape, error) {
	switch {
	case c.Record != "":
		return tape.Record(c.Record, cfg.Secrets())
	case c.Replay != "":
		return tape.Replay(c.Replay, cfg.Secrets())
	}
	return nil, nil
}

// judge returns a judge that uses the configured model, or nil without a model.
func (c *batchRunCmd) judge(cfg config.Config, t *tape.Tape, mask *redact.Masker) *batch.Judge {
	if !cfg.LLM.Plans() {
		return nil
	}
	model := cfg.LLM.Planner
	if cfg.LLM.Synthesizer != nil {
		model = *cfg.LLM.Synthesizer
	}
	observed := router.Observed{Mask: mask}
	judge := observed.Model(t.Model(llm.New(model, llm.Options{}), model.Model), model.Model, model.BaseURL)
	return &batch.Judge{Model: judge, Votes: c.Judges}
}

// prices returns the configured prices, or nil if there are none.
func prices(cfg config.Config) batch.Price {
	if len(cfg.Prices) == 0 {
		return nil
	}
	return func(model string, input, output int) (cost float64, ok bool) {
		p, ok := cfg.Prices[model]
		return p.Of(input, output), ok
	}
}

// prepare waits for the servers and takes the fingerprint.
func (a *asker) prepare(w *world, b backend, cfg config.Config, remote bool) error {
	state, err := await(w.ctx, w, b, "")
	if err != nil {
		return err
	}
	if l, here := b.(local); here {
		if err := app.RecordTools(w.ctx, l.app); err != nil {
			return err
		}
	}
	missing, err := b.missing(w.ctx)
	if err != nil {
		return err
	}
	for _, m := range missing {
		fmt.Fprintln(w.stderr, "nexus: not available: "+firstLine(m, 300))
	}
	catalog, err := b.tools(w.ctx, "")
	if err != nil && !errors.Is(err, errNotOffered) {
		return err
	}
	decides := map[string]any{"catalog": catalog, "version": version}
	if remote {
		decides["version"] = state.Version
		var models []string
		for _, m := range []*llm.Status{state.LLM.Planner, state.LLM.Synthesizer} {
			if m != nil {
				models = append(models, m.Model)
			}
		}
		decides["models"] = models
	} else {
		decides["settings"], decides["servers"] = deciding(cfg)
	}
	raw, err := plainJSON(decides)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(raw)
	a.fingerprint = hex.EncodeToString(sum[:])
	return nil
}

// deciding returns the part of a configuration that affects answers, without the values of secrets.
func deciding(cfg config.Config) (config.Settings, []downstream.ServerConfig) {
	s, usual := cfg.Settings, config.Default()
	s.Listen, s.AllowedOrigins, s.TrustedProxies = "", nil, nil
	s.Auth, s.RateLimit, s.Shutdown, s.State = usual.Auth, usual.RateLimit, usual.Shutdown, ""
	s.Prices, s.Cluster = nil, usual.Cluster
	s.Log, s.Telemetry = usual.Log, telemetry.Config{}
	return s, cfg.Servers
}

// askLocal asks a router in this process, as nexus query does.
func (c *batchRunCmd) askLocal(w *world, a *asker, t *tape.Tape) (backend, func(), error) {
	c.calls = true
	running, done, err := c.openTaped(w, t)
	if err != nil {
		return nil, nil, err
	}
	a.ask = func(ctx context.Context, q batch.Question) (batch.Answer, error) {
		began := time.Now()
		content, err := askApp(ctx, running, q, c.Yes)
		if missed := t.Done(ctx); missed != nil {
			err = &batch.Failure{Reason: reasonNotRecorded, Err: missed}
		}
		return batch.Answer{Content: content, Took: time.Since(began)}, err
	}
	return local{running}, done, nil
}

func askApp(ctx context.Context, a *app.App, question batch.Question, yes bool) (json.RawMessage, error) {
	q := router.Query{
		Text: question.Query, Servers: question.Servers, Plan: question.Plan, MaxRounds: question.MaxRounds,
		Timeout: question.Limit, Approved: yes,
	}
	ctx, cancel := context.WithTimeout(ctx, question.Bound())
	defer cancel()
	var err error
	if q.Context, err = conversation(question.Context); err != nil {
		return nil, err
	}
	record, err := a.Router().Query(ctx, q)
	if refusal, ok := errors.AsType[*router.Refusal](err); ok {
		return nil, &batch.Failure{Reason: reasonRefused, Err: errors.New(refusal.Text)}
	}
	if err != nil {
		return nil, err
	}
	return plainJSON(record.Content(true))
}

// conversation reads the context of a case: text or messages.
func conversation(raw json.RawMessage) (turns []llm.Message, err error) {
	var text string
	switch {
	case raw == nil:
	case json.Unmarshal(raw, &text) == nil:
		turns = []llm.Message{{Role: llm.RoleUser, Content: text}}
	default:
		if err = json.Unmarshal(raw, &turns); err != nil {
			err = fmt.Errorf("reading the context: %w", err)
		}
	}
	return turns, err
}

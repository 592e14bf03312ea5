package search

import (
	"context"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/short"
)

// Refresh starts to request the vectors of tools without one. It does not wait. If not all vectors fit, the tools
// indexed last have none, and one warning is logged. After a failure it does nothing for half a minute; tools with
// vectors are still ranked by them.
func (f *Finder) Refresh() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.opts.Embedder == nil || f.work != nil || time.Now().Before(f.rest) {
		return
	}
	batch := f.batch()
	if len(batch) == 0 {
		return
	}
	work := make(chan struct{})
	f.work, f.began = work, time.Now()
	f.done.Go(func() {
		defer close(work)
		for len(batch) > 0 {
			batch = f.fill(batch)
		}
	})
}

// fill requests the vectors of a batch of tools and returns the next batch; empty at the end.
func (f *Finder) fill(batch []unknown) []unknown {
	texts := make([]string, len(batch))
	for i, u := range batch {
		texts[i] = u.tool.text(readSchema(u.tool.InputSchema).names)
	}
	ctx, cancel := context.WithTimeout(f.ctx, batchTime)
	defer cancel()
	answer, err := f.opts.Embedder.Embed(ctx, texts)
	if err == nil {
		vectors := make([]vector, len(answer))
		for i, v := range answer {
			vectors[i] = quantize(v)
		}
		f.index.learn(batch, vectors)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil && f.ctx.Err() == nil {
		if f.rest.IsZero() {
			f.opts.Logger.Warn("Some tools are ranked by words alone: their vectors are unavailable", "error", err,
				"pause", embedPause)
		}
		f.rest = time.Now().Add(embedPause)
	}
	if err == nil {
		f.rest = time.Time{}
		if batch = f.batch(); len(batch) > 0 {
			return batch
		}
	}
	f.work = nil
	return nil
}

// batch returns the next tools without vectors. The caller holds f.mu.
func (f *Finder) batch() []unknown {
	if f.ctx.Err() != nil {
		return nil
	}
	tools, full := f.index.unknowns(embedBatch)
	if full && !f.full {
		f.opts.Logger.Warn("Some tools are ranked by words alone: there is no room for their vectors", "bytes", maxVectorBytes)
	}
	f.full = full
	return tools
}

// await waits for the running refresh, at most until the search time limit after the refresh began.
func (f *Finder) await(ctx context.Context) {
	f.mu.Lock()
	work, until := f.work, f.began.Add(f.opts.Timeout)
	f.mu.Unlock()
	if work == nil {
		return
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	select {
	case <-work:
	case <-ctx.Done():
	}
}

// text returns the text of a tool to embed.
func (t Tool) text(params []string) string {
	parts := []string{t.Server + " " + t.Name}
	for _, s := range []string{t.Title, t.Description, strings.Join(params, ", ")} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return short.Prefix(strings.Join(parts, ". "), maxEmbedded)
}

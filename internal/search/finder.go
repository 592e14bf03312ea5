package search

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/lru"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

// Embedder turns texts into vectors; texts of similar meaning have similar directions. It returns one vector for each
// text, in their order and all of one length, and allows concurrent use.
type Embedder interface {
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// FinderOptions are the settings of a Finder.
type FinderOptions struct {
	Embedder Embedder      // nil ranks by words only
	Timeout  time.Duration // for all texts of one search; 0 is three seconds
	Logger   *slog.Logger  // nil discards
}

// Finder searches an Index. If it has an Embedder, it orders the best hits by words and meaning: by a convex
// combination of both scores (Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS
// 2023), which keeps their distances, unlike a fusion of ranks.
//
// A tool is embedded when it is first among the best hits of a question, in batches. The Finder keeps the vectors, so
// a later question costs one embedding, its own, and a changed list of tools those of the changed tools. When the
// Embedder fails, the order is that of words, and the Embedder is not used for half a minute. A Finder allows
// concurrent use and has no goroutine.
type Finder struct {
	index   *Index
	opts    FinderOptions
	vectors *lru.Cache[textKey, vector]

	dimensions atomic.Int64 // of the vectors

	mu      sync.Mutex
	failing bool
	resume  time.Time // when a failing Embedder is used again
}

const (
	rerankDepth   = 50   // hits by words that are reordered
	meaningWeight = 0.4  // of meaning against words; see docs/evaluation.md
	embedBatch    = 32   // texts of one request; the results of complete requests are kept
	maxAspects    = 8    // clauses of a question that are embedded, too
	maxEmbedded   = 2000 // bytes of a text that are embedded
	embedPause    = 30 * time.Second
)

// NewFinder returns a Finder over an index, which it never changes.
func NewFinder(index *Index, opts FinderOptions) *Finder {
	if opts.Timeout <= 0 {
		opts.Timeout = 3 * time.Second
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Finder{index: index, opts: opts, vectors: lru.New[textKey, vector](math.MaxInt, maxVectorBytes)}
}

// Index returns the index that is searched.
func (f *Finder) Index() *Index { return f.index }

// Search returns the tools that fit a question best, best first. It never fails: without vectors in time the order is
// that of [Index.Search].
func (f *Finder) Search(ctx context.Context, question string, opts SearchOptions) []Hit {
	if f.opts.Embedder == nil || !f.available() {
		return f.index.Search(question, opts)
	}
	limit := opts.limit()
	opts.Limit = max(limit, rerankDepth)
	hits := f.index.Search(question, opts)
	if len(hits) > 1 {
		f.byMeaning(ctx, question, hits)
	}
	return hits[:min(limit, len(hits))]
}

// byMeaning orders hits by words and meaning, unless the Embedder fails.
func (f *Finder) byMeaning(ctx context.Context, question string, hits []Hit) {
	aspects := aspectsOf(question)
	var texts []passage
	for _, a := range aspects {
		texts = append(texts, passage{keyOf(a), func() string { return a }})
	}
	for _, h := range hits {
		texts = append(texts, passage{h.text, func() string { return h.tool.text(readSchema(h.tool.InputSchema).names) }})
	}
	limited, cancel := context.WithTimeout(ctx, f.opts.Timeout)
	defer cancel()
	vectors, err := f.embed(limited, texts)
	if err != nil {
		f.failed(ctx, err)
		return
	}
	f.recovered()
	blend(hits, vectors[:len(aspects)], vectors[len(aspects):])
}

// blend orders hits by a convex combination of both scores, each scaled to 0..1 within this search.
func blend(hits []Hit, question, tools []vector) {
	similarity := make([]float64, len(hits))
	for i := range hits {
		similarity[i] = question[0].cosine(tools[i])
		for _, aspect := range question[1:] {
			similarity[i] = max(similarity[i], aspect.cosine(tools[i]))
		}
	}
	highest, lowest, best := slices.Max(similarity), slices.Min(similarity), hits[0].Score
	for i := range hits {
		hits[i].Score *= (1 - meaningWeight) / best
		if highest > lowest {
			hits[i].Score += meaningWeight * (similarity[i] - lowest) / (highest - lowest)
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
}

// aspectsOf returns the texts of a question that are compared with tools: the whole, and its clauses if it has several.
func aspectsOf(question string) []string {
	aspects := []string{short.Prefix(question, maxEmbedded)}
	if clauses := Clauses(aspects[0]); len(clauses) > 1 {
		aspects = append(aspects, clauses[:min(len(clauses), maxAspects)]...)
	}
	return aspects
}

// passage is a text to embed. Its text is made only if its vector is unknown.
type passage struct {
	key  textKey
	text func() string
}

// text returns the text of a tool for embeddings.
func (t Tool) text(params []string) string {
	parts := []string{t.Server + " " + t.Name}
	for _, s := range []string{t.Title, t.Description, strings.Join(params, ", ")} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return short.Prefix(strings.Join(parts, ". "), maxEmbedded)
}

// embed returns the vectors of texts. It requests only unknown ones.
func (f *Finder) embed(ctx context.Context, texts []passage) ([]vector, error) {
	out := make([]vector, len(texts))
	var unknown []int
	for i, text := range texts {
		v, ok := f.vectors.Get(text.key)
		if !ok {
			unknown = append(unknown, i)
		}
		out[i] = v
	}
	for batch := range slices.Chunk(unknown, embedBatch) {
		ask := make([]string, len(batch))
		for j, i := range batch {
			ask[j] = texts[i].text()
		}
		answer, err := f.opts.Embedder.Embed(ctx, ask)
		if err != nil {
			return nil, err
		}
		for j, i := range batch {
			out[i] = quantize(answer[j])
			f.keep(texts[i].key, out[i])
		}
	}
	return out, nil
}

// keep keeps the vector of a text. A new length means that the model behind the endpoint has changed.
func (f *Finder) keep(key textKey, v vector) {
	if n := int64(len(v.parts)); f.dimensions.Swap(n) != n {
		f.vectors.Clear()
	}
	f.vectors.Put(key, v, len(v.parts))
}

// available reports whether the Embedder may be used.
func (f *Finder) available() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.failing || !time.Now().Before(f.resume)
}

// failed records a failure of the Embedder, unless the caller has cancelled. Consecutive failures are one warning.
func (f *Finder) failed(caller context.Context, err error) {
	if caller.Err() != nil {
		return
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = errSlow
	}
	f.mu.Lock()
	first := !f.failing
	f.failing, f.resume = true, time.Now().Add(embedPause)
	f.mu.Unlock()
	if first {
		f.opts.Logger.WarnContext(caller, "Ranking tools by words alone: the embedding endpoint failed",
			"error", err, "pause", embedPause)
	}
}

var errSlow = errors.New("no embeddings in time")

func (f *Finder) recovered() {
	f.mu.Lock()
	was := f.failing
	f.failing = false
	f.mu.Unlock()
	if was {
		f.opts.Logger.Info("Ranking tools by meaning again")
	}
}

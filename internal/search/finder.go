package search

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/lru"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

// Embedder converts texts to vectors; texts of similar meaning have similar directions. It returns one vector per
// text, in order and of equal length, and is safe for concurrent use.
type Embedder interface {
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// FinderOptions are the settings of a Finder.
type FinderOptions struct {
	Embedder Embedder      // nil ranks by words only
	Timeout  time.Duration // limit of a search's wait for vectors; 0 means one second
	Logger   *slog.Logger  // nil discards
}

// Finder searches an Index. With an Embedder, a search has two first stages, by words and by meaning, and orders
// their hits by a convex combination of both scores (Bruch, Gai and Ingber, "An Analysis of Fusion Functions for
// Hybrid Retrieval", TOIS 2023), which preserves score distances, unlike rank fusion.
//
// The vectors of tools are requested in batches once the tools are indexed, and are kept as long as the tools; see
// [Finder.Refresh]. The vectors of a question take one request unless they are cached. A search waits for them at
// most Timeout, and for the vectors of new tools at most Timeout after their refresh began; a tool without a vector
// is found by its words. If the Embedder fails for a question, the order is by words, and the Embedder is not used
// for questions for half a minute.
//
// A Finder is safe for concurrent use. It has one goroutine while it requests vectors of tools; Close waits for it.
type Finder struct {
	index     *Index
	opts      FinderOptions
	questions *lru.Cache[textKey, vector]

	ctx    context.Context // the goroutine's context
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	work    chan struct{} // closed when the running refresh ends; nil if none runs
	began   time.Time     // start of the refresh
	full    bool          // some tools have no vectors because of maxVectorBytes
	rest    time.Time     // after a failure, time of the next refresh
	failing bool          // the Embedder failed for a question
	resume  time.Time     // when a failing Embedder is tried for questions again
}

const (
	fusionDepth    = 50   // hits per stage
	meaningWeight  = 0.3  // weight of meaning relative to words; see docs/evaluation.md
	embedBatch     = 32   // texts per request
	maxAspects     = 8    // clauses of a question that are also embedded
	maxEmbedded    = 2000 // bytes embedded per text
	maxQuestions   = 1 << 20
	embedPause     = 30 * time.Second
	batchTime      = 30 * time.Second // limit of one request for vectors of tools
	defaultTimeout = time.Second
)

// NewFinder returns a Finder over an index. It changes only the vectors in the index.
func NewFinder(index *Index, opts FinderOptions) *Finder {
	opts.Timeout = cmp.Or(max(opts.Timeout, 0), defaultTimeout)
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	f := &Finder{index: index, opts: opts, questions: lru.New[textKey, vector](maxQuestions/64, maxQuestions)}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// Index returns the searched index.
func (f *Finder) Index() *Index { return f.index }

// Close ends the requests for vectors of tools and waits for them. The Finder remains usable with its current
// vectors.
func (f *Finder) Close() {
	f.mu.Lock()
	f.cancel()
	f.mu.Unlock()
	f.done.Wait()
}

// Search returns the tools that best fit a question, best first. It never fails: without vectors in time, the order
// is that of [Index.Search]. A literal search finds tools only by words, and orders them by words and meaning.
func (f *Finder) Search(ctx context.Context, question string, opts SearchOptions) []Hit {
	meaning := f.meaningOf(ctx, question)
	if meaning == nil {
		return f.index.Search(question, opts)
	}
	limit := opts.limit()
	opts.Limit = max(limit, fusionDepth)
	hits := f.index.Search(question, opts)
	if !opts.Literal {
		hits = union(hits, f.index.nearest(meaning, opts.Limit, opts.Allow))
	}
	blend(hits, meaning)
	return hits[:min(limit, len(hits))]
}

// meaningOf returns the vectors of a question and its clauses, after waiting for the vectors of new tools within the
// time limit. It returns nil without a working Embedder.
func (f *Finder) meaningOf(ctx context.Context, question string) []vector {
	if f.opts.Embedder == nil || !f.available() {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, f.opts.Timeout)
	defer cancel()
	f.Refresh()
	meaning, err := f.embed(limited, aspectsOf(question))
	if err != nil {
		f.failed(ctx, err)
		return nil
	}
	f.recovered()
	f.expect(meaning[0])
	f.await(limited)
	return meaning
}

// expect drops the vectors of tools if they come from another model than that of a question.
func (f *Finder) expect(question vector) {
	x := f.index
	x.mu.RLock()
	same := x.vectors.dimensions == len(question.parts)
	x.mu.RUnlock()
	if same {
		return
	}
	x.mu.Lock()
	x.vectors.adopt(len(question.parts), x.docs)
	x.mu.Unlock()
	f.Refresh()
}

// union appends the hits by meaning that are not hits by words. Their word score is 0.
func union(hits, near []Hit) []Hit {
	found := make(map[string]bool, len(hits))
	for _, h := range hits {
		found[h.ID] = true
	}
	for _, h := range near {
		if h.Score = 0; !found[h.ID] {
			hits = append(hits, h)
		}
	}
	return hits
}

// blend orders hits by a convex combination of both scores, each scaled to 0..1 within this search. A tool without a
// vector gets the mean similarity.
func blend(hits []Hit, question []vector) {
	similar := make([]float64, 0, len(hits))
	var known []float64
	sum, best := 0.0, 0.0
	for _, h := range hits {
		best = max(best, h.Score)
		if h.vector.parts == nil {
			similar = append(similar, math.NaN())
			continue
		}
		s := similarity(question, h.vector)
		similar, known, sum = append(similar, s), append(known, s), sum+s
	}
	if len(known) == 0 {
		return
	}
	mean, lowest, highest := sum/float64(len(known)), slices.Min(known), slices.Max(known)
	for i := range hits {
		if best > 0 {
			hits[i].Score *= (1 - meaningWeight) / best
		}
		s := similar[i]
		if math.IsNaN(s) {
			s = mean
		}
		if highest > lowest {
			hits[i].Score += meaningWeight * (s - lowest) / (highest - lowest)
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
}

// similarity returns the highest cosine between a tool's vector and those of a question.
func similarity(question []vector, tool vector) float64 {
	nearest := question[0].cosine(tool)
	for _, aspect := range question[1:] {
		nearest = max(nearest, aspect.cosine(tool))
	}
	return nearest
}

// aspectsOf returns the texts of a question to compare with tools: the whole and, if there are several, its clauses.
func aspectsOf(question string) []string {
	aspects := []string{short.Prefix(question, maxEmbedded)}
	if clauses := Clauses(aspects[0]); len(clauses) > 1 {
		aspects = append(aspects, clauses[:min(len(clauses), maxAspects)]...)
	}
	return aspects
}

// embed returns the vectors of a question's texts. Recent questions are cached.
func (f *Finder) embed(ctx context.Context, texts []string) ([]vector, error) {
	out := make([]vector, len(texts))
	var unknown []string
	var places []int
	for i, text := range texts {
		var ok bool
		if out[i], ok = f.questions.Get(keyOf(text)); !ok {
			unknown, places = append(unknown, text), append(places, i)
		}
	}
	if len(unknown) == 0 {
		return out, nil
	}
	answer, err := f.opts.Embedder.Embed(ctx, unknown)
	if err != nil {
		return nil, err
	}
	for j, i := range places {
		out[i] = quantize(answer[j])
		f.questions.Put(keyOf(texts[i]), out[i], len(out[i].parts))
	}
	return out, nil
}

// available reports whether the Embedder may be used for questions.
func (f *Finder) available() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.failing || !time.Now().Before(f.resume)
}

// failed records a failure of the Embedder unless the caller has cancelled. Consecutive failures log one warning.
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

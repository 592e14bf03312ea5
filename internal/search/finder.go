package search

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/lru"
	"github.com/agenticnexus/agenticnexus/internal/texts"
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
	room      int // of the vectors of tools, in bytes
	questions *lru.Cache[textKey, *vector]

	ctx    context.Context // the goroutine's context
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	work   chan struct{} // closed when the running refresh ends; nil if none runs
	began  time.Time     // start of the refresh
	rest   time.Time     // after a failure, time of the next refresh
	resume time.Time     // after a failure, when questions are embedded again
	full   bool          // some tools have no vectors because of room
}

const (
	fusionDepth    = 50   // hits per stage
	meaningWeight  = 0.3  // weight of meaning relative to words; see docs/evaluation.md
	embedBatch     = 32   // texts per request
	maxAspects     = 8    // clauses of a question that are also embedded
	maxEmbedded    = 2000 // bytes embedded per text
	maxQuestions   = 1 << 20
	maxVectorBytes = 48 << 20 // 30,000 tools with the common 1,536 dimensions
	embedPause     = 30 * time.Second
	batchTime      = 30 * time.Second // limit of one request for vectors of tools
	defaultTimeout = time.Second
)

// NewFinder returns a Finder over an index. It changes only the vectors in the index.
func NewFinder(index *Index, opts FinderOptions) *Finder {
	opts.Timeout = cmp.Or(max(opts.Timeout, 0), defaultTimeout)
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	f := &Finder{
		index: index, opts: opts, room: maxVectorBytes,
		questions: lru.New[textKey, *vector](maxQuestions/64, maxQuestions),
	}
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

// nearest returns the n tools whose vectors are closest to any of a question's vectors, closest first.
func (x *Index) nearest(question []*vector, n int, allow func(server, name string) bool) (hits []Hit) {
	p := x.current()
	best := top{n: n, least: -1}
	for i, d := range p.docs {
		v := d.vector.Load()
		if v == nil {
			continue
		}
		c := candidate{doc: uint32(i), id: d.tool.ID, score: similarity(question, v)}
		if c.score >= best.least && (allow == nil || allow(d.tool.Server, d.tool.Name)) {
			best.add(c)
		}
	}
	for _, c := range best.list() {
		hits = append(hits, Hit{ID: c.id, doc: p.docs[c.doc]})
	}
	return hits
}

// union appends the hits by meaning that are not hits by words.
func union(hits, near []Hit) []Hit {
	found := make(map[string]bool, len(hits))
	for _, h := range hits {
		found[h.ID] = true
	}
	return append(hits, slices.DeleteFunc(near, func(h Hit) bool { return found[h.ID] })...)
}

// blend orders hits by a convex combination of both scores, each scaled to 0..1 within this search. A tool without a
// vector gets the mean similarity.
func blend(hits []Hit, question []*vector) {
	similar := make([]float64, len(hits))
	var known []float64
	sum, best := 0.0, 0.0
	for i, h := range hits {
		best = max(best, h.Score)
		similar[i] = math.NaN()
		if v := h.doc.vector.Load(); v != nil {
			similar[i] = similarity(question, v)
			known, sum = append(known, similar[i]), sum+similar[i]
		}
	}
	if len(known) == 0 {
		return
	}
	lowest, highest := slices.Min(known), slices.Max(known)
	for i := range hits {
		if best > 0 {
			hits[i].Score *= (1 - meaningWeight) / best
		}
		if math.IsNaN(similar[i]) {
			similar[i] = sum / float64(len(known))
		}
		if highest > lowest {
			hits[i].Score += meaningWeight * (similar[i] - lowest) / (highest - lowest)
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
}

// similarity returns the highest cosine between a tool's vector and those of a question.
func similarity(question []*vector, tool *vector) float64 {
	nearest := question[0].cosine(tool)
	for _, aspect := range question[1:] {
		nearest = max(nearest, aspect.cosine(tool))
	}
	return nearest
}

// meaningOf returns the vectors of a question and its clauses, after waiting for the vectors of new tools within the
// time limit. It returns nil without a working Embedder.
func (f *Finder) meaningOf(ctx context.Context, question string) []*vector {
	f.mu.Lock()
	usable := f.opts.Embedder != nil && !time.Now().Before(f.resume)
	f.mu.Unlock()
	if !usable {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, f.opts.Timeout)
	defer cancel()
	f.Refresh()
	meaning, err := f.embed(limited, aspectsOf(question))
	if err == nil {
		f.await(limited)
		return meaning
	}
	if ctx.Err() == nil { // otherwise the caller has gone
		if errors.Is(err, context.DeadlineExceeded) {
			err = errors.New("no embeddings in time")
		}
		f.mu.Lock()
		f.resume = time.Now().Add(embedPause)
		f.mu.Unlock()
		f.opts.Logger.WarnContext(ctx, "Ranking tools by words alone: the embedding endpoint failed",
			"error", err, "pause", embedPause)
	}
	return nil
}

// aspectsOf returns the texts of a question to compare with tools: the whole and, if there are several, its clauses.
func aspectsOf(question string) []string {
	aspects := []string{texts.Prefix(question, maxEmbedded)}
	if clauses := clausesOf(aspects[0]); len(clauses) > 1 {
		aspects = append(aspects, clauses[:min(len(clauses), maxAspects)]...)
	}
	return aspects
}

// embed returns the vectors of a question's texts. Recent questions are cached.
func (f *Finder) embed(ctx context.Context, texts []string) ([]*vector, error) {
	out := make([]*vector, len(texts))
	var missing []string
	for i, text := range texts {
		var ok bool
		if out[i], ok = f.questions.Get(keyOf(text)); !ok {
			missing = append(missing, text)
		}
	}
	if len(missing) == 0 {
		return out, nil
	}
	answer, err := f.opts.Embedder.Embed(ctx, missing)
	if err != nil {
		return nil, err
	}
	for i, text := range texts {
		if out[i] == nil {
			out[i], answer = quantize(answer[0]), answer[1:]
			f.questions.Put(keyOf(text), out[i], len(out[i].parts))
		}
	}
	return out, nil
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

// Refresh starts to request the vectors of tools without one. It does not wait. If not all vectors fit, some tools have
// none, and one warning is logged. After a failure it does nothing for half a minute; tools with vectors are still
// ranked by them.
func (f *Finder) Refresh() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.opts.Embedder == nil || f.work != nil || f.ctx.Err() != nil || time.Now().Before(f.rest) {
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
func (f *Finder) fill(batch []*document) []*document {
	texts := make([]string, len(batch))
	for i, d := range batch {
		texts[i] = d.tool.text(readSchema(d.tool.InputSchema).names)
	}
	ctx, cancel := context.WithTimeout(f.ctx, batchTime)
	defer cancel()
	answer, err := f.opts.Embedder.Embed(ctx, texts)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		for i, v := range answer {
			batch[i].vector.Store(quantize(v))
		}
		if batch = f.batch(); len(batch) > 0 && f.ctx.Err() == nil {
			return batch
		}
	} else if f.ctx.Err() == nil {
		f.rest = time.Now().Add(embedPause)
		f.opts.Logger.Warn("Some tools are ranked by words alone: their vectors are unavailable", "error", err,
			"pause", embedPause)
	}
	f.work = nil
	return nil
}

// batch returns the next tools without vectors, as far as their vectors fit. The caller holds f.mu.
func (f *Finder) batch() (tools []*document) {
	room, size := f.room, 1
	docs := f.index.current().docs
	for _, d := range docs {
		if v := d.vector.Load(); v != nil {
			size = len(v.parts)
			room -= size
		}
	}
	full := false
	for _, d := range docs {
		if d.vector.Load() != nil || len(tools) == embedBatch {
			continue
		}
		if room -= size; room < 0 {
			full = true
			break
		}
		tools = append(tools, d)
	}
	if full && !f.full {
		f.opts.Logger.Warn("Some tools are ranked by words alone: there is no room for their vectors", "bytes", f.room)
	}
	f.full = full
	return tools
}

// text returns the text of a tool to embed.
func (t Tool) text(params []string) string {
	parts := []string{t.Server + " " + t.Name}
	for _, s := range []string{t.Title, t.Description, strings.Join(params, ", ")} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return texts.Prefix(strings.Join(parts, ". "), maxEmbedded)
}

// vector is a direction with one byte per dimension, which is precise enough for ranking.
type vector struct {
	scale float32
	parts []int8
}

// quantize returns the direction of v.
func quantize(v []float32) *vector {
	var length, largest float64
	for _, x := range v {
		length += float64(x) * float64(x)
		largest = max(largest, math.Abs(float64(x)))
	}
	q := &vector{parts: make([]int8, len(v))}
	if largest == 0 {
		return q
	}
	q.scale = float32(largest / math.Sqrt(length) / math.MaxInt8)
	for i, x := range v {
		q.parts[i] = int8(math.Round(float64(x) / largest * math.MaxInt8))
	}
	return q
}

// cosine returns the cosine of the angle between two vectors, 0 if their lengths differ because the model has changed.
func (v *vector) cosine(o *vector) float64 {
	if len(v.parts) != len(o.parts) {
		return 0
	}
	var sum int32 // enough for 130,000 dimensions
	for i, x := range v.parts {
		sum += int32(x) * int32(o.parts[i])
	}
	return float64(sum) * float64(v.scale) * float64(o.scale)
}

// textKey identifies an embedded text.
type textKey = [sha256.Size]byte

func keyOf(text string) textKey { return sha256.Sum256([]byte(text)) }

package eval

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/search"
)

// RetrievalOptions are the options of Retrieval.
type RetrievalOptions struct {
	Catalog  string          // JSON Lines of tools
	Queries  string          // JSON Lines of questions
	Out      string          // where predictions go; empty means nowhere
	Embedder search.Embedder // ranks by meaning too; nil means by words alone
	Progress Progress
}

// RetrievalSummary is the result of Retrieval. The quality figures count only questions that name
// relevant tools; without such questions they are 0.
type RetrievalSummary struct {
	Tools      int     `json:"tools"`
	Queries    int     `json:"queries"`
	Judged     int     `json:"judged"` // questions that name relevant tools
	Recall1    float64 `json:"recall@1"`
	Recall5    float64 `json:"recall@5"`
	Recall10   float64 `json:"recall@10"`
	Hit1       float64 `json:"hit@1"`
	Complete10 float64 `json:"complete@10"`
	MRR        float64 `json:"mrr"`
	NDCG10     float64 `json:"ndcg@10"`
	Prompts
	Build float64 `json:"build_ms"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	Heap  float64 `json:"index_mib"` // of the heap, after collection
}

// Prompts are shares of questions, by what the planner shows a model of all their relevant tools.
type Prompts struct {
	Visible float64 `json:"visible@budget"` // with all parameters that they require
	Named   float64 `json:"named@budget"`   // at least by name
}

// timedRuns is the number of searches per question. The fastest counts, to reduce the effect of other
// load on the machine.
const timedRuns = 3

// query is a line of a retrieval file. Any member of a group satisfies that group.
type query struct {
	ID       string             `json:"id"`
	Query    string             `json:"query"`
	Relevant [][]string         `json:"relevant"`
	Grades   map[string]float64 `json:"grades"`
}

// Retrieval searches a catalog for every question and writes {"id","ranked"} lines.
func Retrieval(ctx context.Context, o RetrievalOptions) (sum RetrievalSummary, err error) {
	tools, err := readLines[Tool](o.Catalog)
	if err != nil {
		return sum, err
	}
	queries, err := readLines[query](o.Queries)
	if err != nil {
		return sum, err
	}
	w, err := create(o.Out)
	if err != nil {
		return sum, err
	}
	defer w.closeInto(&err)
	before := heap()
	start := time.Now()
	x := index(tools)
	embedder := &watched{Embedder: o.Embedder}
	finder := search.NewFinder(x, embedder.options())
	defer finder.Close()
	sum.Build = float64(time.Since(start).Microseconds()) / 1000
	sum.Heap = max(0, heap()-before)
	runtime.KeepAlive(tools)
	sum.Tools, sum.Queries = len(tools), len(queries)
	shown := newPrompts(finder, tools)
	var times []time.Duration
	for i, q := range queries {
		if err := ctx.Err(); err != nil {
			return sum, fmt.Errorf("evaluating retrieval: %w", err)
		}
		var hits []search.Hit
		fastest := time.Duration(math.MaxInt64)
		for range timedRuns {
			start := time.Now()
			hits = finder.Search(ctx, q.Query, search.SearchOptions{Limit: 10})
			fastest = min(fastest, time.Since(start))
		}
		if err := embedder.failure(); err != nil {
			return sum, fmt.Errorf("embedding for question %s: %w", q.ID, err)
		}
		times = append(times, fastest)
		ranked := make([]string, len(hits))
		for j, h := range hits {
			ranked[j] = h.ID
		}
		if err := w.write(struct {
			ID     string   `json:"id"`
			Ranked []string `json:"ranked"`
		}{q.ID, ranked}); err != nil {
			return sum, err
		}
		sum.judge(q, ranked)
		if named, visible := shown.show(ctx, q); len(q.Relevant) > 0 {
			sum.Named, sum.Visible = sum.Named+float(named), sum.Visible+float(visible)
		}
		o.Progress.report(i+1, len(queries))
	}
	if n := float64(sum.Judged); n > 0 {
		for _, f := range []*float64{&sum.Recall1, &sum.Recall5, &sum.Recall10, &sum.Hit1, &sum.Complete10, &sum.MRR,
			&sum.NDCG10, &sum.Visible, &sum.Named} {
			*f /= n
		}
	}
	sum.P50, sum.P99 = percentile(times, 0.5), percentile(times, 0.99)
	return sum, nil
}

func float(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// watched keeps the first error of an embedder. A search continues after it, but an evaluation must not.
type watched struct {
	search.Embedder
	err atomic.Pointer[error]
}

// embedTime bounds the embedding of all tools. An evaluation can wait for slow models.
const embedTime = 24 * time.Hour

func (w *watched) options() search.FinderOptions {
	if w.Embedder == nil {
		return search.FinderOptions{}
	}
	return search.FinderOptions{Embedder: w, Timeout: embedTime}
}

// Embed implements search.Embedder.
func (w *watched) Embed(ctx context.Context, texts []string) (vectors [][]float32, err error) {
	if vectors, err = w.Embedder.Embed(ctx, texts); err != nil {
		w.err.CompareAndSwap(nil, &err)
	}
	return vectors, err
}

func (w *watched) failure() error {
	if err := w.err.Load(); err != nil {
		return *err
	}
	return nil
}

// heap is the live heap in MiB.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// judge adds the figures of one question to the sums.
func (s *RetrievalSummary) judge(q query, ranked []string) {
	if len(q.Relevant) == 0 {
		return
	}
	s.Judged++
	groups := float64(len(q.Relevant))
	best, within10 := 0, 0
	dcg := 0.0
	var gains []float64
	for _, g := range q.Relevant {
		gain := 1.0
		for i, id := range g {
			if v, ok := q.Grades[id]; ok && (i == 0 || v > gain) {
				gain = v
			}
		}
		gains = append(gains, gain)
		rank := 1 + slices.IndexFunc(ranked, func(id string) bool { return slices.Contains(g, id) })
		if rank == 0 {
			continue
		}
		if best == 0 || rank < best {
			best = rank
		}
		if rank <= 1 {
			s.Recall1 += 1 / groups
		}
		if rank <= 5 {
			s.Recall5 += 1 / groups
		}
		if rank <= 10 {
			s.Recall10 += 1 / groups
			within10++
			dcg += gain / math.Log2(float64(rank)+1)
		}
	}
	slices.SortFunc(gains, func(a, b float64) int { return cmp.Compare(b, a) })
	ideal := 0.0
	for i, g := range gains[:min(10, len(gains))] {
		ideal += g / math.Log2(float64(i)+2)
	}
	s.NDCG10 += dcg / ideal
	if best == 1 {
		s.Hit1++
	}
	if best > 0 {
		s.MRR += 1 / float64(best)
	}
	if within10 == len(q.Relevant) {
		s.Complete10++
	}
}

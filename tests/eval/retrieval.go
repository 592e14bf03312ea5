package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/planner"
	"github.com/agenticnexus/agenticnexus/tests/toolset"
)

// retrieval searches a catalog for every question and writes {"id","ranked"} lines.
type retrieval struct {
	figures
	Catalog    string `required:"" help:"The tools, a JSON Lines file." placeholder:"FILE"`
	Queries    string `required:"" help:"The questions, a JSON Lines file." placeholder:"FILE"`
	Embeddings bool   `help:"Also rank with the configured embedding model."`
}

// retrievalSummary has the figures. Those of quality count only questions that name relevant tools.
type retrievalSummary struct {
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
	shares
	Build float64 `json:"build_ms"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	Heap  float64 `json:"index_mib"` // of the heap, after collection
}

// shares are about what the first prompt of the planner shows a model of the relevant tools.
type shares struct {
	Gold    float64 `json:"gold@budget"`    // share of the groups of which a tool is shown with all arguments that it requires
	Visible float64 `json:"visible@budget"` // share of the questions for which that holds of all groups
	Named   float64 `json:"named@budget"`   // of which tools of all groups are shown, at least by name
	Prompt  float64 `json:"prompt_tokens"`  // mean of the descriptions of tools, at four bytes each
	groups  float64
}

// question is a line of a retrieval file. Any member of a group satisfies that group.
type question struct {
	ID       string             `json:"id"`
	Query    string             `json:"query"`
	Relevant [][]string         `json:"relevant"`
	Grades   map[string]float64 `json:"grades"`
}

const (
	// timedRuns is the number of searches per question. The fastest counts, to reduce the effect of other load on the
	// machine.
	timedRuns = 3

	// embedTime bounds the embedding of all tools. An evaluation can wait for slow models.
	embedTime = 24 * time.Hour
)

// Run implements the command.
func (c *retrieval) Run(e *env) error {
	opts := search.FinderOptions{}
	embedder := &strict{}
	if c.Embeddings {
		cfg, err := config.Load(c.Config, config.Options{})
		if err != nil {
			return err
		}
		if cfg.LLM == nil || cfg.LLM.Embeddings == nil {
			return usageError{fmt.Errorf("--embeddings needs a model; name one under llm.embeddings in the configuration")}
		}
		embedder.Embedder = llm.NewEmbeddings(*cfg.LLM.Embeddings, nil)
		opts = search.FinderOptions{Embedder: embedder, Timeout: embedTime}
	}
	tools, err := readLines[Tool](c.Catalog)
	if err != nil {
		return err
	}
	questions, err := readLines[question](c.Queries)
	if err != nil {
		return err
	}
	out, err := create(c.Out)
	if err != nil {
		return err
	}
	defer out.Close()

	sum := retrievalSummary{Tools: len(tools), Queries: len(questions)}
	before, start := heap(), time.Now()
	finder := search.NewFinder(index(tools), opts)
	defer finder.Close()
	sum.Build = milliseconds(time.Since(start))
	sum.Heap = max(0, heap()-before)
	shown := newPrompts(finder, tools)
	var times []time.Duration
	for i, q := range questions {
		var hits []search.Hit
		fastest := time.Duration(math.MaxInt64)
		for range timedRuns {
			start := time.Now()
			hits = finder.Search(e.ctx, q.Query, search.SearchOptions{Limit: 10})
			fastest = min(fastest, time.Since(start))
		}
		if err := e.ctx.Err(); err != nil {
			return fmt.Errorf("evaluating retrieval: %w", err)
		}
		if err := embedder.err.Load(); err != nil {
			return fmt.Errorf("embedding for question %s: %w", q.ID, *err)
		}
		times = append(times, fastest)
		ranked := make([]string, len(hits))
		for j, h := range hits {
			ranked[j] = h.ID
		}
		if err := out.Encode(map[string]any{"id": q.ID, "ranked": ranked}); err != nil {
			return err
		}
		if len(q.Relevant) > 0 {
			sum.judge(q, ranked)
			shown.show(e.ctx, q, &sum.shares)
		}
		e.report(i+1, len(questions))
	}
	for _, f := range []*float64{&sum.Recall1, &sum.Recall5, &sum.Recall10, &sum.Hit1, &sum.Complete10, &sum.MRR,
		&sum.NDCG10, &sum.Visible, &sum.Named, &sum.Prompt} {
		*f /= float64(max(sum.Judged, 1))
	}
	sum.Gold /= max(sum.groups, 1)
	sum.P50, sum.P99 = percentile(times, 0.5), percentile(times, 0.99)
	return e.print(sum, c.JSON)
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// index builds a search index over a catalog, server by server as a router does.
func index(tools []Tool) *search.Index {
	servers := map[string][]search.Tool{}
	var order []string
	for _, t := range tools {
		if servers[t.Server] == nil {
			order = append(order, t.Server)
		}
		servers[t.Server] = append(servers[t.Server], search.Tool{
			ID: t.ID, Server: t.Server, Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema,
		})
	}
	x := search.New()
	for _, s := range order {
		x.Update(s, servers[s])
	}
	return x
}

// strict keeps the first error of an embedder. A search continues after it, but an evaluation must not.
type strict struct {
	search.Embedder
	err atomic.Pointer[error]
}

// Embed implements search.Embedder.
func (s *strict) Embed(ctx context.Context, texts []string) (vectors [][]float32, err error) {
	if vectors, err = s.Embedder.Embed(ctx, texts); err != nil {
		s.err.CompareAndSwap(nil, &err)
	}
	return vectors, err
}

// heap is the live heap in MiB.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// judge adds the figures of one question to the sums.
func (s *retrievalSummary) judge(q question, ranked []string) {
	s.Judged++
	groups := float64(len(q.Relevant))
	best, within10 := math.MaxInt, 0
	dcg, ideal := 0.0, 0.0
	var gains []float64
	for _, group := range q.Relevant {
		gain := 1.0
		for i, id := range group {
			if v, ok := q.Grades[id]; ok && (i == 0 || v > gain) {
				gain = v
			}
		}
		gains = append(gains, gain)
		rank := 1 + slices.IndexFunc(ranked, func(id string) bool { return slices.Contains(group, id) })
		if rank == 0 {
			continue
		}
		best = min(best, rank)
		s.Recall1 += number(rank <= 1) / groups
		s.Recall5 += number(rank <= 5) / groups
		s.Recall10 += 1 / groups
		within10++
		dcg += gain / math.Log2(float64(rank)+1)
	}
	slices.SortFunc(gains, func(a, b float64) int { return cmp.Compare(b, a) })
	for i, g := range gains[:min(10, len(gains))] {
		ideal += g / math.Log2(float64(i)+2)
	}
	s.NDCG10 += dcg / ideal
	s.Hit1 += number(best == 1)
	if within10 > 0 {
		s.MRR += 1 / float64(best)
	}
	s.Complete10 += number(within10 == len(q.Relevant))
}

// prompts finds the tools of a catalog that a planner shows to a model.
type prompts struct {
	planner *planner.Planner
	finder  *search.Finder
	tools   toolset.List
	byID    map[string]int // in tools
}

func newPrompts(finder *search.Finder, tools []Tool) *prompts {
	p := &prompts{finder: finder, tools: planTools(tools), byID: map[string]int{}}
	count := map[string]int{}
	for _, t := range tools {
		count[t.Name]++
	}
	for i, t := range tools {
		p.byID[t.ID] = i
		if count[t.Name] > 1 {
			p.tools[i].Name = t.Server + "." + t.Name // as a router names it
		}
	}
	p.planner = planner.New(planner.Options{Ranker: p, Fallback: noFallback{}})
	return p
}

// Rank implements planner.Ranker.
func (p *prompts) Rank(ctx context.Context, question string, _ planner.Tools, limit int) (ranked []plan.Tool) {
	for _, hit := range p.finder.Search(ctx, question, search.SearchOptions{Limit: limit}) {
		ranked = append(ranked, p.tools[p.byID[hit.ID]])
	}
	return ranked
}

// show adds what the prompt for a question shows of a tool of each group.
func (p *prompts) show(ctx context.Context, q question, sum *shares) {
	shown := p.planner.Show(ctx, planner.Request{Query: q.Query, Tools: p.tools})
	sum.Prompt += float64(shown.Size()) / 4
	named, visible := true, true
	for _, group := range q.Relevant {
		byName, whole := false, false
		for _, id := range group {
			if i, ok := p.byID[id]; ok {
				n, w := shown.Visible(p.tools[i].Name)
				byName, whole = byName || n, whole || w
			}
		}
		sum.groups++
		sum.Gold += number(whole)
		named, visible = named && byName, visible && whole
	}
	sum.Named += number(named)
	sum.Visible += number(visible)
}

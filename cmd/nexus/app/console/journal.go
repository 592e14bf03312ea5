package console

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/history"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/texts"
	"github.com/agenticnexus/agenticnexus/router"
)

// Journal tracks running queries, and writes ended queries and calls to the history. The zero value writes nothing. Its
// methods are safe for concurrent use and do not block.
type Journal struct {
	history  atomic.Pointer[history.Log]
	contents bool           // set before history
	mask     *redact.Masker // set before history

	mu   sync.Mutex
	last uint64
	live map[uint64]*Live
}

// Live is a running query.
type Live struct {
	id       uint64    // not the id of its entry
	At       time.Time `json:"at"`
	Caller   string    `json:"caller"`
	Text     string    `json:"text,omitempty"`
	Progress float64   `json:"progress"`
	Message  string    `json:"message,omitempty"`
}

// maxLive bounds the running queries that are shown. Others are shown after they end.
const maxLive = 1000

// Open sets the history to write to. It is called once; log may be nil. mask removes secrets from what is kept.
func (j *Journal) Open(log *history.Log, contents bool, mask *redact.Masker) {
	j.contents, j.mask, j.live = contents, mask, map[uint64]*Live{}
	j.history.Store(log)
}

// log returns the history, or nil.
func (j *Journal) log() *history.Log { return j.history.Load() }

// Follow implements router.Follow.
func (j *Journal) Follow(q *router.Query, began time.Time, traceID string) func(*router.Record, string, error) {
	log := j.log()
	if log == nil {
		return func(*router.Record, string, error) {}
	}
	text := ""
	if j.contents {
		text = texts.Cut(j.mask.Text(q.Text), maxQuestion)
	}
	live := &Live{At: began, Caller: q.Origin.Caller, Text: texts.Line(text, 300)}
	id := j.begin(live)
	var own *router.Reporter
	if q.Report == nil {
		own = router.NewReporter(func(f float64, m string) { j.progress(live, f, m) })
		q.Report = own
	} else {
		q.Report.AddListener(func(f float64, m string) { j.progress(live, f, m) })
	}
	return func(r *router.Record, outcome string, err error) {
		own.Close()
		j.mu.Lock()
		delete(j.live, id)
		j.mu.Unlock()
		e := history.Entry{
			Kind: history.KindQuery, At: began, Caller: live.Caller, Outcome: outcome, Text: live.Text, TraceID: traceID,
			Duration: milliseconds(time.Since(began)), Error: describe(err, j.contents, j.mask),
		}
		if r == nil {
			log.Add(e, nil, len(e.Error)+len(e.Text))
			return
		}
		detail, size := newDetail(text, r, j.contents, j.mask)
		e.Duration = milliseconds(r.Timings.Total)
		e.Uses = uses(detail.content.Steps)
		e.Models = slices.Concat(tokens("planner", r.PlannerUsage), tokens("synthesizer", r.Answer.Usage))
		log.Add(e, detail, size)
	}
}

// begin adds a running query and returns its id.
func (j *Journal) begin(live *Live) uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last++
	live.id = j.last
	if len(j.live) < maxLive {
		j.live[live.id] = live
	}
	return live.id
}

func (j *Journal) progress(live *Live, fraction float64, message string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	live.Progress = fraction
	if j.contents {
		live.Message = texts.Line(j.mask.Text(message), 200)
	}
}

// Running returns the queries that run, the newest first.
func (j *Journal) Running(see func(caller string) bool) []Live {
	j.mu.Lock()
	defer j.mu.Unlock()
	var visible []*Live
	for _, l := range j.live {
		if see(l.Caller) {
			visible = append(visible, l)
		}
	}
	slices.SortFunc(visible, func(a, b *Live) int { return cmp.Compare(b.id, a.id) })
	running := make([]Live, len(visible))
	for i, l := range visible {
		running[i] = *l
	}
	return running
}

// Call records a tool call that was not a step of a query.
func (j *Journal) Call(o downstream.Observation) {
	log := j.log()
	if log == nil || o.Tool == "" || o.Step {
		return
	}
	took := milliseconds(o.Duration)
	use := history.Use{Server: o.Server, Tool: texts.Cut(o.Tool, maxTool), Calls: 1, Time: took}
	if o.Outcome != history.OutcomeOK {
		use.Failed = 1
	}
	log.Add(history.Entry{
		Kind: history.KindCall, At: o.Began, Caller: o.Caller, Outcome: o.Outcome, Duration: took, Bytes: o.Bytes,
		Attempts: o.Attempts, Uses: []history.Use{use},
	}, nil, len(use.Tool))
}

// maxUses bounds the tools of one entry.
const maxUses = 100

// uses counts the calls of a query by tool.
func uses(steps []router.StepResult) []history.Use {
	count := map[toolID]*history.Use{}
	for _, s := range steps {
		if s.Attempts == 0 {
			continue // the step did not run
		}
		id := idOf(s.Server, s.Tool)
		u := count[id]
		if u == nil {
			if len(count) == maxUses {
				continue
			}
			u = &history.Use{Server: id.server, Tool: id.tool}
			count[id] = u
		}
		u.Calls++
		u.Time += s.Duration
		if !s.Success {
			u.Failed++
		}
	}
	var all []history.Use
	for _, u := range slices.SortedFunc(maps.Values(count), func(a, b *history.Use) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Tool, b.Tool))
	}) {
		all = append(all, *u)
	}
	return all
}

// tokens returns the tokens that a query used at a model.
func tokens(purpose string, u llm.Usage) []history.Tokens {
	if u.Calls == 0 {
		return nil
	}
	return []history.Tokens{{Model: u.Model, For: purpose, Input: u.InputTokens, Output: u.OutputTokens, Calls: u.Calls}}
}

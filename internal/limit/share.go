package limit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"sort"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/shared"
)

// share lets the Rates of several replicas count together. Each caller has an entry with the calls that each replica
// accepted. A replica may accept one call of a caller that it has not reported yet; the next one waits for the report.
// So each replica exceeds the limit by at most one call, and a call costs no round trip unless it follows another of
// the same caller within one. While the store cannot be reached, each replica counts alone.
type share struct {
	state shared.State
	self  string           // name of this replica in entries
	clock func() time.Time // of the store
	dirty chan string      // callers with calls to report
}

// reported is what the replicas know of the calls in a window.
type reported struct {
	others   []slot        // calls that other replicas accepted, by Rate.now, oldest first
	accepted int           // number of calls accepted here so far
	known    int           // how many of them the entry includes
	done     chan struct{} // closed at the end of the report in progress; nil = none is
}

// slot tells that calls were accepted until a time.
type slot struct {
	Until int64 `json:"t"` // Unix time in milliseconds
	Calls int   `json:"n"`
}

const (
	slots         = 32              // of a window, in an entry
	maxReplicas   = 64              // in an entry
	attempts      = 10              // at storing a report while other replicas store theirs
	reportTimeout = 2 * time.Second // after which a call is judged without the report
)

// Share lets replicas with the same state count calls together, each under its own name of at most 32 letters and
// digits. clock returns the time by the clock of the store. It must be called before the first call. Run reports the
// calls.
func (r *Rate) Share(state shared.State, self string, clock func() time.Time) {
	r.share = &share{state: state, self: self, clock: clock, dirty: make(chan string, maxIDs)}
}

// Run reports accepted calls to the other replicas until ctx ends. It returns at once without Share.
func (r *Rate) Run(ctx context.Context) {
	if r.share == nil {
		return
	}
	for {
		select {
		case id := <-r.share.dirty:
			r.report(ctx, id)
		case <-ctx.Done():
			return
		}
	}
}

// report stores how many calls of a caller this replica accepted, and reads those of the others.
func (r *Rate) report(ctx context.Context, id string) {
	var others []slot
	var n int
	err := shared.ErrConflict
	for try := 0; try < attempts && errors.Is(err, shared.ErrConflict); try++ {
		others, n, err = r.exchange(ctx, id)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.window(id)
	if w == nil || w.done == nil { // replaced
		return
	}
	if err == nil {
		w.others, w.known = others, n
	} else {
		w.known = w.accepted // the next call does not wait for what fails
	}
	close(w.done)
	w.done = nil
}

// exchange makes one attempt at storing the own calls. It returns the calls of the other replicas and the number of own
// calls that are stored.
func (r *Rate) exchange(ctx context.Context, id string) (others []slot, n int, err error) {
	s := r.share
	digest := sha256.Sum256([]byte(id))
	key := "rate/" + hex.EncodeToString(digest[:16])
	e, err := s.state.Get(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	var stored map[string][]slot
	_ = json.Unmarshal(e.Value, &stored) // a damaged entry is replaced
	r.mu.Lock()
	w, per, most, now := r.window(id), r.config.Per, r.config.Requests, r.now()
	offset := s.clock().Sub(now)
	var own []slot
	if w != nil {
		n, own = w.accepted, w.slots(now.Add(-per), max(per/slots, time.Millisecond), offset)
	}
	r.mu.Unlock()
	if w == nil {
		return nil, 0, nil
	}
	oldest := now.Add(offset - per).UnixMilli()
	all := map[string][]slot{s.self: own}
	for name, calls := range stored {
		calls = slices.DeleteFunc(calls, func(c slot) bool { return c.Until <= oldest })
		if name == s.self || len(calls) == 0 || len(calls) > slots+1 || len(all) > maxReplicas {
			continue
		}
		all[name] = calls
		for _, c := range calls {
			others = append(others, slot{c.Until - offset.Milliseconds(), max(0, min(c.Calls, most))})
		}
	}
	sort.Slice(others, func(i, j int) bool { return others[i].Until < others[j].Until })
	value, err := json.Marshal(all)
	if err == nil {
		_, err = s.state.Put(ctx, key, value, e.Revision, per.Truncate(time.Second)+2*time.Second)
	}
	return others, n, err
}

// slots returns the calls since a time, by the store's clock.
func (w *window) slots(since time.Time, width, offset time.Duration) []slot {
	var all []slot
	for i := range w.times {
		at := w.at(i)
		if !at.After(since) {
			continue
		}
		until := at.Add(offset).Truncate(width).Add(width).UnixMilli()
		if n := len(all); n > 0 && all[n-1].Until == until {
			all[n-1].Calls++
		} else {
			all = append(all, slot{until, 1})
		}
	}
	return all
}

// free returns the time at which another call may be accepted: when the replicas together will have accepted fewer
// calls than the limit in the window before it. It is in the past if they have.
func (w *window) free(now time.Time, c RateConfig) time.Time {
	before := len(w.times) - c.Requests // calls before the one after whose window there is room
	for _, s := range w.others {
		before += s.Calls
	}
	if before < 0 {
		return now
	}
	for own, others := 0, w.others; ; {
		switch {
		case own < len(w.times) && (len(others) == 0 || !w.at(own).After(time.UnixMilli(others[0].Until))):
			if before == 0 {
				return w.at(own).Add(c.Per)
			}
			own, before = own+1, before-1
		case before < others[0].Calls:
			return time.UnixMilli(others[0].Until).Add(c.Per)
		default:
			others, before = others[1:], before-others[0].Calls
		}
	}
}

// at returns the time of the n-th call in times, oldest first.
func (w *window) at(n int) time.Time { return w.times[(w.next+n)%len(w.times)] }

// start has the calls of a caller reported unless that is in progress. The caller holds Rate.mu.
func (s *share) start(w *window) {
	if w.done != nil || !s.state.Connected() {
		return
	}
	select {
	case s.dirty <- w.id:
		w.done = make(chan struct{})
	default: // the next call tries again
	}
}

// await waits for the end of a report, or until the deadline.
func await(done <-chan struct{}, deadline time.Time) {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

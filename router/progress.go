package router

import (
	"slices"
	"sync"
	"time"
)

// Fixed progress values of a query. Step events lie between executing and executed.
const (
	atPlanning     = 0.1
	atExecuting    = 0.2
	atExecuted     = 0.8
	atSynthesizing = 0.9
	atComplete     = 1.0
)

const (
	stepBurst   = 50                     // step events that pass at once
	stepEvery   = 100 * time.Millisecond // interval of further step events
	answerEvery = 150 * time.Millisecond // interval of partial answers; a faster answer has none
)

// Reporter reports the progress of one query as strictly increasing values from 0 to 1. Fixed values always pass.
// Step events pass a token bucket; while it is empty, only the newest is kept. A Reporter is safe for concurrent use;
// a nil Reporter reports nothing.
type Reporter struct {
	send func(fraction float64, message string)

	mu     sync.Mutex
	last   float64
	tokens float64
	filled time.Time
	kept   *event
	timer  *time.Timer
	passed time.Time // when the last event passed
	done   bool
	tools  tools
}

// tools are those whose calls run, and who is told.
type tools struct {
	running []string // in order of their beginning
	tell    func(running []string)
}

type event struct {
	value   float64
	message string
}

// NewReporter returns a Reporter that calls send, one value at a time, in order. send must not block.
func NewReporter(send func(fraction float64, message string)) *Reporter {
	return &Reporter{send: send, tokens: stepBurst, filled: time.Now()}
}

// AddListener adds a second function, called after the first.
func (r *Reporter) AddListener(send func(fraction float64, message string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.send
	r.send = func(fraction float64, message string) {
		first(fraction, message)
		send(fraction, message)
	}
}

// OnRunning makes the Reporter call tell, like send, when calls of tools begin and end, with the tools whose calls run;
// a tool is named once for each call.
func (r *Reporter) OnRunning(tell func(tools []string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tools.tell = tell
}

// running reports that a call of a tool has begun, or ended if change is negative.
func (r *Reporter) running(tool string, change int) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tools.tell == nil || r.done {
		return
	}
	if change > 0 {
		r.tools.running = append(r.tools.running, tool)
	} else if i := slices.Index(r.tools.running, tool); i >= 0 {
		r.tools.running = slices.Delete(r.tools.running, i, i+1)
	}
	r.tools.tell(slices.Clone(r.tools.running))
}

// milestone reports a fixed value and drops a kept step event.
func (r *Reporter) milestone(value float64, message string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = nil
	r.pass(value, message)
}

// step reports the progress of the steps as a value between atExecuting and atExecuted.
func (r *Reporter) step(value float64, message string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if value <= r.last || value >= atExecuted || r.done {
		return
	}
	r.refill()
	if r.tokens < 1 {
		if r.kept == nil {
			wait := time.Duration((1 - r.tokens) * float64(stepEvery))
			r.timer = time.AfterFunc(wait, r.sendKept)
		}
		r.kept = &event{value, message}
		return
	}
	r.tokens--
	r.pass(value, message)
}

func (r *Reporter) refill() {
	now := time.Now()
	r.tokens = min(stepBurst, r.tokens+float64(now.Sub(r.filled))/float64(stepEvery))
	r.filled = now
}

func (r *Reporter) sendKept() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil || r.done {
		return
	}
	r.refill()
	r.tokens--
	e := *r.kept
	r.kept = nil
	r.pass(e.value, e.message)
}

// answer reports the partial answer. Its final length is unknown, so each report covers a fraction of the remaining
// distance to atComplete.
func (r *Reporter) answer(text string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.passed) >= answerEvery {
		r.pass(r.last+(atComplete-r.last)/16, text)
	}
}

// reached returns the last value sent and drops a kept step event.
func (r *Reporter) reached() float64 {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = nil
	return r.last
}

// Close stops the Reporter. Nothing is sent after it returns.
func (r *Reporter) Close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = true
	if r.timer != nil {
		r.timer.Stop()
	}
}

func (r *Reporter) pass(value float64, message string) {
	if value > r.last && !r.done {
		r.last, r.passed = value, time.Now()
		r.send(value, message)
	}
}

package router

import (
	"sync"
	"time"
)

// The fixed stations of a query's progress; the steps move between executing and executed.
const (
	atPlanning     = 0.1
	atExecuting    = 0.2
	atExecuted     = 0.8
	atSynthesizing = 0.9
	atComplete     = 1.0
)

const (
	stepBurst   = 50                     // step events that may pass at once
	stepEvery   = 100 * time.Millisecond // and then one each
	answerEvery = 150 * time.Millisecond // the growing answer; one that is there sooner is not shown in pieces
)

// Reporter passes on the progress of one query as values from 0 to 1 that strictly increase. Stations
// always pass; step events pass a token bucket, and while it is empty only the newest is kept. It may
// be used from any goroutine; nil reports nothing.
type Reporter struct {
	send func(fraction float64, message string)

	mu     sync.Mutex
	last   float64
	tokens float64
	filled time.Time
	kept   *event
	timer  *time.Timer
	passed time.Time // when the last one did
	done   bool
}

type event struct {
	value   float64
	message string
}

// NewReporter returns a Reporter that calls send, one value at a time, in order. send must not block.
func NewReporter(send func(fraction float64, message string)) *Reporter {
	return &Reporter{send: send, tokens: stepBurst, filled: time.Now()}
}

// Also has send called, too, after what is called already.
func (r *Reporter) Also(send func(fraction float64, message string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.send
	r.send = func(fraction float64, message string) {
		first(fraction, message)
		send(fraction, message)
	}
}

// station reports a fixed value. What was kept of the steps before it is void.
func (r *Reporter) station(value float64, message string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = nil
	r.pass(value, message)
}

// step reports what the steps have done so far, as a value between two stations.
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

// answer reports the growing answer between synthesizing and complete; how long it will get is not
// known, so that each report goes a part of the way that is left.
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

// reached returns the value that was sent last. What was kept of the steps before it is void.
func (r *Reporter) reached() float64 {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = nil
	return r.last
}

// Close ends the reports: nothing is sent once it has returned.
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

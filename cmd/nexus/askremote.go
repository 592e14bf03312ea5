package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/router"
)

const (
	reasonRefused     = "refused"
	reasonNotRecorded = "not_recorded"

	comeBack  = 10                     // attempts to reconnect to a lost router
	tryAfter  = 500 * time.Millisecond // pause between these attempts
	turnAway  = time.Second            // pause after a refusal that names no time
	maxPauses = 100                    // refusals of one question before it fails
)

// askRemote asks a remote router.
func (c *batchRunCmd) askRemote(w *world, a *asker) (backend, func(), error) {
	line := &reconnecting{remote: c.remote}
	if c.Yes {
		line.user = &prompt{w: w, bar: newBar(&world{stderr: w.stderr}), yes: true}
	}
	p, err := line.get(w.ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	a.ask = line.answer
	return p, line.close, nil
}

// reconnecting is a session with a remote router. It connects anew after the session is lost.
type reconnecting struct {
	remote remote
	user   *prompt // gives consent; nil = no calls are approved

	mu sync.Mutex
	on *peer // nil before the first
}

func (r *reconnecting) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.on != nil {
		r.on.close()
	}
}

// get returns the session, or a new one if the current session is lost.
func (r *reconnecting) get(ctx context.Context, lost *peer) (*peer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.on != nil && r.on != lost {
		return r.on, nil
	}
	p, err := r.remote.connect(ctx, r.user)
	if err != nil {
		return nil, err
	}
	if r.on != nil {
		r.on.close()
	}
	r.on = p
	return p, nil
}

// answer asks until there is an answer. A question is asked again only if it was refused or has not reached the
// router.
func (r *reconnecting) answer(ctx context.Context, q batch.Question) (batch.Answer, error) {
	var used *peer
	var last error
	for attempt, pauses := 0, 0; attempt < comeBack; {
		p, err := r.get(ctx, used)
		if err == nil {
			began := time.Now()
			var content json.RawMessage
			content, err = ask(ctx, p, q)
			if err == nil {
				return batch.Answer{Content: content, Took: time.Since(began)}, nil
			}
			used = p
		}
		pause := tryAfter
		var failure *link.Failure
		wait, refused := refusedFor(err)
		switch {
		case refused && pauses < maxPauses:
			pause, used = wait, nil
			pauses++
		case !errors.As(err, &failure):
			return batch.Answer{}, err
		case failure.Reason == reason.Unauthorized:
			return batch.Answer{}, &batch.Failure{Reason: failure.Reason, Err: err, Lost: true}
		case !gone(failure):
			return batch.Answer{}, &batch.Failure{Reason: failure.Reason, Err: err}
		case failure.MaybeDelivered:
			return batch.Answer{}, r.check(ctx, used, q, failure)
		default:
			last = err
			attempt++
		}
		select {
		case <-time.After(pause):
		case <-q.Stop:
			return batch.Answer{}, &batch.Failure{Err: batch.ErrInterrupted, Lost: true}
		}
	}
	last = fmt.Errorf("lost the router: %w", last)
	return batch.Answer{}, &batch.Failure{Reason: reason.Unavailable, Err: last, Lost: true}
}

// check returns the failure of a question that may have reached the router. It is Lost if the router does not return.
func (r *reconnecting) check(ctx context.Context, used *peer, q batch.Question, failure *link.Failure) error {
	f := &batch.Failure{Reason: reason.OutcomeUnknown, Err: failure, Sent: true}
	for range comeBack {
		if _, err := r.get(ctx, used); err == nil {
			return f
		}
		select {
		case <-time.After(tryAfter):
		case <-q.Stop:
			return f
		}
	}
	f.Lost = true
	return f
}

// gone reports whether the router failed, not the question.
func gone(f *link.Failure) bool {
	return f.Lost || f.Unknown || f.Reason == reason.Unavailable || f.Reason == reason.Disconnected
}

// refusedFor reports whether err is a rate limit or an overload, and how long to wait.
func refusedFor(err error) (wait time.Duration, refused bool) {
	var exit *exitError
	if errors.As(err, &exit) && strings.HasPrefix(exit.text, limit.Exceeded) {
		seconds := 0
		if _, err := fmt.Sscanf(strings.TrimPrefix(exit.text, limit.Exceeded), ": retry in %d", &seconds); err == nil {
			return time.Duration(seconds) * time.Second, true
		}
		return turnAway, true
	}
	var failure *link.Failure
	if errors.As(err, &failure) && failure.Reason == reason.Overloaded {
		return max(failure.After, turnAway), true
	}
	return 0, false
}

// ask sends one question to process_query.
func ask(ctx context.Context, p *peer, q batch.Question) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, q.Bound())
	defer cancel()
	result, err := p.answer(ctx, router.ToolProcessQuery, question{Query: q.Query, Detail: "full", Context: q.Context,
		Servers: q.Servers, Plan: q.Plan, Rounds: q.MaxRounds, Seconds: max(q.Limit, 0).Seconds()}, nil)
	var exit *exitError
	if errors.As(err, &exit) && !strings.HasPrefix(exit.text, limit.Exceeded) {
		return nil, &batch.Failure{Reason: reasonRefused, Err: errors.New(exit.text)}
	}
	if err != nil {
		return nil, err
	}
	return result.StructuredContent, nil
}

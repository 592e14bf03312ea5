package execution

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// maxLoopArguments limits the total size, in bytes, of the arguments of a loop's calls.
const maxLoopArguments = 64 << 20

// loop is a step that calls its tool, or computes its value, once per element of a list. The elements do not change
// once it is prepared.
type loop struct {
	scope    *plan.Scope
	elements []element
	outcomes []plan.Outcome // by element
	open     int            // elements without an outcome
	settled  []bool
	began    time.Duration
	tracker  *tracker
}

// element is one element of the list and the arguments of its call.
type element struct {
	plan.Item
	arguments json.RawMessage // nil if there is no call
	from      downstream.Provenance
}

// prepare determines the calls of a loop. If there are none, the returned outcome is that of the step.
func (s *schedule) prepare(ctx context.Context, step plan.Step) (plan.Outcome, *loop) {
	scope := step.Scope(s.isStep, s.value)
	if !scope.PerElement() {
		if wanted, err := scope.Wanted(ctx, nil); err != nil || !wanted {
			return plan.Outcome{Err: err, Skipped: err == nil}, nil
		}
	}
	items, err := scope.Elements(ctx)
	if err != nil {
		return plan.Outcome{Err: err}, nil
	}
	l := &loop{scope: scope, outcomes: make([]plan.Outcome, len(items)), settled: make([]bool, len(items)),
		began: s.elapsed()}
	var calls []json.RawMessage
	var called []int // their elements
	size := 0
	for i, item := range items {
		if ctx.Err() != nil {
			return plan.Outcome{Err: ended(ctx)}, nil
		}
		arguments, o, ready := s.arguments(ctx, scope, step, &item)
		if size += len(arguments); size > maxLoopArguments {
			return plan.Outcome{Err: &plan.Error{Reason: reason.TooLarge, Message: "the arguments of this loop exceed 64 MiB in total; nothing was called"}}, nil
		}
		l.elements = append(l.elements, element{Item: item})
		if !ready {
			o.Sent = nil
			l.outcomes[i], l.settled[i] = o, true
			continue
		}
		l.elements[i].arguments = arguments
		calls, called = append(calls, arguments), append(called, i)
	}
	l.open = len(calls)
	if l.open == 0 {
		return l.outcome(s), nil
	}
	decisions, refused := s.allow(ctx, step, calls)
	for k, d := range decisions {
		if l.elements[called[k]].from = d.From; d.Err != nil {
			l.fail(s, called[k], d.Err)
		}
	}
	switch {
	case refused != nil:
		o := l.cut(s, refused)
		o.Err, o.Value = refused, nil // replaces failures of single elements: no call was made
		return o, nil
	case l.open == 0:
		return l.outcome(s), nil
	}
	return plan.Outcome{}, l
}

// unroll makes the calls of a loop ready to run.
func (s *schedule) unroll(i int, l *loop) {
	s.loops[i] = l
	l.tracker = s.tracker.within(i, len(l.elements))
	var units []unit
	for k := range l.elements {
		if l.settled[k] {
			l.tracker.finish(k)
			continue
		}
		units = append(units, unit{i, k})
	}
	s.enqueue(units...)
}

// finishElement records the outcome of one call of a loop. The last one completes the step.
func (s *schedule) finishElement(u unit, o plan.Outcome) {
	l := s.loops[u.step]
	l.outcomes[u.element], l.settled[u.element] = o, true
	l.tracker.finish(u.element)
	if l.open--; l.open == 0 {
		s.finish(u.step, l.outcome(s))
	}
}

// cut ends a loop early: its open calls fail with err.
func (l *loop) cut(s *schedule, err *plan.Error) plan.Outcome {
	for i := range l.outcomes {
		if !l.settled[i] {
			l.fail(s, i, err)
		}
	}
	return l.outcome(s)
}

// fail records that the call of an element is not made.
func (l *loop) fail(s *schedule, i int, err *plan.Error) {
	l.outcomes[i], l.settled[i] = s.failure(err), true
	l.outcomes[i].Sent = l.elements[i].arguments
	l.open--
}

// outcome joins the outcomes of the calls. The step fails only if every call failed.
func (l *loop) outcome(s *schedule) plan.Outcome {
	o := plan.Outcome{Elements: l.outcomes, Started: l.began, Duration: s.elapsed() - l.began}
	var first *plan.Error
	failed, skipped, same := 0, 0, true
	for i := range l.outcomes {
		c := &l.outcomes[i]
		c.Index = i
		c.Step = l.scope.Step()
		o.Attempts += c.Attempts
		switch {
		case c.Err != nil:
			c.Value, c.Err = nil, s.masked(c.Err)
			failed++
			first = cmp.Or(first, c.Err)
			same = same && *c.Err == *first
		case c.Skipped:
			skipped++
		}
	}
	switch n := len(l.outcomes) - skipped; {
	case failed > 0 && failed == n && same:
		o.Err = first
	case failed > 0 && failed == n:
		o.Err = &plan.Error{Reason: first.Reason, Message: fmt.Sprintf("all %d calls failed, the first one: %s", n,
			first.Message)}
	default:
		o.Value = plan.List(l.outcomes)
	}
	return o
}

package router

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/texts"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
	"github.com/agenticnexus/agenticnexus/synth"
)

// compose writes the answer, or describes the plan of a dry run. late means that the query's time for steps has run
// out. If the writer may ask for another round and does so, compose reports false: the record has what the answer
// lacks.
func (s *queryState) compose(ctx context.Context, late, mayAsk bool) (written bool) {
	begin := sync.OnceFunc(func() { // no step will follow
		if len(s.record.Outcomes) > 0 && s.record.Plan.Tools() > 0 {
			s.q.Report.milestone(atExecuted, "All tools complete")
		}
		if !s.q.DryRun {
			s.q.Report.milestone(atSynthesizing, "Synthesizing response...")
		}
	})
	if !mayAsk {
		begin()
	}
	s.record.Unmet = s.record.unmetParts(s.q.Text)
	s.record.Unmet = append(s.record.Unmet, s.omittedCommands()...)
	if late && len(s.record.Unmet) == 0 && len(s.record.Outcomes) == 0 {
		s.record.Unmet = []plan.Unmet{{Text: s.q.Text, Reason: plan.UnmetFailed}}
	}
	if s.record.NeedsApproval {
		var left []plan.Step
		waiting := &s.record.pending
		waiting.Sequential = s.record.Plan.Sequential
		waiting.Steps, left = s.record.Plan.Pending(s.record.Outcomes, s.reads)
		for _, step := range left {
			s.warn("step %s is not part of the plan to approve: it needs more of a write that was made than its result; "+
				"ask for it anew", step.Label())
		}
		waiting.Approval = s.router.approvals.seal(waiting, &s.q.Origin, time.Now())
	}
	degraded := late || len(s.record.Unmet) > 0
	request := synth.Request{
		Query: s.q.Text, Context: s.q.Context, Outcomes: s.record.forAnswer(), Unmet: s.record.Unmet,
		Note: s.record.withSkipped(s.note), Model: s.model(), MayAsk: mayAsk,
		OnText: func(text string) {
			begin()
			s.q.Report.answer(s.clean(text))
		},
	}
	switch {
	case s.q.DryRun:
		s.record.Answer = synth.Answer{Text: describePlan(s.record.Plan, request)}
	case s.record.NeedsApproval && !slices.ContainsFunc(s.record.Outcomes, plan.Outcome.OK):
		s.record.Answer = synth.Answer{Text: synth.Digest(request)}
	default:
		s.synthesize(ctx, request)
	}
	if s.record.Answer.Lacks != "" {
		return false
	}
	begin()
	if s.record.NeedsApproval {
		s.record.Answer.Text += "\n\n" + s.approvalNote()
	}
	s.record.Answer.Text = s.clean(s.record.Answer.Text) // whoever wrote it, it repeats servers
	s.record.Answer.Degraded = s.record.Answer.Degraded || degraded
	return true
}

// forAnswer returns the outcomes that the answer is written from. It leaves out skipped steps and adds the failed
// calls of loops.
func (r *Record) forAnswer() (out []plan.Outcome) {
	for _, o := range r.Outcomes {
		if !o.Skipped {
			out = append(out, o)
		}
		if partly, ok := o.PartialFailure(); ok {
			out = append(out, partly)
		}
	}
	return out
}

// withSkipped appends the skipped steps to a note.
func (r *Record) withSkipped(note string) string {
	var ids []string
	for _, o := range r.Outcomes {
		if o.Skipped {
			ids = append(ids, o.Step.Label())
		}
	}
	if len(ids) == 0 {
		return note
	}
	return strings.TrimSpace(note + "\nSkipped, because a condition of the plan was false: " + texts.Line(strings.Join(ids, ", "), 500) + ".")
}

func (s *queryState) synthesize(ctx context.Context, request synth.Request) {
	ctx, span := s.router.tracer.Start(ctx, tracing.SpanSynthesis)
	defer span.End()
	began := time.Now()
	usage := s.record.Answer.Usage // of a request for another round
	s.record.Answer = s.router.synth.Compose(ctx, request)
	usage.Add(s.record.Answer.Usage)
	s.record.Answer.Usage = usage
	s.record.Warnings = append(s.record.Warnings, s.record.Answer.Warnings...)
	s.record.Timings.Synthesizing += s.record.phase(PhaseSynthesis, s.began, began)
	if s.record.Answer.Degraded {
		s.record.Fallbacks = append(s.record.Fallbacks, PhaseSynthesis)
		s.router.tracer.Fail(span, tracing.ErrorOfModel, "")
	}
}

// describePlan returns the answer of a dry run: the plan and the unmet parts.
func describePlan(p plan.Plan, request synth.Request) string {
	if len(p.Steps) == 0 {
		return synth.Digest(request)
	}
	var b strings.Builder
	b.WriteString("Nothing was called. The plan:")
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "\n- %s: ", s.ID)
		if s.Computes() {
			b.WriteString("computed without a tool")
		} else {
			fmt.Fprintf(&b, "%s(%s)", s.Tool, texts.Cut(string(s.Arguments), 500))
		}
		if len(s.After) > 0 {
			fmt.Fprintf(&b, " after %s", strings.Join(s.After, ", "))
		}
		for _, part := range []struct{ name, text string }{{"each", s.Each}, {"when", s.When}, {"pick", s.Pick}} {
			if part.text != "" {
				fmt.Fprintf(&b, ", %s %s", part.name, texts.Line(part.text, 200))
			}
		}
	}
	if len(request.Unmet) > 0 {
		b.WriteString("\n\n" + synth.Digest(request))
	}
	return b.String()
}

// approvalNote lists the calls that wait for approval and explains how to approve them.
func (s *queryState) approvalNote() string {
	var b strings.Builder
	b.WriteString("These calls need your approval and were not made:\n")
	flows, writes := s.record.Plan.Flows(), false
	made := (&decider{s: s}).earlier()
	for _, o := range s.record.Outcomes {
		waits := func(c plan.Outcome) bool { return c.Failed() && c.Err.Reason == reason.NeedsApproval }
		id, arguments, more := o.Step.ID, o.Step.Arguments, 0
		switch {
		case waits(o):
			calls := slices.DeleteFunc(slices.Clone(o.Calls()), func(c plan.Outcome) bool { return !waits(c) })
			arguments, more = calls[0].Sent, len(calls)-1
		case o.Failed() && o.Err.Reason == reason.DependencyFailed && !o.Step.Computes() && s.record.pending.Step(id) != nil:
			id += ", after those" // it is approved with them
		default:
			continue
		}
		fmt.Fprintf(&b, "- %s: %s of server %s with %s", id, printable(o.Step.Tool, maxShownName), o.Step.Server,
			printable(string(arguments), maxShownArguments))
		if more > 0 {
			fmt.Fprintf(&b, " and %d more of this loop", more)
		}
		if tool, ok := (&decider{s: s}).toolOf(o.Step); ok && made[plan.CallKey(tool.Server, tool.Tool, arguments)] {
			b.WriteString(". This exact call was made before")
		}
		if flow := s.router.describeFlow(flows[o.Step.ID], o.Step.Server); flow != "" {
			b.WriteString(". " + flow)
		}
		b.WriteByte('\n')
		writes = writes || !s.reads(o.Step)
	}
	if writes && s.router.opts.Execution.ConfirmWrites == downstream.ConfirmAlways {
		b.WriteString("To approve, use a client that can be asked, nexus query --yes, or call them with run.")
	} else {
		b.WriteString("To approve, give the plan of this result back within an hour, unchanged: as the argument plan, or with " +
			"nexus query --plan FILE; nexus query --yes approves at once.")
	}
	return b.String()
}

// Limits of the summary that describeTools returns.
const (
	maxToldServers = 20
	maxTold        = 4 << 10 // bytes about the tools of all servers
	maxToldTools   = 3       // of a server with their descriptions
	maxToldText    = 100     // bytes of a description
)

// describeTools describes what the caller can do: the visible servers, how many tools each has, their names and, where
// there is room, what a few of them are for.
func describeTools(catalog *downstream.Catalog, visible downstream.Visible) string {
	var servers []string
	tools := map[string][]*downstream.Tool{}
	count := 0
	for t := range catalog.See(visible) {
		if tools[t.Server] == nil {
			servers = append(servers, t.Server)
		}
		tools[t.Server] = append(tools[t.Server], t)
		count++
	}
	if count == 0 {
		return "No tools are connected."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "I can use %s of %s:", plural(count, "tool"), plural(len(servers), "server"))
	for i, name := range servers {
		if i == maxToldServers {
			fmt.Fprintf(&b, "\n- and %s", plural(len(servers)-i, "more server"))
			break
		}
		fmt.Fprintf(&b, "\n- %s (%s): %s", name, plural(len(tools[name]), "tool"),
			describeEach(tools[name], maxTold/min(len(servers), maxToldServers)))
	}
	b.WriteString("\nAsk in your own words, or see all tools with list_available_tools.")
	return b.String()
}

// describeEach lists tools of one server in room bytes.
func describeEach(tools []*downstream.Tool, room int) string {
	var told []string
	for _, t := range tools {
		name := texts.Line(t.Name, maxShownName)
		if room -= len(name) + len("; "); room < 0 {
			break
		}
		told = append(told, name)
	}
	for i := range told[:min(len(told), maxToldTools)] {
		text := texts.Line(tools[i].Description, maxToldText)
		if room -= len(text) + len(" – "); room < 0 {
			break
		}
		if text != "" {
			told[i] += " – " + text
		}
	}
	if more := len(tools) - len(told); more > 0 {
		told = append(told, plural(more, "other"))
	}
	return strings.Join(told, "; ")
}

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

package synth

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Bounds of the text about a failure or unmet part, in bytes.
const (
	maxFailure   = 300
	maxUnmetText = 200
	maxToolLabel = 120
)

// Headings of failed steps.
const (
	someFailed = "Not everything worked:"
	allFailed  = "No tool brought a result:"
)

// gaps are what an answer lacks: the failed steps and the unmet parts of the question.
type gaps struct {
	outcomes []plan.Outcome
	unmet    []plan.Unmet
	note     string      // of the planner
	step     map[int]int // unmet part → the failed outcome that is its cause
}

func gapsOf(req Request) gaps {
	g := gaps{outcomes: req.Outcomes, unmet: req.Unmet, note: req.Note, step: map[int]int{}}
	taken := map[int]bool{}
	for i, part := range req.Unmet {
		for j, o := range req.Outcomes {
			if !o.OK() && !taken[j] && causes(o.Step, part) {
				g.step[i], taken[j] = j, true
				break
			}
		}
	}
	return g
}

// causes reports whether a part of the question may be unmet because the step failed.
func causes(step plan.Step, part plan.Unmet) bool {
	if part.Step != "" {
		return step.ID == part.Step
	}
	switch part.Reason {
	case plan.UnmetFailed, plan.UnmetDeclined, plan.UnmetNeedsApproval:
		return part.Tool != "" && step.Tool == part.Tool
	}
	return false
}

// lines lists the failed steps below a heading, then the unmet parts. It leaves out what the draft marks, and steps
// that the line of a part names.
func (g gaps) lines(heading string, d *draft) []string {
	var failures, parts []string
	told := map[int]bool{}
	for i, part := range g.unmet {
		cause, caused := g.step[i]
		if d.notDone[i] || caused && d.failed[g.outcomes[cause].Step.ID] {
			continue
		}
		told[cause] = told[cause] || caused
		parts = append(parts, "Not done: "+quoted(part.Text)+", because "+g.because(i)+".")
	}
	for i, o := range g.outcomes {
		if !o.OK() && !told[i] && !d.failed[o.Step.ID] {
			failures = append(failures, "- "+failureLine(o))
		}
	}
	var lines []string
	if len(failures) > 0 {
		lines = append(lines, heading+"\n"+strings.Join(failures, "\n"))
	}
	if len(parts) > 1 {
		lines = append(lines, "- "+strings.Join(parts, "\n- "))
	} else {
		lines = append(lines, parts...)
	}
	return lines
}

// quoted quotes a part of the question, unless it already contains quotation marks.
func quoted(text string) string {
	text = texts.Line(text, maxUnmetText)
	if strings.Contains(text, `"`) {
		return text
	}
	return `"` + text + `"`
}

// because explains why a part of the question is unmet.
func (g gaps) because(i int) string {
	part := g.unmet[i]
	tool := texts.Line(part.Tool, maxToolLabel)
	subject := cmp.Or(tool, "it")
	if strings.HasPrefix(part.Text, subject) { // a call that stands for a part
		subject = "it"
	}
	if cause, ok := g.step[i]; ok {
		failed := g.outcomes[cause]
		message := strings.TrimRight(failureMessage(failed), ".")
		switch {
		case failed.Err.Reason == reason.DependencyFailed:
			return subject + " was not called: " + message
		case part.Reason == plan.UnmetDeclined:
			return subject + " was not allowed: " + message
		case part.Reason == plan.UnmetFailed:
			return subject + " failed: " + message
		}
	}
	switch part.Reason {
	case plan.UnmetNoTool:
		return "no tool fits" + g.nearest(part)
	case plan.UnmetMissingArgument:
		if len(part.Missing) == 0 {
			return subject + " needs something that is not given"
		}
		return subject + " needs " + listed(part.Missing)
	case plan.UnmetNeedsApproval:
		return subject + " needs your approval"
	case plan.UnmetDeclined:
		return subject + " was not allowed"
	case plan.UnmetFailed:
		if tool == "" {
			return "it could not be planned"
		}
		return tool + " failed"
	case plan.UnmetUnclear:
		if tool != "" && len(part.Missing) == 0 && len(part.Nearest) == 0 {
			return "it is no plain command; write one, with texts in quotes, if " + tool + " is to be called"
		}
		return "it is not clear what to do"
	}
	return texts.Line(part.Reason, maxFailure)
}

// nearest names the nearest tools and their missing arguments, unless the planner's note does.
func (g gaps) nearest(part plan.Unmet) string {
	nearest := part.Nearest
	if len(nearest) == 0 && part.Tool != "" {
		nearest = []plan.Nearest{{Tool: part.Tool, Missing: part.Missing}}
	}
	var names []string
	for _, n := range nearest[:min(len(nearest), 3)] {
		if strings.Contains(g.note, n.Tool) {
			continue
		}
		name := texts.Line(n.Tool, maxToolLabel)
		if len(n.Missing) > 0 {
			name += " (needs " + listed(n.Missing) + ")"
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return ""
	}
	return "; closest: " + strings.Join(names, ", ")
}

// listed writes names as "a, b and c".
func listed(names []string) string {
	const most = 10
	var parts []string
	for _, name := range names[:min(len(names), most)] {
		parts = append(parts, texts.Line(name, maxToolLabel))
	}
	if len(names) > most {
		parts = append(parts, fmt.Sprintf("%d more", len(names)-most))
	}
	last := len(parts) - 1
	if last == 0 {
		return parts[0]
	}
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}

// unmetID returns the id of an unmet part in marks and prompts.
func unmetID(i int) string { return fmt.Sprintf("n%d", i+1) }

// failureLine returns "tool: message" on one line, or the message alone if it begins or ends with the tool.
func failureLine(o plan.Outcome) string {
	tool, message := toolLabel(o), failureMessage(o)
	if strings.HasPrefix(message, tool) || strings.HasSuffix(message, tool) {
		return message
	}
	return tool + ": " + message
}

func failureMessage(o plan.Outcome) string {
	return texts.Line(strings.TrimPrefix(o.Err.Message, "Error: "), maxFailure)
}

func toolLabel(o plan.Outcome) string {
	return texts.Line(cmp.Or(o.Step.Tool, "step "+o.Step.ID), maxToolLabel)
}

package synth

import (
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Bounds of a digest, in bytes.
const (
	maxDigest = 32 << 10 // of all results together
	maxPart   = 4 << 10  // of one
	minPart   = 300      // of one, however many there are
)

// Digest shows the results as they are: a part for each step, in the order of the plan, then the gaps.
func Digest(req Request) string {
	var parts []string
	limit := max(min(maxPart, maxDigest/max(len(req.Outcomes), 1)), minPart)
	steps := map[string]int{}
	for _, o := range req.Outcomes {
		if o.OK() {
			steps[o.Step.Tool]++
		}
	}
	for _, o := range req.Outcomes {
		if o.OK() {
			parts = append(parts, part(o, limit, steps[o.Step.Tool] > 1))
		}
	}
	heading := someFailed
	if len(parts) == 0 {
		heading = allFailed
	}
	lines := gapsOf(req).lines(heading, newDraft(req))
	switch {
	case len(req.Outcomes) > 0:
		parts = append(parts, lines...)
		if req.Note != "" {
			parts = append(parts, req.Note)
		}
	case req.Note != "":
		parts = append([]string{req.Note}, lines...)
	default:
		parts = lines
	}
	if len(parts) == 0 {
		return "No tool was called for this question. Ask \"what can you do?\" to see what there is."
	}
	return strings.Join(parts, "\n\n")
}

// modelHint suggests a model if the rules did not understand a part of the question.
func modelHint(unmet []plan.Unmet) string {
	for _, u := range unmet {
		if u.Reason == plan.UnmetNoTool || u.Reason == plan.UnmetUnclear {
			return "\n\nA language model understands more questions; the setting llm names one."
		}
	}
	return ""
}

// part returns a step's heading and its result, on the same line if it is short. If several steps use the same tool,
// their headings have the arguments, unless the result repeats them.
func part(o plan.Outcome, limit int, several bool) string {
	heading := "**" + toolLabel(o) + "**"
	text := strings.TrimSpace(texts.Plain(markdown(o.Value, limit)))
	if several && len(o.Sent) > 0 {
		arguments := strings.TrimSpace(texts.Plain(texts.Cut(parse(string(o.Sent)).inline(), maxInline)))
		if arguments != "" && !strings.Contains(text, arguments) {
			heading += " (" + arguments + ")"
		}
	}
	if names := blockNames(o.Blocks); names != "" {
		text = strings.TrimSpace(text + "\n(also: " + names + ")")
	}
	switch {
	case text == "":
		return heading + ": done"
	case !strings.Contains(text, "\n") && !strings.HasPrefix(text, "- ") && len(text) <= 200:
		return heading + ": " + text
	}
	return heading + "\n" + text
}

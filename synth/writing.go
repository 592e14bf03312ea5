package synth

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Bounds of what is written about calls, in bytes.
const (
	maxSent    = 500     // of the arguments of a call
	maxAllSent = 8 << 10 // of the arguments of all calls
	minSent    = 20      // of the arguments of a call; fewer are not worth showing
	maxCalls   = 1 << 10 // of the calls of a loop that failed
)

// writing writes calls and their outcomes for the model.
type writing struct {
	mask func(string) string // removes secrets
	sent int                 // bytes of the arguments of a call; 0 = show none
}

// newWriting returns the writing of a number of calls.
func newWriting(calls int, mask func(string) string) writing {
	sent := min(maxSent, maxAllSent/max(calls, 1))
	if sent < minSent {
		sent = 0
	}
	return writing{mask, sent}
}

// arguments returns the arguments of a call behind a text, "" if there are none to show.
func (w writing) arguments(before string, arguments json.RawMessage) string {
	if w.sent == 0 || len(arguments) == 0 || string(arguments) == "{}" {
		return ""
	}
	return before + llm.Excerpt(arguments, w.sent, w.mask)
}

// result returns the call of a step, the expression that made its value, and an excerpt of that. Images and other
// non-text blocks are only named.
func (w writing) result(o plan.Outcome, text string) string {
	if o.Step.Pick != "" {
		text = "value made by " + w.mask(texts.Line(o.Step.Pick, maxFailure)) + "\n" + text
	}
	if len(o.Elements) > 0 {
		text = "for each element of " + w.mask(texts.Line(o.Step.Each, maxFailure)) + ":\n" + text
	} else if sent := w.arguments("called with ", o.Sent); sent != "" {
		text = sent + "\n" + text
	}
	if names := blockNames(o.Blocks); names != "" {
		text += "\nThe user also gets: " + names
	}
	return text
}

// failure returns the call of a failed step and what it failed for.
func (w writing) failure(o plan.Outcome) string {
	var lines []string
	arguments := o.Sent
	if arguments == nil {
		arguments = o.Step.Arguments
	}
	switch sent := w.arguments(" with ", arguments); {
	case o.Step.Computes():
	case o.Attempts == 0:
		lines = append(lines, "not called"+sent)
	case o.MayHaveActed():
		lines = append(lines, "called"+sent+"; it may have taken effect")
	case sent != "":
		lines = append(lines, "called"+sent)
	}
	lines = append(lines, failureMessage(o))
	if len(o.Elements) > 0 {
		calls, _ := w.calls(o, 0)
		lines = append(lines, texts.Cut(calls, maxCalls))
	}
	return strings.Join(lines, "\n")
}

// calls returns the calls of a loop with their results, and the results alone. It reads look bytes of all results.
func (w writing) calls(o plan.Outcome, look int) (text, results string) {
	sizes := make([]int, len(o.Elements))
	for i, c := range o.Elements {
		sizes[i] = len(c.Value)
	}
	look = share(sizes, look)
	var lines, skipped []string
	var all strings.Builder
	for _, c := range o.Elements {
		line := "#" + strconv.Itoa(c.Index)
		switch {
		case c.Skipped:
			skipped = append(skipped, line)
			continue
		case c.Failed():
			line += w.arguments(" with ", c.Sent) + " failed: " + failureMessage(c)
		default:
			result := llm.Layout(c.Value, look, w.mask)
			all.WriteString("\n" + result)
			line += w.arguments(" with ", c.Sent) + ":"
			if strings.Contains(result, "\n") {
				line += "\n" + result
			} else {
				line += " " + result
			}
		}
		lines = append(lines, line)
	}
	if len(skipped) > 0 {
		lines = append(lines, "skipped, because its condition was false: "+texts.Line(strings.Join(skipped, ", "), maxFailure))
	}
	return strings.Join(lines, "\n"), all.String()
}

// blockNames lists the kinds of blocks, such as "image image/png".
func blockNames(blocks []json.RawMessage) string {
	var names []string
	for i, raw := range blocks {
		if i == 8 {
			names = append(names, "more")
			break
		}
		var b struct {
			Type     string `json:"type"`
			MimeType string `json:"mimeType"`
			URI      string `json:"uri"`
		}
		if json.Unmarshal(raw, &b) != nil {
			continue
		}
		names = append(names, texts.Line(strings.TrimSpace(b.Type+" "+b.MimeType+" "+b.URI), 120))
	}
	return strings.Join(names, ", ")
}

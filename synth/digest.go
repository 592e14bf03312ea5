package synth

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// Bounds of a digest, in bytes.
const (
	maxDigest = 32 << 10 // of all results together
	maxPart   = 4 << 10  // of one
	minPart   = 300      // of one, however many there are
)

// digest shows the results as they are: a part for each step, in the order of the plan, then what failed.
func digest(req Request) string {
	if len(req.Outcomes) == 0 {
		if req.Note != "" {
			return req.Note
		}
		return "No tool was called for this question, so there is nothing to show."
	}
	limit := max(min(maxPart, maxDigest/len(req.Outcomes)), minPart)
	var parts, failed []string
	for _, o := range req.Outcomes {
		if o.OK() {
			parts = append(parts, part(o, limit))
		} else {
			failed = append(failed, "- "+failureLine(o))
		}
	}
	switch {
	case len(failed) == 0:
	case len(parts) == 0:
		parts = append(parts, "No tool brought a result:\n"+strings.Join(failed, "\n"))
	default:
		parts = append(parts, "Not everything worked:\n"+strings.Join(failed, "\n"))
	}
	if req.Note != "" {
		parts = append(parts, req.Note)
	}
	return strings.Join(parts, "\n\n")
}

// part is a step's heading and its result: on one line if it is short, below otherwise.
func part(o plan.Outcome, limit int) string {
	heading := "**" + toolLabel(o) + "**"
	text := clean(markdown(o.Value, limit))
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

// clean removes what could play tricks on a terminal.
func clean(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || !unicode.IsControl(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, "\uFFFD")))
}

// page is text that is written line by line up to a limit.
type page struct {
	text  strings.Builder
	limit int
	left  int // lines that found no room
}

func (p *page) line(indent int, format string, args ...any) {
	line := strings.Repeat("  ", indent) + fmt.Sprintf(format, args...)
	if p.left > 0 || p.text.Len()+len(line) > p.limit {
		p.left++
		return
	}
	p.text.WriteString(line)
	p.text.WriteByte('\n')
}

func (p *page) String() string {
	text := strings.TrimRight(p.text.String(), "\n")
	if p.left > 0 {
		text = strings.TrimSpace(text + fmt.Sprintf("\n… (%d more lines)", p.left))
	}
	return text
}

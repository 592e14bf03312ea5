package synth

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

// draft is a model's answer as it comes in: what the user gets to see of it, and what its marks say. Each piece is read
// once, so that showing the growing answer costs no more than the answer itself.
type draft struct {
	steps map[string]*plan.Outcome
	unmet []plan.Unmet

	pending   string          // not settled: a tag or mark that may go on
	reasoning bool            // between think tags
	tagged    bool            // a tag has come
	text      strings.Builder // settled
	claims    []Citation      // what the marks claim, in order, each once; the quotes are not verified
	claimed   map[Citation]bool
	failed    map[string]bool // steps that are marked as failed
	notDone   map[int]bool    // unmet parts that are marked as not done
}

// maxClaims bounds what one answer claims.
const maxClaims = 1000

const (
	thinkBegin = "<think>"
	thinkEnd   = "</think>"
)

func newDraft(steps map[string]*plan.Outcome, unmet []plan.Unmet) *draft {
	return &draft{
		steps: steps, unmet: unmet, claimed: map[Citation]bool{}, failed: map[string]bool{}, notDone: map[int]bool{},
	}
}

// stepsByID returns the outcomes by the ids that marks name them with.
func stepsByID(outcomes []plan.Outcome) map[string]*plan.Outcome {
	steps := make(map[string]*plan.Outcome, len(outcomes))
	for i := range outcomes {
		steps[outcomes[i].Step.ID] = &outcomes[i]
	}
	return steps
}

// shown is the answer so far.
func (d *draft) shown() string { return strings.TrimSpace(d.text.String()) }

// add reads another piece. The last piece settles what is pending.
func (d *draft) add(piece string, last bool) {
	d.pending += piece
	for d.pending != "" {
		n := d.settle(last)
		if n == 0 {
			return
		}
		d.pending = d.pending[n:]
	}
}

// settle reads the beginning of what is pending and returns its size, 0 if it needs more.
func (d *draft) settle(last bool) int {
	if d.reasoning {
		return d.skipReasoning(last)
	}
	text := d.pending
	plain := strings.IndexAny(text, "<[")
	if plain < 0 {
		plain = len(text)
	}
	if plain > 0 {
		d.text.WriteString(text[:plain])
		return plain
	}
	if text[0] == '[' {
		return d.readMark(last)
	}
	switch {
	case strings.HasPrefix(text, thinkBegin):
		d.reasoning, d.tagged = true, true
		return len(thinkBegin)
	case strings.HasPrefix(text, thinkEnd) && !d.tagged: // some chat templates leave the end alone
		*d = *newDraft(d.steps, d.unmet)
		d.pending, d.tagged = text, true
		return len(thinkEnd)
	case !last && (strings.HasPrefix(thinkBegin, text) || strings.HasPrefix(thinkEnd, text)):
		return 0
	}
	d.text.WriteByte('<')
	return 1
}

// skipReasoning drops what a model writes between think tags. Reasoning that never ends takes the rest with it.
func (d *draft) skipReasoning(last bool) int {
	if i := strings.Index(d.pending, thinkEnd); i >= 0 {
		d.reasoning = false
		return i + len(thinkEnd)
	}
	if last {
		return len(d.pending)
	}
	return max(0, len(d.pending)-len(thinkEnd)+1)
}

func (d *draft) readMark(last bool) int {
	m, size, as := readMark(d.pending)
	switch {
	case as == isMark:
		d.text.WriteString(d.render(m, d.pending[:size]))
		return size
	case as == perhaps && !last:
		return 0
	}
	d.text.WriteByte('[')
	return 1
}

// render is what the user sees of a mark.
func (d *draft) render(m mark, written string) string {
	switch m.kind {
	case saysFailed:
		return d.renderFailed(m, written)
	case saysNotDone:
		return d.renderNotDone(m, written)
	}
	return d.cite(m)
}

// cite takes note of what a mark claims, and leaves out its quote and what is no step. A mark with a quote that names
// no step that worked is removed, for it claims evidence that is not there; one without a quote that names no step at
// all may be anything and stays.
func (d *draft) cite(m mark) string {
	var steps []string
	known := false
	for _, id := range m.ids {
		o := d.steps[id]
		if o == nil {
			continue
		}
		steps = append(steps, id)
		if o.OK() {
			known = true
			d.claim(Citation{Step: id, Quote: m.quote})
		}
	}
	switch {
	case m.quote != "" && !known:
		return ""
	case len(steps) > 0 && len(steps) < len(m.ids):
		return "[" + strings.Join(steps, ", ") + "]"
	}
	return "[" + m.names + "]"
}

func (d *draft) claim(c Citation) {
	if !d.claimed[c] && len(d.claims) < maxClaims {
		d.claimed[c] = true
		d.claims = append(d.claims, c)
	}
}

// renderFailed names the tools of failed steps: [s3 failed] becomes [s3: send_email failed]. What it says of other
// steps is left out; without any step it may be anything and stays.
func (d *draft) renderFailed(m mark, written string) string {
	var names []string
	for _, id := range m.ids {
		if o := d.steps[id]; o != nil && !o.OK() {
			d.failed[id] = true
			names = append(names, id+": "+toolLabel(*o)+" failed")
		}
	}
	switch {
	case len(names) > 0:
		return "[" + strings.Join(names, ", ") + "]"
	case slices.ContainsFunc(m.ids, func(id string) bool { return d.steps[id] != nil }):
		return ""
	}
	return written
}

// renderNotDone names parts of the question: [n1 not done] becomes [not done: email them].
func (d *draft) renderNotDone(m mark, written string) string {
	var names []string
	for i, u := range d.unmet {
		if slices.Contains(m.ids, unmetID(i)) {
			d.notDone[i] = true
			names = append(names, short.Line(u.Text, maxUnmetText))
		}
	}
	if len(names) == 0 {
		return written
	}
	return "[not done: " + strings.Join(names, "; ") + "]"
}

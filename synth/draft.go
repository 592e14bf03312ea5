package synth

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

// draft is a model's answer while it streams: the text for the user, and the claims of its marks. Each piece is read
// once, so that showing the growing answer takes linear time.
type draft struct {
	steps map[string]*plan.Outcome
	unmet []plan.Unmet

	pending   string          // an incomplete tag or mark
	reasoning bool            // between think tags
	tagged    bool            // a think tag was read
	text      strings.Builder // complete
	claims    []Citation      // citations in order, each once, with unverified quotes
	claimed   map[Citation]bool
	failed    map[string]bool // steps that are marked as failed
	notDone   map[int]bool    // unmet parts that are marked as not done
}

// maxClaims bounds the claims of an answer.
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

// stepsByID returns the outcomes by their ids in marks.
func stepsByID(outcomes []plan.Outcome) map[string]*plan.Outcome {
	steps := make(map[string]*plan.Outcome, len(outcomes))
	for i := range outcomes {
		steps[outcomes[i].Step.ID] = &outcomes[i]
	}
	return steps
}

// shown returns the answer so far.
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

// settle reads the beginning of the pending text and returns the number of bytes read, or 0 if it needs more.
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
	case strings.HasPrefix(text, thinkEnd) && !d.tagged: // some chat templates keep only the end tag
		*d = *newDraft(d.steps, d.unmet)
		d.pending, d.tagged = text, true
		return len(thinkEnd)
	case !last && (strings.HasPrefix(thinkBegin, text) || strings.HasPrefix(thinkEnd, text)):
		return 0
	}
	d.text.WriteByte('<')
	return 1
}

// skipReasoning drops the text between think tags. Without an end tag it drops the rest.
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

// render returns the text of a mark for the user.
func (d *draft) render(m mark, written string) string {
	switch m.kind {
	case saysFailed:
		return d.renderFailed(m, written)
	case saysNotDone:
		return d.renderNotDone(m, written)
	}
	return d.cite(m)
}

// cite records the claims of a mark, and removes its quote and unknown steps. It removes a mark with a quote that names
// no successful step, because the evidence does not exist. A mark without a quote that names no step at all is ordinary
// text and stays.
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

// renderFailed names the tools of failed steps: [s3 failed] becomes [s3: send_email failed]. It drops other steps. A
// mark that names no step is ordinary text and stays.
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

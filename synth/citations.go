package synth

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agenticnexus/agenticnexus/internal/pattern"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Citation is a reference of an answer to a step.
type Citation struct {
	Step  string `json:"step"`
	Quote string `json:"quote,omitempty"` // verbatim from the step's result
}

// Bounds of marks and citations.
const (
	maxMark      = 4 << 10 // bytes of a mark
	maxQuote     = 400     // characters of a quote
	maxClaims    = 1000    // citations that a model writes
	maxCitations = 256     // citations of an answer
	maxLacks     = 300     // bytes of what a model asks for
)

// markPattern matches a mark, a bracketed reference in a model's answer to the sources of a statement or to failures:
//
//	[s1]  [s1, s2]  [s1: "words of the result"]  [s3 failed]  [n1 not done]
var markPattern = pattern.New(
	`^\[([\w.-]{1,64}(?: *[,;] *[\w.-]{1,64})*)(?:: *["“”]([^"“”\]\n]+)["“”]| +(failed|not done))? *\]`)

// morePattern matches the mark at the beginning of a reply that asks for more results.
var morePattern = pattern.New(`^\[more:([^\]\n]*[^\]\s][^\]\n]*)(?:\]|\n|$)`)

var idPattern = pattern.New(`[\w.-]+`)

const (
	thinkBegin = "<think>"
	thinkEnd   = "</think>"
)

// draft is a model's answer while it streams: the text for the user, and the claims of its marks. Each piece is read
// once, so that showing the growing answer takes linear time.
type draft struct {
	steps  map[string]*plan.Outcome // by id
	unmet  []plan.Unmet
	mayAsk bool

	pending   string          // an incomplete tag or mark
	reasoning bool            // between think tags
	tagged    bool            // a think tag was read
	text      strings.Builder // complete
	lacks     string          // what the model asks for
	claims    []Citation      // citations in order, each once, with unverified quotes
	failed    map[string]bool // steps that are marked as failed
	notDone   map[int]bool    // unmet parts that are marked as not done
}

func newDraft(req Request) *draft {
	d := &draft{
		steps: map[string]*plan.Outcome{}, unmet: req.Unmet, mayAsk: req.MayAsk,
		failed: map[string]bool{}, notDone: map[int]bool{},
	}
	for i := range req.Outcomes {
		d.steps[req.Outcomes[i].Step.ID] = &req.Outcomes[i]
	}
	return d
}

// shown returns the answer so far.
func (d *draft) shown() string { return strings.TrimSpace(d.text.String()) }

// asks reports whether the model asks for more results, and may. Whatever else it writes is void.
func (d *draft) asks() bool { return d.mayAsk && d.lacks != "" }

// add reads another piece. The last piece settles what is pending.
func (d *draft) add(piece string, last bool) {
	d.pending += piece
	for d.pending != "" && !d.asks() {
		n := d.settle(last)
		if n == 0 {
			return
		}
		d.pending = d.pending[n:]
	}
}

// settle reads the beginning of the pending text and returns the number of bytes read, or 0 if it needs more.
func (d *draft) settle(last bool) int {
	text := d.pending
	if d.reasoning {
		return d.skipReasoning(last)
	}
	if plain := strings.IndexAny(text, "<["); plain != 0 {
		if plain < 0 {
			plain = len(text)
		}
		d.text.WriteString(text[:plain])
		return plain
	}
	switch {
	case text[0] == '[':
		return d.readMark(last)
	case strings.HasPrefix(text, thinkBegin):
		d.reasoning, d.tagged = true, true
		return len(thinkBegin)
	case strings.HasPrefix(text, thinkEnd) && !d.tagged: // some chat templates keep only the end tag
		*d = draft{
			steps: d.steps, unmet: d.unmet, mayAsk: d.mayAsk, pending: text, tagged: true,
			failed: map[string]bool{}, notDone: map[int]bool{},
		}
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

// readMark reads a mark, or a bracket that begins none. It needs more text until the bracket or the line ends.
func (d *draft) readMark(last bool) int {
	if !last && len(d.pending) < maxMark && !strings.ContainsAny(d.pending, "]\n") {
		return 0
	}
	if m := morePattern().FindStringSubmatch(d.pending); m != nil && d.lacks == "" && d.shown() == "" {
		d.lacks = texts.Line(m[1], maxLacks)
		return len(m[0])
	}
	m := markPattern().FindStringSubmatch(d.pending[:min(len(d.pending), maxMark)])
	if m == nil || utf8.RuneCountInString(m[2]) > maxQuote {
		d.text.WriteByte('[')
		return 1
	}
	ids := idPattern().FindAllString(m[1], -1)
	switch m[3] {
	case "failed":
		d.text.WriteString(d.renderFailed(ids, m[0]))
	case "not done":
		d.text.WriteString(d.renderNotDone(ids, m[0]))
	default:
		d.text.WriteString(d.cite(ids, m[2], m[0]))
	}
	return len(m[0])
}

// cite records the claims of a mark, and removes its quote and unknown steps. It removes a mark with a quote that names
// no successful step, because the evidence does not exist. A mark without a quote that names no step at all is ordinary
// text and stays.
func (d *draft) cite(ids []string, quote, written string) string {
	var steps []string
	evidence := false
	for _, id := range ids {
		o := d.steps[id]
		if o == nil {
			continue
		}
		steps = append(steps, id)
		if o.OK() {
			evidence = true
			if c := (Citation{id, quote}); len(d.claims) < maxClaims && !slices.Contains(d.claims, c) {
				d.claims = append(d.claims, c)
			}
		}
	}
	switch {
	case quote != "" && !evidence:
		return ""
	case len(steps) == 0:
		return written
	}
	return "[" + strings.Join(steps, ", ") + "]"
}

// renderFailed names the tools of failed steps: [s3 failed] becomes [s3: send_email failed]. It drops other steps. A
// mark that names no step is ordinary text and stays.
func (d *draft) renderFailed(ids []string, written string) string {
	var names []string
	for _, id := range ids {
		o := d.steps[id]
		if o == nil {
			continue
		}
		written = ""
		if !o.OK() {
			d.failed[id] = true
			names = append(names, id+": "+toolLabel(*o)+" failed")
		}
	}
	if len(names) == 0 {
		return written
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// renderNotDone names parts of the question: [n1 not done] becomes [not done: email them].
func (d *draft) renderNotDone(ids []string, written string) string {
	var names []string
	for i, u := range d.unmet {
		if slices.Contains(ids, unmetID(i)) {
			d.notDone[i] = true
			names = append(names, texts.Line(u.Text, maxUnmetText))
		}
	}
	if len(names) == 0 {
		return written
	}
	return "[not done: " + strings.Join(names, "; ") + "]"
}

// citations returns the claims without quotes that the model did not read in the step's result, and without claims that
// say less than another: those without a quote, of steps that are also cited with one. excerpts has what the model
// read, by step.
func (d *draft) citations(excerpts map[string]*excerpt) []Citation {
	quoted := map[string]bool{}
	for i, c := range d.claims {
		if c.Quote == "" {
			continue
		}
		if e := excerpts[c.Step]; e == nil || !e.has(c.Quote) {
			d.claims[i].Quote = ""
			continue
		}
		quoted[c.Step] = true
	}
	citations := []Citation{}
	for _, c := range d.claims {
		if len(citations) < maxCitations && (c.Quote != "" || !quoted[c.Step]) {
			quoted[c.Step] = true
			citations = append(citations, c)
		}
	}
	return citations
}

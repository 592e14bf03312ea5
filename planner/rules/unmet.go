package rules

import (
	"slices"
	"strings"
	"unicode"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/planner/rules/intent"
)

// served reports whether a clause that has no call of its own only asks for what a call returns or uses.
func (c *chooser) served(cl intent.Clause) bool {
	a := c.askFor([]intent.Clause{cl})
	changes := cl.Act.MayWrite() && list("changes").any(verbStems(cl))
	return slices.ContainsFunc(c.calls, func(one *call) bool {
		if changes && one.f.reads && !one.f.does(verbStems(cl)) {
			return false // "put hi into a.txt and show me a.txt"
		}
		all, known, least := 0.0, 0.0, 1.0
		for _, chosen := range one.fill.chosen {
			if text, ok := chosen.value.(string); ok && strings.Contains(cl.Text, text) {
				least = 0.6 // it gives an argument: "and body \"At noon?\""
			}
		}
		for _, w := range a.words {
			if w.weight < 1 {
				continue
			}
			all++
			returned := slices.ContainsFunc(one.f.outputs, func(o output) bool { return slices.ContainsFunc(o.stems, w.has) })
			if returned || one.f.knows(w) >= least || one.fill.uses(w) > 0 {
				known++
			}
		}
		return known == all && (all > 0 || !cl.Act.MayWrite()) || all > 1 && known/all > 0.6 && !cl.Act.MayWrite()
	})
}

// missed notes a part of the question that no call serves, with what its tool lacks or the tools that are nearest. What
// is only polite, or asks what can be done, is no such part.
func (c *chooser) missed(cl intent.Clause) {
	if about(cl) || !slices.ContainsFunc(lettersOf(cl), func(w string) bool { return !list("polite")[w] }) {
		return
	}
	a := c.askFor([]intent.Clause{cl})
	u := plan.Unmet{Text: strings.TrimSpace(c.said[cl.Start:cl.End]), Reason: plan.UnmetNoTool}
	for _, one := range c.open {
		if slices.ContainsFunc(a.words, func(w word) bool { return one.f.knows(w) == 1 }) {
			u.Reason, u.Tool, u.Missing = plan.UnmetMissingArgument, one.f.tool.Name, names(one.fill.missing)
			if len(one.fill.unclear) > 0 {
				u.Reason = plan.UnmetUnclear
			}
		}
	}
	if u.Tool == "" {
		u.Nearest = c.nearest(a)
		if len(u.Nearest) > 0 {
			u.Tool = u.Nearest[0].Tool
		}
	}
	if cl.Act == intent.Conditional || cl.Act == intent.Unknown || cl.Act == intent.ActionQuestion {
		if tool := c.asksAbout(a); tool != "" {
			u = plan.Unmet{Text: u.Text, Reason: plan.UnmetUnclear, Tool: tool}
		} else if cl.Act != intent.ActionQuestion {
			u.Reason = plan.UnmetUnclear
		}
	}
	if topic := slices.ContainsFunc(a.words, func(w word) bool { return w.weight > 0 }); topic {
		c.unmet = append(c.unmet, u)
	}
}

// asksAbout is the tool that writes and does what a clause speaks of without asking for it: "should I cancel order 5?"
func (c *chooser) asksAbout(a ask) string {
	for _, t := range c.tools.Ask(c.ctx, a.query(), maxNearest) {
		f := c.profile(t)
		does := slices.ContainsFunc(a.words, func(w word) bool { return w.weight > 0 && f.does(w.stems) })
		if does && !f.reads && !a.leavesAddress(c.p.fill(a, f, nil)) {
			return t.Name
		}
	}
	return ""
}

// maxJoint bounds the bytes between two joined values, so that each value is compared with its neighbours alone.
const maxJoint = 32

// leftOver notes the values that no call takes though they are joined to one that a call takes: the second and the third
// order of "cancel order 4711, 4712 and 4713"; and those that are taken out of what is asked for: "everybody except Ann".
func (c *chooser) leftOver() {
	all := c.whole.values           // in the order of their starts
	known := make([]bool, len(all)) // taken or noted
	for i, v := range all {
		known[i] = slices.ContainsFunc(c.calls, func(one *call) bool { return one.fill.overlaps(v.Start, v.End) })
	}
	for i := range all {
		for j := i + 1; j < len(all) && all[j].Start-all[i].End <= maxJoint; j++ {
			left, o := &all[i], &all[j]
			if o.Kind != left.Kind || o.Start < left.End || known[i] == known[j] ||
				!joined().MatchString(c.text[left.End:o.Start]) {
				continue
			}
			if known[i] {
				left = o
			}
			c.unmet = append(c.unmet, plan.Unmet{Text: c.said[left.Start:left.End], Reason: plan.UnmetUnclear})
			known[i], known[j] = true, true
			break
		}
	}
	for _, cl := range c.context.clauses {
		at := exception().FindStringSubmatchIndex(c.text[cl.Start:cl.End])
		if at == nil {
			continue
		}
		from, end := cl.Start+at[2], cl.Start+at[3]
		taken := func(one *call) bool { return one.fill.overlaps(end-1, end) }
		if len(c.calls) > 0 && !slices.ContainsFunc(c.calls, taken) {
			c.unmet = append(c.unmet, plan.Unmet{Text: c.said[from:end], Reason: plan.UnmetUnclear})
		}
	}
}

// maxNearest is how many tools are named where none fits.
const maxNearest = 3

// nearest are the tools that share a word with what is asked, and what they lack.
func (c *chooser) nearest(a ask) []plan.Nearest {
	var out []plan.Nearest
	for _, t := range c.tools.Ask(c.ctx, a.query(), maxNearest) {
		f := c.profile(t)
		if slices.ContainsFunc(a.words, func(w word) bool { return w.weight > 0 && f.knows(w) > 0 }) {
			out = append(out, plan.Nearest{Tool: t.Name, Missing: names(c.p.fill(a, f, nil).missing)})
		}
	}
	return out
}

func names(params []param) []string {
	var out []string
	for _, q := range params {
		out = append(out, q.Name)
	}
	return out
}

// unworked says which verbs of the question ask to rework what the calls only return: "summarize notes.txt".
func (c *chooser) unworked() string {
	var verbs []string
	for _, one := range c.calls {
		for _, cl := range one.from {
			stems := verbStems(cl)
			if asks(cl) && list("reworking").any(stems) && !one.f.does(stems) && !slices.Contains(verbs, cl.Verb) {
				verbs = append(verbs, cl.Verb)
			}
		}
	}
	if len(verbs) == 0 {
		return ""
	}
	return "No tool was called to " + strings.Join(verbs, " or ") + ": the results are as the tools gave them."
}

// note says what to do where there is no step: which tools are nearest, and what they need.
func note(p plan.Plan) string {
	if len(p.Steps) > 0 || p.About {
		return ""
	}
	var near, open []string
	for _, u := range p.Unmet {
		if u.Reason == plan.UnmetMissingArgument {
			open = append(open, needs(u.Tool, u.Missing))
		}
		for _, n := range u.Nearest {
			if text := needs(n.Tool, n.Missing); !slices.Contains(near, text) && len(near) < maxNearest {
				near = append(near, text)
			}
		}
	}
	switch {
	case len(open) > 0:
		return "An argument is missing: " + strings.Join(open, ", ") + "."
	case len(near) > 0:
		return "No tool matches. Closest: " + strings.Join(near, ", ") + "."
	case len(p.Unmet) == 0:
		return "No tool is called, because nothing was asked that a tool could do."
	case !slices.ContainsFunc(p.Unmet, func(u plan.Unmet) bool { return u.Reason != plan.UnmetUnclear || u.Tool == "" }):
		return "No tool is called, because nothing is asked for plainly."
	}
	return "No tool matches."
}

// needs names a tool with what it lacks.
func needs(tool string, missing []string) string {
	if len(missing) == 0 {
		return "`" + tool + "`"
	}
	return "`" + tool + "` (needs `" + strings.Join(missing, "`, `") + "`)"
}

// lettersOf are the words of a clause in lower case, without digits and marks.
func lettersOf(cl intent.Clause) []string {
	return strings.FieldsFunc(strings.ToLower(cl.Text), func(r rune) bool { return !unicode.IsLetter(r) })
}

// about reports whether a clause asks what can be done here, or who is there.
func about(cl intent.Clause) bool {
	words := lettersOf(cl)
	other := slices.ContainsFunc(words, func(w string) bool { return !list("about")[w] })
	return len(words) == 1 && list("helping")[words[0]] || (cl.Act == intent.Question || cl.Act == intent.ActionQuestion) &&
		!other && list("asking").any(words) && list("asked").any(words)
}

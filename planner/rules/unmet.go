package rules

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// maxNearest is how many tools are named where none fits.
const maxNearest = 3

// miss notes a part of the question that no call serves, with the tool that it is about or the nearest tools.
func (c *chooser) miss(cl clause, tools []*tool, reason, about string, missing ...param) {
	if len(cl.words()) == 0 && !slices.ContainsFunc(cl.tokens, token.value) && about == "" {
		return // small talk
	}
	u := plan.Unmet{Text: c.message.text[cl.start:cl.end], Reason: reason, Tool: about, Missing: names(missing)}
	if about == "" {
		for _, t := range tools {
			shares := slices.ContainsFunc(cl.words(), func(x token) bool { return t.weightOf(x.lower) > 0 })
			if shares && len(u.Nearest) < maxNearest {
				u.Nearest = append(u.Nearest, plan.Nearest{Tool: t.Name, Missing: names(fill(cl, t, c.message.text).missing)})
			}
		}
		if len(u.Nearest) > 0 {
			u.Tool = u.Nearest[0].Tool
		}
	}
	c.unmet = append(c.unmet, u)
}

func names(params []param) (out []string) {
	for _, p := range params {
		out = append(out, p.name)
	}
	return out
}

// note says what to do where there is no step: which tools are nearest, and what they need.
func note(p plan.Plan) string {
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
	case len(p.Steps) > 0 || p.About:
		return ""
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

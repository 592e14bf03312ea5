package config

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/trust"
)

// policy checks the rules for calls, and reports the first mistake of each. A rule with a misspelt name would never
// hold, so names that nothing has are mistakes.
func (c settingsCheck) policy(s *Settings) {
	if c.err != nil {
		return
	}
	mistakes := make([]error, len(s.Policy))
	profiles := append([]string{SurfaceRouter, SurfaceProxy}, slices.Sorted(maps.Keys(s.Profiles))...)
	for i, rule := range s.Policy {
		c.rule(at("policy", i), rule, profiles)
		mistakes[i], c.err = c.err, nil
	}
	c.err = errors.Join(mistakes...)
}

// rule checks the rule at a path.
func (c settingsCheck) rule(path string, rule trust.Rule, profiles []string) {
	if _, err := trust.Compile([]trust.Rule{rule}); err != nil {
		wrong := (*trust.RuleError)(nil)
		if errors.As(err, &wrong) {
			if c.given(join(path, wrong.Key)) {
				path = join(path, wrong.Key)
			}
			c.fail(path, "%v", wrong.Err)
		}
		return
	}
	path = join(path, "when")
	servers := slices.Concat(slices.Sorted(maps.Keys(c.names)), c.others)
	constants := trust.Constants(rule.When)
	c.named(path, "server", constants[trust.VarServer], servers)
	c.named(path, "server", constants[trust.VarCarries], servers)
	c.named(path, "source", constants[trust.VarSource],
		[]string{trust.SourceClient, trust.SourceModel, trust.SourceRules, trust.SourceGiven})
	for _, profile := range constants[trust.VarProfile] {
		if server, single := strings.CutPrefix(profile, "server:"); single {
			c.named(path, "server", []string{server}, servers)
		} else {
			c.named(path, "profile", []string{profile}, profiles)
		}
	}
}

// named checks that each name is known.
func (c settingsCheck) named(path, kind string, names, known []string) {
	for _, name := range names {
		if !slices.Contains(known, name) {
			hint := "no " + kind + " is configured"
			if len(known) > 0 {
				hint = suggestTool(name, known)
			}
			c.fail(path, "unknown %s %s; %s", kind, quote(name), hint)
		}
	}
}

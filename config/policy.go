package config

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/trust"
)

// policy checks the rules for calls. A rule with a misspelt name would never hold, so names that nothing has are
// mistakes.
func (c settingsCheck) policy(s *Settings) {
	if _, err := trust.Compile(s.Policy); err != nil {
		wrong := (*trust.RuleError)(nil)
		if errors.As(err, &wrong) {
			item := at("policy", wrong.Index)
			if c.given(join(item, wrong.Key)) {
				item = join(item, wrong.Key)
			}
			c.fail(item, "%v", wrong.Err)
		}
		return
	}
	sources := []string{trust.SourceClient, trust.SourceModel, trust.SourceRules, trust.SourceGiven}
	servers := slices.Concat(slices.Sorted(maps.Keys(c.names)), c.others)
	profiles := append([]string{SurfaceRouter, SurfaceProxy}, slices.Sorted(maps.Keys(s.Profiles))...)
	for i, rule := range s.Policy {
		path := at("policy", i) + ".when"
		constants := trust.Constants(rule.When)
		c.named(path, "server", constants[trust.VarServer], servers)
		c.named(path, "server", constants[trust.VarCarries], servers)
		c.named(path, "source", constants[trust.VarSource], sources)
		for _, profile := range constants[trust.VarProfile] {
			if server, single := strings.CutPrefix(profile, "server:"); single {
				c.named(path, "server", []string{server}, servers)
			} else {
				c.named(path, "profile", []string{profile}, profiles)
			}
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

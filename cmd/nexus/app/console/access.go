package console

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/auth"
)

// rights are what a key or a profile may use. Empty lists are all.
type rights struct {
	Servers   []string `json:"servers,omitempty"`
	Tools     []string `json:"tools,omitempty"`
	Without   []string `json:"without,omitempty"` // tools
	Resources []string `json:"resources,omitempty"`
	Prompts   []string `json:"prompts,omitempty"`
}

func rightsOf(l auth.Limits) rights {
	return rights{l.Servers, l.Tools.Allow, l.Tools.Deny, l.Resources.Allow, l.Prompts.Allow}
}

// keyView is an API key on the page, without anything that tells the key itself.
type keyView struct {
	Name string `json:"name"`
	Ops  bool   `json:"ops"`
	rights
}

// profileView is a profile on the page.
type profileView struct {
	Name    string `json:"name"`
	Path    string `json:"path"`
	Surface string `json:"surface"`
	rights
}

// ruleView is a rule of the policy on the page.
type ruleView struct {
	When   string `json:"when"`
	Then   string `json:"then"`
	Reason string `json:"reason,omitempty"`
}

// access lists the keys, profiles and rules, which are about all callers.
func access(c *Console, w http.ResponseWriter, _ *http.Request, v Viewer) {
	if !v.Operator || v.Visible != nil {
		fail(w, http.StatusForbidden, "only a key with ops: true and without limits sees keys, profiles and the policy")
		return
	}
	s := c.opts.InForce()
	keys, profiles, rules := []keyView{}, []profileView{}, []ruleView{}
	for _, k := range s.Auth.APIKeys {
		keys = append(keys, keyView{k.Name, k.Ops, rightsOf(k.Limits())})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Profiles)) {
		p := s.Profiles[name]
		profiles = append(profiles, profileView{
			name, "/profiles/" + name + "/mcp", cmp.Or(p.Surface, config.SurfaceRouter), rightsOf(p.Limits())})
	}
	for _, r := range s.Policy {
		rules = append(rules, ruleView{r.When, string(r.Then), r.Reason})
	}
	issuer := ""
	if s.Auth.OAuth != nil {
		issuer = s.Auth.OAuth.Issuer
	}
	reply(w, map[string]any{"keys": keys, "issuer": issuer, "profiles": profiles, "policy": rules,
		"confirm_writes": s.Execution.ConfirmWrites, "can_edit": c.opts.Edit.allows(v)})
}

// Question is a call whose decision is explained.
type Question struct {
	Caller    string          `json:"caller"` // name of a key, or what rules compare with caller
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"` // an object; absent = none
	Profile   string          `json:"profile"`   // empty = router
	Source    string          `json:"source"`    // one of those of trust.Call; empty = client
	Round     int             `json:"round"`
	Carries   []string        `json:"carries"` // servers
}

// Verdict is the decision on a call that is not made.
type Verdict struct {
	Decision string   `json:"decision"`
	Rule     string   `json:"rule,omitempty"`
	When     string   `json:"when,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Notes    []string `json:"notes,omitempty"` // what it rests on
}

// explain tells the decision on a call.
func explain(c *Console, w http.ResponseWriter, r *http.Request, v Viewer) {
	var q Question
	if !read(w, r, &q) {
		return
	}
	if !v.Operator || v.Visible != nil {
		fail(w, http.StatusForbidden, "only a key with ops: true and without limits can ask for decisions on the calls of others")
		return
	}
	verdict, err := c.opts.Explain(r.Context(), q)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	reply(w, verdict)
}

// Explain returns the decision on a call.
type Explain func(ctx context.Context, q Question) (Verdict, error)

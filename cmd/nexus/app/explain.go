package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app/console"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/trust"
)

// Explained is a call of a tool that is not made.
type Explained struct {
	Caller    string // name of a key, or what rules compare with caller
	Tool      string // any of its names
	Arguments []byte
	downstream.Provenance
}

// Explanation is the decision on a call.
type Explanation struct {
	trust.Decision
	When     string // condition of the rule of the policy
	Unlisted bool   // the definition of the tool is unknown
	NoKey    bool   // no key has the caller's name
}

// Explain decides on a call and does not make it. The tool is looked up at its server if that can be listed.
func Explain(ctx context.Context, a *App, e Explained) (x Explanation, err error) {
	server, tool, qualified := catalog.Owner(e.Tool, a.servers.Configured)
	known := true
	if qualified {
		known, _ = a.servers.Has(ctx, server, "", tool, nil) // the decision tells why a tool is out of reach
	} else if server, tool, err = a.router.Resolve(ctx, e.Tool); err != nil {
		return x, err
	}
	caller, keyed := a.keys.Named(e.Caller)
	if !keyed {
		x.NoKey, caller = true, auth.Caller{Name: e.Caller, ID: "name:" + e.Caller, Anonymous: true}
	}
	if scope := a.scopes[e.Profile]; scope != nil {
		caller = caller.Within(scope)
	}
	x.Decision, err = a.servers.Decide(&downstream.Request{
		Server: server, Tool: tool, Method: "tools/call", Params: catalog.Params(tool, e.Arguments, nil),
		Caller: caller.ID, Visible: caller.Visible(), Provenance: e.Provenance,
	})
	switch {
	case x.Action == "":
		return x, err
	case x.Action == trust.Allow && !known:
		return x, &downstream.UnknownError{What: "tool", Name: e.Tool}
	}
	x.Unlisted = !a.servers.Listed(server, "", tool)
	for i, rule := range a.inForce.Load().Policy {
		if x.Rule == fmt.Sprintf("policy[%d]", i) {
			x.When = rule.When
		}
	}
	return x, nil
}

// explainer explains decisions for the page.
func explainer(a *App) console.Explain {
	return func(ctx context.Context, q console.Question) (v console.Verdict, err error) {
		if len(q.Arguments) == 0 {
			q.Arguments = []byte("{}")
		}
		profile, source := cmp.Or(q.Profile, ProfileRouter), cmp.Or(q.Source, trust.SourceClient)
		if q.Arguments[0] != '{' {
			return v, errors.New("the arguments are not a JSON object")
		}
		if err := CheckExplained(a, profile, q.Carries); err != nil {
			return v, err
		}
		slices.Sort(q.Carries)
		x, err := Explain(ctx, a, Explained{Caller: q.Caller, Tool: q.Tool, Arguments: q.Arguments,
			Provenance: downstream.Provenance{Profile: profile, Source: source, Round: q.Round, Carries: q.Carries,
				AfterResults: q.Round > 1}})
		if err != nil {
			return v, err
		}
		v = console.Verdict{Decision: string(x.Action), Rule: x.Rule, When: x.When, Reason: x.Reason}
		if x.NoKey {
			v.Notes = append(v.Notes, "no API key has that name; the call is judged without the limits of a key")
		}
		if x.Unlisted {
			v.Notes = append(v.Notes, "the server does not list the tool now; it counts as destructive")
		}
		return v, nil
	}
}

// CheckExplained returns an error for a profile or servers that an App does not have.
func CheckExplained(a *App, profile string, carries []string) error {
	if a.scopes[profile] == nil {
		if err := a.CheckProfile(profile); err != nil {
			return err
		}
	}
	for _, name := range carries {
		if !a.servers.Configured(name) {
			return fmt.Errorf("no server has the name %s; configured are %s", name, strings.Join(a.servers.Servers(), ", "))
		}
	}
	return nil
}

// Package trust decides which calls may reach a server.
//
// [Rules.Decide] is the one decision point: a function of the rules and of one [Call], without state and without side
// effects. The caller of Decide asks the user where the decision is [Ask].
package trust

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Action is what happens to a call.
type Action string

// The actions.
const (
	Allow Action = "allow"
	Ask   Action = "ask"
	Deny  Action = "deny"
)

// Sources of a call: who chose it and its arguments.
const (
	SourceClient = "client" // a request of a client that is forwarded, or run
	SourceModel  = "model"
	SourceRules  = "rules"
	SourceGiven  = "given" // a plan of the client
)

// Values of execution.confirm_writes.
const (
	ConfirmAuto   = "auto"   // asks before the least certain writes
	ConfirmAlways = "always" // asks before every write
	ConfirmNever  = "never"  // never asks before a write
)

// Call describes a call that is about to reach a server.
type Call struct {
	Caller      string // name of the key, or the remote address; empty for the router itself
	Profile     string // router, proxy, server:NAME or the name of a profile
	Server      string
	Method      string
	Tool        string          // the tool's own name without hidden characters, for tools/call
	Arguments   json.RawMessage // of tools/call; the params of other methods. Needed only if a rule uses them
	Reads       bool            // the tool only reads
	Destructive bool            // the tool is marked destructive
	Source      string          // one of the sources
	Round       int             // of the query, from 1; 0 without a plan
	Carries     []string        // servers whose results the call carries, sorted

	AfterResults bool     // a model planned it after tools had answered
	Private      bool     // Server is marked private
	Confidential []string // those of Carries that are marked private

	Limits
}

// Limits are what no rule of a policy can overcome.
type Limits struct {
	Excluded    bool   // the server's lists of tools exclude the tool
	Hidden      bool   // the caller may not use the server or the tool
	Quarantined string // why the tool is quarantined; empty = it is not
}

// Names of rules in decisions. A rule of the policy is named "policy[N]", counted from 0 as in the configuration.
const (
	RuleTools  = "tools"  // the lists of tools at the server
	RuleAccess = "access" // the rights of the caller and of the profile
	RulePins   = "pins"   // the definition of the tool waits for approval
	RuleFlow   = "flow"   // private data would go to another server
	RuleWrite  = "write"  // the tool may change something

	RuleRateLimit = "rate_limit" // too many calls of the caller; decided before Decide, for the audit log
)

// Decision is the decision on a call.
type Decision struct {
	Action Action
	Rule   string // what decided; empty if nothing speaks against the call
	Reason string // one sentence for people
}

// Rules decide on calls. They are safe for concurrent use.
type Rules struct {
	ConfirmWrites string  // one of the values of execution.confirm_writes
	Policy        *Policy // nil = none
}

// Decide decides on a call. The first of these that speaks decides: what the server and the caller are limited to, the
// approval of changed tools, the policy, and the built-in rules. A policy therefore never widens access, and a rule
// that allows a call turns off the built-in questions.
func (r *Rules) Decide(c *Call) Decision {
	switch {
	case c.Excluded:
		return Decision{Deny, RuleTools, "the configuration of " + c.Server + " excludes it"}
	case c.Hidden:
		return Decision{Deny, RuleAccess, "the caller may not use it"}
	case c.Quarantined != "":
		return Decision{Deny, RulePins, c.Quarantined}
	}
	if d, decided := r.Policy.decide(c); decided {
		return d
	}
	switch {
	case len(c.Confidential) > 0 && !c.Private:
		return Decision{Ask, RuleFlow, fmt.Sprintf("it carries private data of %s to %s",
			strings.Join(c.Confidential, ", "), c.Server)}
	case r.confirms(c):
		return Decision{Ask, RuleWrite, "it may change something"}
	}
	return Decision{Action: Allow}
}

// confirms reports whether a write needs consent. A write planned by rules does, because they may have misread the
// question. A write planned by a model does if it is destructive, or if results of tools may have influenced the plan.
// A given plan does not: its author has seen it.
func (r *Rules) confirms(c *Call) bool {
	if c.Reads || c.Source == SourceClient || c.Source == "" {
		return false
	}
	switch r.ConfirmWrites {
	case ConfirmNever:
		return false
	case ConfirmAlways:
		return true
	}
	switch c.Source {
	case SourceRules:
		return true
	case SourceModel:
		return c.AfterResults || c.Destructive
	}
	return false
}

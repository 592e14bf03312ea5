package downstream

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/texts"
	"github.com/agenticnexus/agenticnexus/internal/trust"
)

// permit finds the server of a request and decides on it. It asks the user where the decision says so. The error is
// an *UnknownError, a *ForbiddenError, a *Failure, or what Confirm returns.
func (c *callChain) permit(ctx context.Context, r *Request) error {
	d, err := c.decide(r)
	r.decided(d)
	switch {
	case err != nil:
		return err
	case d.Action == trust.Allow || d.Action == trust.Ask && r.Consent != "":
		return nil
	case d.Action == trust.Deny:
		return &ForbiddenError{Decision: d}
	case r.Confirm == nil:
		return Unasked(d, "nobody can be asked about "+r.Method+" here")
	}
	if err := r.Confirm(ctx, d); err != nil {
		return err
	}
	r.Consent = "user"
	r.decided(d)
	r.Modern = false // the router relays what the server asks, so that no retry of the client needs consent again
	return nil
}

// decide sets the server of a request and decides on it. Servers and tools that are hidden from the caller are unknown
// to it: the error is an *UnknownError, or a *Failure for a tool that waits for approval.
func (c *callChain) decide(r *Request) (trust.Decision, error) {
	s := view{c.servers.servers, r.Login}.enabled(r.Server)
	if s == nil {
		return trust.Decision{}, &UnknownError{"server", r.Server}
	}
	r.server = s
	if r.Decided {
		return trust.Decision{Action: trust.Allow}, nil
	}
	policy := c.policy.Load()
	if !judged(r.Method) || r.Task != "" { // which is judged with the call
		policy = nil
	}
	call := c.callOf(r, policy)
	d := (&trust.Rules{ConfirmWrites: c.opts.Execution.ConfirmWrites, Policy: policy}).Decide(call)
	switch {
	case d.Rule == trust.RulePins:
		return d, catalog.Quarantine(r.Server, call.Tool, d.Reason)
	case d.Rule != trust.RuleTools && d.Rule != trust.RuleAccess:
		return d, nil
	case call.Tool == "":
		return d, cmp.Or(r.forbidden(), error(&UnknownError{"server", r.Server}))
	}
	return d, &UnknownError{"tool", catalog.FullName(r.Server, call.Tool)}
}

// callOf collects what a request is decided on.
func (c *callChain) callOf(r *Request, policy *trust.Policy) *trust.Call {
	s, tool := r.server, r.calledTool()
	call := &trust.Call{
		Caller: callerName(r.Caller), Profile: r.Profile, Server: r.Server, Method: r.Method, Tool: texts.VisibleName(tool),
		Reads: r.Reads, Destructive: r.Destructive, Source: cmp.Or(r.Source, trust.SourceClient),
		Round: r.Round, Carries: r.Carries, AfterResults: r.AfterResults,
		Private: s.Config.Private(),
		Limits: trust.Limits{
			Excluded: tool != "" && !s.Config.Tools.Allows(tool),
			Hidden:   r.Visible != nil && (!r.Visible(r.Server, tool) || r.forbidden() != nil),
		},
	}
	if tool != "" && s.Pins.Enforce() {
		call.Quarantined = s.Pins.Refusal(tool, r.connection())
	}
	if policy.Uses(trust.VarArguments) {
		call.Arguments = argumentsOf(r)
	}
	if !r.Step && tool != "" && (r.Source != "" || policy.Uses(trust.VarReads, trust.VarDestructive)) {
		call.Reads, call.Destructive = false, true // without a definition, a rule that denies has to hold
		if t := r.connection().Lists.Tool(tool); t != nil {
			call.Reads, call.Destructive = t.ReadsOnly(), t.Annotations.Destructive()
		}
	}
	for _, name := range r.Carries {
		if s := c.servers.named(name); s != nil && s.Config.Private() {
			call.Confidential = append(call.Confidential, name)
		}
	}
	return call
}

// judged reports whether a policy is judged before a method. Lists and pings carry nothing of the client's, and the end
// of a subscription only lessens what the server sends.
func judged(method string) bool {
	switch method {
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list", "ping", "resources/unsubscribe":
		return false
	}
	return true
}

// calledTool returns the own name of the tool that a request calls, or whose task it is about; empty if there is none.
// A server may ignore the case of methods.
func (r *Request) calledTool() string {
	if r.Task != "" {
		return r.Task
	}
	if r.Tool == "" && strings.EqualFold(r.Method, "tools/call") {
		return jsonrpc.Text(jsonrpc.Get(r.Params, "name"))
	}
	return r.Tool
}

// argumentsOf returns the arguments of a call of a tool, and the params of other requests. If the server may read other
// arguments than the router, it returns no valid JSON, and a rule that uses them cannot be judged.
func argumentsOf(r *Request) json.RawMessage {
	if r.calledTool() == "" {
		return r.Params
	}
	span, ambiguous := jsonrpc.Find(r.Params, "arguments")
	if ambiguous {
		return json.RawMessage("?")
	}
	return span.Of(r.Params)
}

// callerName returns the name of a caller in rules: of its key, else issuer and subject of its token, else its address.
func callerName(id string) string {
	_, name, _ := strings.Cut(id, ":")
	return name
}

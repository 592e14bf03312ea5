package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

type policyCmd struct {
	Explain explainCmd `cmd:"" help:"Print the decision on a call, and the rule. The call is not made."`
}

type explainCmd struct {
	source
	Caller    string   `arg:"" help:"Name of an API key, or another value of caller."`
	Tool      string   `arg:"" help:"The tool: its bare name, or server__tool."`
	Arguments string   `arg:"" optional:"" help:"Its arguments as a JSON object." default:"{}"`
	Profile   string   `help:"router, proxy, server:NAME or a profile." default:"router"`
	Source    string   `help:"Who chooses the call." enum:"client,model,rules,given" default:"client"`
	Round     int      `help:"Round of planning; 0 without a plan."`
	Carries   []string `help:"Servers whose results the call carries." placeholder:"SERVER"`
	JSON      bool     `name:"json" help:"Print JSON."`
}

func (c *explainCmd) Run(w *world) error {
	arguments := []byte(strings.TrimSpace(c.Arguments))
	if err := jsonrpc.Valid(arguments); err != nil || arguments[0] != '{' {
		return &exitError{exitUsage, `the arguments are not a JSON object; write them like '{"name": "value"}'`}
	}
	a, done, err := c.open(w)
	if err != nil {
		return err
	}
	defer done()
	if err := app.CheckExplained(a, c.Profile, c.Carries); err != nil {
		return &exitError{exitUsage, err.Error()}
	}
	slices.Sort(c.Carries)
	x, err := app.Explain(w.ctx, a, app.Explained{Caller: c.Caller, Tool: c.Tool, Arguments: arguments,
		Provenance: downstream.Provenance{
			Profile: c.Profile, Source: c.Source, Round: c.Round, Carries: c.Carries, AfterResults: c.Round > 1,
		}})
	if err != nil {
		return err
	}
	if x.NoKey {
		fmt.Fprintf(w.stderr, "nexus: no API key has the name %s; the call is judged without the limits of a key\n",
			firstLine(c.Caller, 100))
	}
	if x.Unlisted {
		fmt.Fprintln(w.stderr, "nexus: the server does not list the tool now; it counts as destructive")
	}
	return c.print(w, &x)
}

func (c *explainCmd) print(w *world, x *app.Explanation) error {
	if c.JSON {
		return printJSON(w, struct {
			Decision string `json:"decision"`
			Rule     string `json:"rule,omitempty"`
			When     string `json:"when,omitempty"`
			Reason   string `json:"reason,omitempty"`
		}{string(x.Action), x.Rule, x.When, x.Reason})
	}
	text := fmt.Sprintf("decision: %s\nrule: %s", x.Action, cmp.Or(x.Rule, "none"))
	if x.When != "" {
		text += "\nwhen: " + strings.Join(strings.Fields(x.When), " ")
	}
	if x.Reason != "" {
		text += "\nreason: " + strings.Join(strings.Fields(x.Reason), " ")
	}
	_, err := fmt.Fprintln(w.stdout, text)
	return err
}

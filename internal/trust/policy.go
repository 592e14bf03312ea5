package trust

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/lru"
	"github.com/agenticnexus/agenticnexus/internal/plan/expression"
)

// Rule is a rule of a policy: if its condition holds for a call, it decides.
type Rule struct {
	When   string `yaml:"when"` // an expression over the variables
	Then   Action `yaml:"then"`
	Reason string `yaml:"reason"` // told to the client; empty = which rule decided
}

// The variables of conditions.
const (
	VarCaller      = "caller"
	VarProfile     = "profile"
	VarServer      = "server"
	VarMethod      = "method"
	VarTool        = "tool"
	VarArguments   = "arguments"
	VarReads       = "reads"
	VarDestructive = "destructive"
	VarSource      = "source"
	VarRound       = "round"
	VarCarries     = "carries"
)

// variables has a value of each variable's type.
var variables = map[string]any{
	VarCaller: "", VarProfile: "", VarServer: "", VarMethod: "", VarTool: "", VarArguments: map[string]any{},
	VarReads: false, VarDestructive: false, VarSource: "", VarRound: 0, VarCarries: []string{},
}

// Policy is a list of compiled rules. It is immutable and safe for concurrent use. A nil Policy has no rules.
type Policy struct {
	rules []compiled
	uses  map[string]bool // the variables of all rules
	short *lru.Cache[facts, shortlist]
}

// Bounds of the shortlists that a policy keeps, see Policy.shortlist.
const (
	maxShortlists     = 10_000
	maxShortlistBytes = 4 << 20
)

// compiled is a rule that is ready to be judged. It has two parts, which both must hold: a condition over all variables
// but arguments, and one over all. Clients control the arguments, so the work of the second is limited. The first
// costs less, and its result is kept.
type compiled struct {
	Rule
	name  string
	facts *vm.Program            // nil = true
	full  *expression.Expression // nil = true
}

// RuleError is a mistake in a rule.
type RuleError struct {
	Index int
	Key   string // of the rule
	Err   error
}

// Error implements error.
func (e *RuleError) Error() string { return fmt.Sprintf("policy[%d].%s: %v", e.Index, e.Key, e.Err) }

// Compile returns the policy of some rules; nil if there are none. The error is a *RuleError.
func Compile(rules []Rule) (*Policy, error) {
	if len(rules) == 0 {
		return nil, nil
	}
	p := &Policy{uses: map[string]bool{}, short: lru.New[facts, shortlist](maxShortlists, maxShortlistBytes)}
	for i, rule := range rules {
		if !slices.Contains([]Action{Allow, Ask, Deny}, rule.Then) {
			return nil, &RuleError{i, "then", errors.New("want allow, ask or deny")}
		}
		c := compiled{Rule: rule, name: fmt.Sprintf("policy[%d]", i)}
		full, err := expression.Parse(rule.When)
		if err == nil {
			c.facts, err = expr.Compile(rule.When, expr.Env(variables), expr.AsBool())
		}
		if err != nil {
			return nil, &RuleError{i, "when", expression.OneLine(err)}
		}
		if slices.Contains(full.Names(), VarArguments) {
			c.full, c.facts = full, leading(rule.When)
		}
		for _, name := range full.Names() {
			p.uses[name] = true
		}
		p.rules = append(p.rules, c)
	}
	return p, nil
}

// leading compiles the operands that a conjunction begins with and that do not use arguments; nil if there are none.
// Most calls fail them, so that the arguments need not be read.
func leading(when string) *vm.Program {
	tree, err := parser.Parse(when)
	if err != nil {
		return nil
	}
	n, ok := tree.Node.(*ast.BinaryNode)
	for ; ok && (n.Operator == "&&" || n.Operator == "and"); n, ok = n.Left.(*ast.BinaryNode) {
		text := string([]rune(when)[:n.Location().From])
		left, err := parser.Parse(text)
		if err != nil || left.Node.String() != n.Left.String() { // within parentheses
			continue
		}
		if e, err := expression.Parse(text); err == nil && !slices.Contains(e.Names(), VarArguments) {
			program, err := expr.Compile(text, expr.Env(variables), expr.AsBool())
			if err == nil {
				return program
			}
		}
	}
	return nil
}

// Uses reports whether a rule uses one of the variables.
func (p *Policy) Uses(names ...string) bool {
	return p != nil && slices.ContainsFunc(names, func(name string) bool { return p.uses[name] })
}

// shortlist is what is known of a call without its arguments.
type shortlist struct {
	rules   []int    // those that may hold, in order
	last    Decision // if none of them holds
	decided bool     // there is a last decision
}

// decide returns the decision of the first rule whose condition holds; decided is false if there is none. A condition
// that cannot be judged denies the call, because it may be the one that should have held.
func (p *Policy) decide(c *Call) (d Decision, decided bool) {
	if p == nil {
		return d, false
	}
	key := p.facts(c)
	short, known := p.short.Get(key)
	if !known {
		short = p.shortlist(c)
		p.short.Put(key, short, key.weight())
	}
	var values map[string]any
	for _, i := range short.rules {
		var err error
		if values == nil {
			values = c.values(p.uses)
			values[VarArguments], err = decode(c.Arguments)
		}
		var result any
		if err == nil {
			result, err = p.rules[i].full.Eval(context.Background(), values) // its work is limited
		}
		if d, decided = p.rules[i].decision(result, err); decided {
			return d, true
		}
	}
	return short.last, short.decided
}

// shortlist judges the rules without arguments. Its results are kept, because calls of one client differ little.
func (p *Policy) shortlist(c *Call) (s shortlist) {
	values := c.values(p.uses)
	var machine vm.VM
	for i := range p.rules {
		rule := &p.rules[i]
		result, err := any(true), error(nil)
		if rule.facts != nil {
			result, err = machine.Run(rule.facts, values)
		}
		d, decided := rule.decision(result, err)
		switch {
		case !decided:
		case err == nil && rule.full != nil:
			s.rules = append(s.rules, i)
		default:
			s.last, s.decided = d, true
			return s
		}
	}
	return s
}

// decision returns the decision of a rule whose condition has a result; decided is false if the rule does not hold.
func (r *compiled) decision(result any, err error) (d Decision, decided bool) {
	holds, ok := result.(bool)
	switch {
	case err != nil:
		return Decision{Deny, r.name, fmt.Sprintf("%s cannot be judged: %v", r.name, expression.OneLine(err))}, true
	case !ok:
		return Decision{Deny, r.name, fmt.Sprintf("%s cannot be judged: its value is %T, not bool", r.name, result)}, true
	case !holds:
		return d, false
	}
	return Decision{r.Then, r.name, r.reason()}, true
}

func (r *compiled) reason() string {
	switch {
	case r.Reason != "":
		return r.Reason
	case r.Then == Deny:
		return r.name + " denies it"
	case r.Then == Ask:
		return r.name + " asks for approval"
	}
	return ""
}

// decode reads arguments. A member that occurs twice, also in another case, is an error, because the server may read
// the other one.
func decode(arguments json.RawMessage) (any, error) {
	if len(arguments) == 0 {
		return map[string]any{}, nil
	}
	ambiguous := errors.New("the arguments have a member twice or are not valid JSON")
	if !jsontext.Value(arguments).IsValid() {
		return nil, ambiguous
	}
	value, err := expression.Decode(arguments)
	if err == nil && repeats(value) {
		return nil, ambiguous
	}
	return value, err
}

// repeats reports whether an object has two members whose names differ only in case.
func repeats(value any) bool {
	switch value := value.(type) {
	case []any:
		return slices.ContainsFunc(value, repeats)
	case map[string]any:
		seen := make(map[string]bool, len(value))
		for name, member := range value {
			folded := strings.ToLower(strings.ToUpper(name)) // also what only folds to a letter, such as ſ
			if seen[folded] || repeats(member) {
				return true
			}
			seen[folded] = true
		}
	}
	return false
}

// facts are the variables of a call but its arguments.
type facts struct {
	caller, profile, server, method, tool, source, carries string

	reads, destructive bool
	round              int
}

// facts returns the facts that the rules are judged on. Rules that do not use the caller share them among callers.
func (p *Policy) facts(c *Call) facts {
	f := facts{
		profile: c.Profile, server: c.Server, method: c.Method, tool: c.Tool, source: c.Source,
		carries: strings.Join(c.Carries, "\x00"), reads: c.Reads, destructive: c.Destructive, round: c.Round,
	}
	if p.uses[VarCaller] {
		f.caller = c.Caller
	}
	return f
}

func (f *facts) weight() int {
	return 200 + len(f.caller) + len(f.profile) + len(f.server) + len(f.method) + len(f.tool) + len(f.source) +
		len(f.carries)
}

// values returns the values of the variables that a policy uses, but the arguments.
func (c *Call) values(uses map[string]bool) map[string]any {
	all := map[string]any{
		VarCaller: c.Caller, VarProfile: c.Profile, VarServer: c.Server, VarMethod: c.Method, VarTool: c.Tool,
		VarReads: c.Reads, VarDestructive: c.Destructive, VarSource: c.Source, VarRound: c.Round, VarCarries: c.Carries,
	}
	maps.DeleteFunc(all, func(name string, _ any) bool { return !uses[name] })
	return all
}

// Constants returns the texts that a condition compares with each variable, for example "hr" with "server" in
// `server == "hr"`. A misspelt one would never hold.
func Constants(when string) map[string][]string {
	tree, err := parser.Parse(when)
	if err != nil {
		return nil
	}
	found := constants{}
	ast.Walk(&tree.Node, found)
	return found
}

// constants collects texts by variable.
type constants map[string][]string

// Visit implements ast.Visitor.
func (found constants) Visit(node *ast.Node) {
	n, ok := (*node).(*ast.BinaryNode)
	if !ok || !slices.Contains([]string{"==", "!=", "in"}, n.Operator) {
		return
	}
	for _, side := range [][2]ast.Node{{n.Left, n.Right}, {n.Right, n.Left}} {
		if variable, ok := side[0].(*ast.IdentifierNode); ok {
			name := strings.TrimPrefix(variable.Value, "$")
			found[name] = append(found[name], textsIn(side[1])...)
		}
	}
}

// textsIn returns the texts of a constant or of a list of constants.
func textsIn(n ast.Node) (texts []string) {
	switch n := n.(type) {
	case *ast.StringNode:
		texts = append(texts, n.Value)
	case *ast.ArrayNode:
		for _, element := range n.Nodes {
			texts = append(texts, textsIn(element)...)
		}
	}
	return texts
}

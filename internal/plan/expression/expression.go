// Package expression evaluates the expressions of plans: conditions and shapes of values, in the language of expr-lang.
//
// Parse reads an expression once, Names returns the values that it needs, and Eval computes it. Expressions come from
// models and clients and are untrusted: they can access only the given values, and their length, the work of an
// evaluation and the size of its result are limited. An Expression is immutable and safe for concurrent use.
package expression

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

// Limits of an expression.
const (
	MaxLength = 4096 // bytes
	maxNodes  = 1000 // of the syntax tree
)

// Functions returns the names of the functions that plans need, of all that the language has.
func Functions() []string {
	rare := strings.Fields(`none one findIndex findLast findLastIndex reduce type abs ceil floor upper splitAfter repeat indexOf
		lastIndexOf hasPrefix hasSuffix mean median toJSON toBase64 fromBase64 timezone get values toPairs fromPairs reverse
		bitand bitor bitxor bitnand bitnot bitshl bitshr bitushr`)
	return slices.DeleteFunc(slices.Clone(builtin.Names), func(name string) bool { return slices.Contains(rare, name) })
}

// Expression is a parsed expression.
type Expression struct {
	program *vm.Program
	names   []string
	locals  []string
}

// Parse reads an expression. The error is one line that says what is wrong and where.
func Parse(source string) (*Expression, error) {
	switch {
	case strings.TrimSpace(source) == "":
		return nil, errors.New("the expression is empty")
	case len(source) > MaxLength:
		return nil, fmt.Errorf("the expression is longer than %d bytes", MaxLength)
	}
	r := &rewriter{}
	options := []expr.Option{expr.AllowUndefinedVariables(), expr.Optimize(false), expr.MaxNodes(maxNodes), expr.Patch(r)}
	for _, f := range metered {
		options = append(options, expr.Function(f.name, f.call))
	}
	program, err := expr.Compile(source, options...)
	if r.refused != nil {
		return nil, r.refused
	}
	if err != nil {
		return nil, OneLine(err)
	}
	return &Expression{program, r.names(), r.known}, nil
}

// Names returns the names of the values that the expression uses, sorted.
func (e *Expression) Names() []string { return e.names }

// Locals returns the variables that the expression declares. They hide values of the same name.
func (e *Expression) Locals() []string { return e.locals }

// Eval computes the expression. values are values returned by Decode, by name; a missing value is nil. The end of ctx
// stops the evaluation. Errors are one line.
func (e *Expression) Eval(ctx context.Context, values map[string]any) (any, error) {
	env := make(map[string]any, len(values)+1)
	maps.Copy(env, values)
	env[meterName] = &meter{ctx: ctx, left: maxWork}
	machine := vm.VM{MemoryBudget: maxMemory}
	result, err := machine.Run(e.program, env)
	if err != nil {
		return nil, OneLine(err)
	}
	return result, nil
}

// OneLine removes the source excerpt that the library adds to its errors.
func OneLine(err error) error {
	located := (*file.Error)(nil)
	switch {
	case !errors.As(err, &located):
		line, _, _ := strings.Cut(err.Error(), "\n")
		return errors.New(line)
	case located.Prev != nil:
		if wrong := (*runtime.TypeAssertionError)(nil); errors.As(located.Prev, &wrong) {
			_, types, _ := strings.Cut(wrong.Error(), "} ")
			return errors.New("a value " + types)
		}
		return located.Prev
	}
	text := fmt.Sprintf("%s at character %d", located.Message, located.Column+1)
	if located.Message == `unexpected token Operator(":")` {
		text += objectHint
	}
	return errors.New(text)
}

// objectHint explains an error that is hard to guess: the language takes the brace that begins an argument of map and
// the like for that of a block.
const objectHint = `; in a function such as map an object stands in parentheses: map(s1, ({"id": .id}))`

// rewriter collects the names in an expression and inserts calls that meter its work. The library visits children
// before their parents.
type rewriter struct {
	found   []string // identifiers; those that are functions and variables of the expression itself appear in known, too
	known   []string
	refused error
}

func (r *rewriter) refuse(format string, args ...any) {
	if r.refused == nil {
		r.refused = fmt.Errorf(format, args...)
	}
}

func (r *rewriter) names() []string {
	names := slices.DeleteFunc(slices.Clone(r.found), func(name string) bool { return slices.Contains(r.known, name) })
	slices.Sort(names)
	return slices.Compact(names)
}

// Visit implements ast.Visitor.
func (r *rewriter) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if n.Value == "$env" {
			r.refuse("$env cannot be used: name the values")
		}
		n.Value = strings.TrimPrefix(n.Value, "$") // "$s1" means s1, as in references
		r.found = append(r.found, n.Value)
	case *ast.VariableDeclaratorNode:
		r.known = append(r.known, n.Name)
	case *ast.MemberNode:
		if n.Method {
			r.refuse("values have no methods")
		}
		if name, ok := n.Property.(*ast.StringNode); ok && name.Value == Lines && !n.Optional {
			ast.Patch(node, metered[lines].of(n.Node))
		}
	case *ast.CallNode:
		r.refuse("unknown function %s", n.Callee)
	case *ast.PredicateNode:
		n.Node = metered[charge].of(n.Node)
	case *ast.ArrayNode, *ast.MapNode:
		ast.Patch(node, metered[charge].of(n))
	case *ast.BuiltinNode:
		r.builtin(node, n)
	case *ast.BinaryNode:
		switch n.Operator {
		case "matches":
			ast.Patch(node, metered[matches].of(n.Left, n.Right))
		case "==", "!=", "<", ">", "<=", ">=", "in", "contains", "startsWith", "endsWith":
			n.Left, n.Right = metered[charge].of(n.Left), metered[charge].of(n.Right)
		case "+":
			ast.Patch(node, metered[charge].of(n))
		}
	}
}

// builtin meters a function of the language: the values it reads and returns. Functions that access only one element
// of their argument are free.
func (r *rewriter) builtin(node *ast.Node, n *ast.BuiltinNode) {
	switch n.Name {
	case "type", "first", "last", "get":
		return
	case "len": // counts the characters of a text, but not the elements of a list
		if len(n.Arguments) == 1 {
			n.Arguments[0] = metered[length].of(n.Arguments[0])
		}
		return
	case "replace", "repeat", "join", "uniq", "trim", "split", "splitAfter", "fromJSON", "toJSON":
		ast.Patch(node, metered[product].of(append([]ast.Node{&ast.StringNode{Value: n.Name}}, n.Arguments...)...))
		return
	}
	for i, argument := range n.Arguments {
		if _, ok := argument.(*ast.PredicateNode); !ok {
			n.Arguments[i] = metered[charge].of(argument)
		}
	}
	ast.Patch(node, metered[charge].of(n))
}

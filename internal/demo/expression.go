package demo

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"

	"github.com/agenticnexus/agenticnexus/internal/plan/expression"
)

const (
	maxExpression = 1000 // characters
	maxNodes      = 500  // nodes of the syntax tree
)

// evaluate returns the value of an arithmetic expression as a JSON number. The expr library parses,
// compiles and runs it. Literals and operators are replaced by exact arithmetic before it is compiled
// and everything else is refused, so an expression reaches nothing but the functions of this package.
// Work is bounded by the number of nodes and the size of numbers; the caller bounds the
// length of the text.
func evaluate(source string) (string, error) {
	arithmeticOnly := &rewriter{}
	options := []expr.Option{
		expr.DisableAllBuiltins(), expr.Optimize(false), expr.MaxNodes(maxNodes), expr.AsAny(),
		expr.AllowUndefinedVariables(), expr.Patch(arithmeticOnly),
	}
	for name, f := range arithmetic {
		options = append(options, expr.Function(name, f.call(name)))
	}
	program, err := expr.Compile(source, options...)
	if arithmeticOnly.refused == nil && arithmeticOnly.uncalled > 0 {
		arithmeticOnly.refuse("a function needs its values in parentheses, as in sqrt(2)")
	}
	if arithmeticOnly.refused != nil {
		return "", arithmeticOnly.refused
	}
	if err != nil {
		return "", expression.OneLine(err)
	}
	value, err := expr.Run(program, nil)
	if err != nil {
		return "", expression.OneLine(err)
	}
	r, ok := value.(*big.Rat)
	if !ok {
		return "", errors.New("its value is not a number")
	}
	return format(r), nil
}

// rewriter turns arithmetic into calls of our functions and notes the first thing that is not
// arithmetic. The library visits children before their parents.
type rewriter struct {
	refused  error
	uncalled int // names of functions that were not called
}

// Visit implements ast.Visitor.
func (r *rewriter) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IntegerNode:
		ast.Patch(node, &ast.ConstantNode{Value: new(big.Rat).SetInt64(int64(n.Value))})
	case *ast.FloatNode:
		r.number(node, n.Value)
	case *ast.IdentifierNode:
		if value, ok := constants[n.Value]; ok {
			r.number(node, value)
		} else if _, ok := arithmetic[n.Value]; ok {
			r.uncalled++
		} else {
			r.refuse("unknown name %q; known: pi, e and the functions %s", n.Value, functionNames())
		}
	case *ast.UnaryNode:
		r.operator(node, "unary "+n.Operator, n.Operator, n.Node)
	case *ast.BinaryNode:
		r.operator(node, n.Operator, n.Operator, n.Left, n.Right)
	case *ast.CallNode:
		if _, ok := n.Callee.(*ast.IdentifierNode); ok {
			r.uncalled--
		} else {
			r.refuse("only the functions %s can be called", functionNames())
		}
	default:
		r.refuse("only numbers, operators, parentheses and functions are supported")
	}
}

func (r *rewriter) number(node *ast.Node, f float64) {
	value, err := fromFloat(f)
	if err != nil {
		r.refuse("%v", err)
		return
	}
	ast.Patch(node, &ast.ConstantNode{Value: value})
}

func (r *rewriter) operator(node *ast.Node, name, sign string, operands ...ast.Node) {
	if _, ok := arithmetic[name]; !ok {
		r.refuse("operator %q is not supported", sign)
		return
	}
	ast.Patch(node, &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: operands})
}

func (r *rewriter) refuse(format string, args ...any) {
	if r.refused == nil {
		r.refused = fmt.Errorf(format, args...)
	}
}

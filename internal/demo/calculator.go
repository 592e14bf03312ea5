package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/agenticnexus/agenticnexus/internal/plan/expression"
)

// Bounds of an expression.
const (
	maxExpression = 1000 // characters
	maxNodes      = 500  // nodes of the syntax tree
)

type calculateArgs struct {
	Expression string `json:"expression"`
}

type calculation struct {
	Expression string      `json:"expression"`
	Result     json.Number `json:"result"`
}

func calculatorServer() *server.MCPServer {
	s := newMCPServer("calculator", "Demo calculator", "Arithmetic on decimal numbers.")
	s.AddTool(mcp.NewTool("calculate",
		mcp.WithDescription("Calculate the value of an arithmetic expression. "+
			"Operators: + - * / % ^ and parentheses. Functions: "+strings.Join(functionNames(), ", ")+". Constants: pi, e. "+
			"Write 15% of 2500 as 2500 * 0.15."),
		mcp.WithString("expression", mcp.Required(), mcp.MinLength(1), mcp.MaxLength(maxExpression),
			mcp.Description("Arithmetic expression, such as 2500 * 0.15 or sqrt(2) + 1")),
		mcp.WithRawOutputSchema(json.RawMessage(`{
			"type": "object",
			"properties": {
				"expression": {"type": "string", "description": "The expression as given"},
				"result": {"type": "number", "description": "Its value: exact for sums and products of whole numbers, else with 15 significant digits"}
			},
			"required": ["expression", "result"],
			"additionalProperties": false
		}`)),
		readOnly("Calculate"),
	), handler(calculate))
	return s
}

func calculate(_ context.Context, args calculateArgs) (*mcp.CallToolResult, error) {
	if err := required("expression", args.Expression, maxExpression); err != nil {
		return nil, err
	}
	result, err := evaluate(args.Expression)
	if err != nil {
		return nil, fmt.Errorf("cannot calculate the expression: %w", err)
	}
	return mcp.NewToolResultStructured(calculation{Expression: args.Expression, Result: json.Number(result)}, result), nil
}

// environment has the names that an expression may use. It never changes.
var environment = map[string]any{
	"pi": math.Pi, "e": math.E,
	"abs": math.Abs, "floor": math.Floor, "ceil": math.Ceil, "trunc": math.Trunc, "sqrt": math.Sqrt, "cbrt": math.Cbrt,
	"exp": math.Exp, "ln": math.Log, "log10": math.Log10, "log2": math.Log2,
	"sin": math.Sin, "cos": math.Cos, "tan": math.Tan, "pow": math.Pow, "mod": math.Mod,
	"min": func(x float64, more ...float64) float64 { return min(x, slices.Min(append(more, x))) },
	"max": func(x float64, more ...float64) float64 { return max(x, slices.Max(append(more, x))) },
	"sum": func(x float64, more ...float64) float64 { return sum(x, more) },
	"avg": func(x float64, more ...float64) float64 { return sum(x, more) / float64(len(more)+1) },
	"round": func(x float64, decimals ...float64) float64 {
		scale := 1.0
		if len(decimals) > 0 {
			scale = math.Pow(10, decimals[0])
		}
		return math.Round(x*scale) / scale
	},
}

func sum(x float64, more []float64) float64 {
	for _, y := range more {
		x += y
	}
	return x
}

func functionNames() []string {
	names := slices.Sorted(maps.Keys(environment))
	return slices.DeleteFunc(names, func(name string) bool { return name == "pi" || name == "e" })
}

// evaluate returns the value of an arithmetic expression as a JSON number. The library of expressions parses, checks
// and runs it; everything but arithmetic is refused before. The work is bounded by the number of nodes.
func evaluate(source string) (string, error) {
	a := &arithmetic{whole: map[ast.Node]*big.Int{}}
	program, err := expr.Compile(source, expr.Env(environment), expr.DisableAllBuiltins(), expr.Optimize(false),
		expr.MaxNodes(maxNodes), expr.AsFloat64(), expr.Patch(a))
	if err = cmp.Or(a.refused, err); err != nil {
		return "", expression.OneLine(err)
	}
	value, err := expr.Run(program, environment)
	if err != nil {
		return "", expression.OneLine(err)
	}
	result, ok := value.(float64)
	if !ok || math.IsInf(result, 0) || math.IsNaN(result) {
		return "", errors.New("a value is too large or not defined, as after a division by zero")
	}
	if whole := a.whole[program.Node()]; whole != nil {
		return whole.String(), nil
	}
	return strconv.FormatFloat(result+0, 'g', 15, 64), nil // + 0 turns -0 into 0
}

// arithmetic makes all numbers floating-point and notes the first thing that is not arithmetic. Sums and products of
// whole numbers it calculates itself, because floating-point numbers of more than 15 digits are not exact.
type arithmetic struct {
	refused error
	whole   map[ast.Node]*big.Int // values beyond those of float64 are refused
}

// Visit implements ast.Visitor. It visits the operands of a node before the node.
func (a *arithmetic) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IntegerNode:
		ast.Patch(node, &ast.FloatNode{Value: float64(n.Value)})
		a.whole[*node] = big.NewInt(int64(n.Value))
	case *ast.FloatNode, *ast.IdentifierNode, *ast.CallNode:
	case *ast.UnaryNode:
		a.check(n.Operator)
		if x := a.whole[n.Node]; x != nil && n.Operator == "-" {
			a.whole[n] = new(big.Int).Neg(x)
		}
	case *ast.BinaryNode:
		if x, y := a.whole[n.Left], a.whole[n.Right]; x != nil && y != nil {
			switch n.Operator {
			case "+":
				a.whole[n] = new(big.Int).Add(x, y)
			case "-":
				a.whole[n] = new(big.Int).Sub(x, y)
			case "*":
				a.whole[n] = new(big.Int).Mul(x, y)
			}
		}
		if a.check(n.Operator); n.Operator == "%" { // of whole numbers alone in the library
			ast.Patch(node, &ast.CallNode{Callee: &ast.IdentifierNode{Value: "mod"}, Arguments: []ast.Node{n.Left, n.Right}})
		}
	default:
		a.refuse("only numbers, operators, parentheses and functions are supported")
	}
}

func (a *arithmetic) check(operator string) {
	if !slices.Contains([]string{"+", "-", "*", "/", "%", "^", "**"}, operator) {
		a.refuse(fmt.Sprintf("operator %q is not supported", operator))
	}
}

func (a *arithmetic) refuse(why string) {
	if a.refused == nil {
		a.refused = errors.New(why)
	}
}

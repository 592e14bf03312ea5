package demo

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

type calculateArgs struct {
	Expression string `json:"expression"`
}

type calculation struct {
	Expression string      `json:"expression"`
	Result     json.Number `json:"result"`
}

func calculatorServer() *server.MCPServer {
	s := newMCPServer("calculator", "Demo calculator", "Exact arithmetic on decimal numbers.")
	s.AddTool(mcp.NewTool("calculate",
		mcp.WithDescription("Calculate the value of an arithmetic expression. Integers and decimal fractions are exact. "+
			"Operators: + - * / % ^ and parentheses. Functions: "+functionNames()+". Constants: pi, e. "+
			"Write 15% of 2500 as 2500 * 0.15."),
		mcp.WithString("expression", mcp.Required(), mcp.MinLength(1), mcp.MaxLength(maxExpression),
			mcp.Description("Arithmetic expression, such as 2500 * 0.15 or sqrt(2) + 1")),
		mcp.WithRawOutputSchema(json.RawMessage(`{
			"type": "object",
			"properties": {
				"expression": {"type": "string", "description": "The expression as given"},
				"result": {"type": "number", "description": "Its value; integers are exact, others have 15 digits"}
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

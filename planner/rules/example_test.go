package rules_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/planner/rules"
)

// The rules plan without a model: they choose tools by their words and fill in arguments from the question.
func Example() {
	yes := true
	tools := rules.NewCatalog([]plan.Tool{{
		Name: "get_weather", Server: "weather", Tool: "get_weather", Description: "Get the current weather of a city",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
		Annotations: plan.Annotations{ReadOnlyHint: &yes},
	}, {
		Name: "send_email", Server: "mail", Tool: "send_email", Description: "Send an email",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string","format":"email"},
			"body":{"type":"string"}},"required":["to"]}`),
	}})
	p, err := rules.New(rules.Options{}).Plan(context.Background(), "What is the weather in Berlin?", tools)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range p.Steps {
		fmt.Println(s.Tool, string(s.Arguments))
	}
	// Output:
	// get_weather {"city":"Berlin"}
}

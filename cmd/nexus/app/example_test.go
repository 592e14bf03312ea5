package app_test

import (
	"context"
	"fmt"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/router"
)

// A program embeds the router without a listener: here with the demo servers, and without a model.
func Example() {
	ctx := context.Background()
	a, err := app.New(ctx, app.Options{Config: config.Default(), Demo: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Stop(ctx)
	if err := a.Connect(ctx); err != nil {
		fmt.Println(err)
		return
	}
	record, err := a.Router().Query(ctx, router.Query{Text: "What is 15% of 2500?"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range record.Outcomes {
		fmt.Println(o.Step.Server, o.Step.Tool, string(o.Sent))
	}
	fmt.Println(record.Answer.Text)
	// Output:
	// calculator calculate {"expression":"2500 * 0.15"}
	// **calculate**: 375 (expression: 2500 * 0.15)
}

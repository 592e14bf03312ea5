package router

import (
	"context"
	"fmt"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/trust"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// Confirm returns a function that asks the client of a request whether it may go to a server. tool and params are as
// the server gets them.
func Confirm(x *edge.Exchange, server, tool string, params []byte) downstream.Confirm {
	return func(ctx context.Context, d trust.Decision) error {
		elicit := elicitor(x)
		if elicit == nil {
			return downstream.Unasked(d, "this client cannot be asked")
		}
		refused, err := askApproval(ctx, elicit, requestMessage(x, server, tool, params, d.Reason))
		switch {
		case err == nil:
			return nil
		case refused:
			d.Reason = err.Error()
			return &downstream.ForbiddenError{Decision: d, Declined: true}
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		return downstream.Unasked(d, "the user could not be asked: "+err.Error())
	}
}

// requestMessage describes a request to approve. Like decider.message, it gives each part a line of its
// own.
func requestMessage(x *edge.Exchange, server, tool string, params []byte, why string) string {
	what, name := "Method", x.Message.Method
	if tool != "" {
		what, name = "Tool", tool
		if span, ambiguous := jsonrpc.Find(params, "arguments"); !ambiguous { // else all may matter
			params = span.Of(params)
		}
	}
	return fmt.Sprintf("Allow this request?\nFrom: %s\nServer: %s\n%s: %s\nArguments: %s\nReason: %s",
		printable(x.Caller.Name, maxShownName), server, what, printable(name, maxShownName),
		printable(string(params), maxShownArguments), printable(why, maxShownArguments))
}

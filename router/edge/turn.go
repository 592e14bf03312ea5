package edge

import (
	"context"

	"github.com/agenticnexus/agenticnexus/internal/limit"
)

// largeMessage is the size in bytes from which a message waits for its caller's turn before it is parsed or passed on.
// Cancellations and most answers are smaller, and do not wait.
const largeMessage = 64 << 10

// Turn waits for the turn of the caller of x if the message is large, see limit.Budget.Turn.
func Turn(ctx context.Context, x *Exchange) (done func()) {
	return turn(ctx, x.edge.budget, x.Caller.ID, len(x.Message.Raw))
}

// turn waits for a caller's turn to work on a message of n bytes.
func turn(ctx context.Context, budget *limit.Budget, caller string, n int) (done func()) {
	if n < largeMessage {
		return func() {}
	}
	return budget.Turn(ctx, caller)
}

package demo

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

type progressKey struct{}

type reporter func(done, total float64, message string)

// withProgress adds a reporter to the context of a call's handler. The handler's goroutine writes the reports, so that
// they precede the result. Without a progress token nothing is sent.
func (c *connection) withProgress(ctx context.Context, this *call, token json.RawMessage) context.Context {
	if !jsonrpc.ValidID(token) {
		return ctx
	}
	return context.WithValue(ctx, progressKey{}, reporter(func(done, total float64, message string) {
		c.mu.Lock()
		wanted := !this.cancelled
		c.mu.Unlock()
		if !wanted {
			return
		}
		params, err := json.Marshal(map[string]any{
			"progressToken": token, "progress": done, "total": total, "message": message,
		})
		if err != nil {
			c.fail(fmt.Errorf("encoding progress: %w", err))
			return
		}
		c.write(jsonrpc.Notification("notifications/progress", params))
	}))
}

// report tells the client of the call in ctx, if it asked, that done of total is done.
func report(ctx context.Context, done, total float64, message string) {
	if r, ok := ctx.Value(progressKey{}).(reporter); ok {
		r(done, total, message)
	}
}

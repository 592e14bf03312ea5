package demo

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
)

type progressKey struct{}

type reporter func(done, total float64, message string)

// withProgress gives the call's handler a way to report. Reports are written at once, by the goroutine
// of the handler, so they precede the result. Without a token nothing is sent.
func (c *connection) withProgress(ctx context.Context, this *call, token json.RawMessage) context.Context {
	if _, ok := canonicalID(token); !ok {
		return ctx
	}
	return context.WithValue(ctx, progressKey{}, reporter(func(done, total float64, message string) {
		c.mu.Lock()
		wanted := !this.cancelled
		c.mu.Unlock()
		if !wanted {
			return
		}
		c.write(map[string]any{
			"jsonrpc": mcp.JSONRPC_VERSION,
			"method":  "notifications/progress",
			"params":  map[string]any{"progressToken": token, "progress": done, "total": total, "message": message},
		})
	}))
}

// report tells the client of the call in ctx, if it asked, that done of total is done.
func report(ctx context.Context, done, total float64, message string) {
	if r, ok := ctx.Value(progressKey{}).(reporter); ok {
		r(done, total, message)
	}
}

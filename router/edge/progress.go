package edge

import "github.com/agenticnexus/agenticnexus/internal/jsonrpc"

// RelayProgress returns a function that passes the params of a server's progress notifications on to the client, with
// the client's own token. Without a token it does nothing.
func (x *Exchange) RelayProgress() func(params []byte) {
	return func(params []byte) {
		if x.ProgressToken != nil {
			x.Notify(jsonrpc.Notification("notifications/progress", jsonrpc.Set(params, "progressToken", x.ProgressToken)))
		}
	}
}

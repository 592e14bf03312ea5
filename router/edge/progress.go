package edge

import (
	"strconv"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// RelayProgress returns a function that relays the params of a server's progress notifications to the client with the
// client's own token. Without a token it does nothing.
func (x *Exchange) RelayProgress() func(params []byte) {
	return func(params []byte) {
		if x.ProgressToken != nil {
			params = jsonrpc.Set(params, "progressToken", x.ProgressToken)
			x.Notify(jsonrpc.Notification("notifications/progress", params))
		}
	}
}

// Progress returns a function that reports progress from 0 to 1 to the client; nil if the client wants none.
func (x *Exchange) Progress() func(fraction float64, message string) {
	if x.ProgressToken == nil {
		return nil
	}
	return func(fraction float64, message string) {
		params := append([]byte(`{"progressToken":`), x.ProgressToken...)
		params = strconv.AppendFloat(append(params, `,"progress":`...), fraction, 'f', -1, 64)
		params = append(append(params, `,"total":1.0,"message":`...), jsonrpc.StringID(message)...)
		x.Notify(jsonrpc.Notification("notifications/progress", append(params, '}')))
	}
}

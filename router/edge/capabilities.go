package edge

import (
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// WithoutSubscriptions returns raw server capabilities without those that clients of the modern era use by way
// of subscriptions/listen, which the surfaces do not serve.
func WithoutSubscriptions(capabilities []byte) []byte {
	for _, kind := range [...]string{"tools", "prompts", "resources"} {
		value := jsonrpc.Get(capabilities, kind)
		if len(value) == 0 || value[0] != '{' {
			continue
		}
		if kept := jsonrpc.Remove(jsonrpc.Remove(value, "listChanged"), "subscribe"); len(kept) < len(value) {
			capabilities = jsonrpc.Set(capabilities, kind, kept)
		}
	}
	return capabilities
}

// levels are those of log messages, the least severe first.
var levels = [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Wants reports whether a notification of a server that belongs to the request may be sent for it. In the modern
// era log messages need a request that names their level, or a lower one, in its _meta.
func (x *Exchange) Wants(m jsonrpc.Message) bool {
	if !x.Modern || m.Method != "notifications/message" {
		return true
	}
	asked := jsonrpc.Text(jsonrpc.Get(x.Message.Params, "_meta", mcp.MetaKeyLogLevel))
	least := slices.Index(levels[:], asked)
	return least >= 0 && slices.Index(levels[:], jsonrpc.Text(jsonrpc.Get(m.Params, "level"))) >= least
}

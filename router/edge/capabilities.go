package edge

import "github.com/agenticnexus/agenticnexus/internal/jsonrpc"

// WithoutSubscriptions removes the server capabilities that need subscriptions/listen (2026-07-28), for profiles that
// do not serve it.
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

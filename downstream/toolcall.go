package downstream

import "github.com/agenticnexus/agenticnexus/internal/jsonrpc"

// ToolParams makes the params of a tools/call. tool is the tool's own name at its server; arguments and meta are raw
// JSON and stay as they are. A nil meta leaves _meta out.
func ToolParams(tool string, arguments, meta []byte) []byte {
	params := append([]byte(`{"name":`), jsonrpc.StringID(tool)...)
	params = append(append(params, `,"arguments":`...), arguments...)
	if meta != nil {
		params = append(append(params, `,"_meta":`...), meta...)
	}
	return append(params, '}')
}

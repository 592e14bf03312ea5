package downstream

import "github.com/agenticnexus/agenticnexus/internal/jsonrpc"

// ToolParams returns the params of a tools/call. tool is the tool's own name; arguments and meta are raw JSON that is
// copied unchanged. With a nil meta, _meta is left out.
func ToolParams(tool string, arguments, meta []byte) []byte {
	params := append([]byte(`{"name":`), jsonrpc.StringID(tool)...)
	params = append(append(params, `,"arguments":`...), arguments...)
	if meta != nil {
		params = append(append(params, `,"_meta":`...), meta...)
	}
	return append(params, '}')
}

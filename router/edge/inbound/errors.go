package inbound

import "github.com/agenticnexus/agenticnexus/internal/jsonrpc"

// InvalidRequest returns an error with code -32600.
func InvalidRequest(reason string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "Invalid request: " + reason}
}

// InvalidParams returns an error with code -32602.
func InvalidParams(reason string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params: " + reason}
}

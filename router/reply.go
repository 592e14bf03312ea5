package router

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// Fail answers a request with the JSON-RPC error for a failed call. Router tools report errors that the caller caused
// as isError results instead, see failed.
func Fail(x *edge.Exchange, err error) {
	var unknown *plan.Error
	switch {
	case notAnswered(err):
		// nobody waits for the response, or the edge writes it
	case errors.As(err, &unknown):
		x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: unknown.Message})
	default:
		x.Fail(downstream.Failed(err, x.Version.AtLeast(protocol.V20260728)))
	}
}

// failTool answers a call of a router tool: with an isError result if the caller caused err, else like Fail.
func failTool(x *edge.Exchange, err error) {
	if text, refused := refusalText(err); refused {
		replyError(x, text)
		return
	}
	Fail(x, err)
}

// failed returns the isError result of a router tool. It returns err if the client cancelled the request.
func failed(err error) (*mcp.CallToolResult, error) {
	if cancelled(err) {
		return nil, err
	}
	if text, refused := refusalText(err); refused {
		return mcp.NewToolResultError(text), nil
	}
	return mcp.NewToolResultError(err.Error()), nil
}

// notAnswered reports whether err ends a request that gets no response from here.
func notAnswered(err error) bool {
	_, ok := errors.AsType[*edge.Cancelled](err)
	return ok || edge.Ended(err)
}

// cancelled reports whether err is a cancellation by the client: a notification, or the end of its connection.
func cancelled(err error) bool {
	_, ok := errors.AsType[*edge.Cancelled](err)
	return ok || errors.Is(err, context.Canceled)
}

// refusalText returns the message for the caller; ok is false if the caller did not cause err.
func refusalText(err error) (string, bool) {
	var refusal *Refusal
	var fault *plan.Error
	switch {
	case errors.As(err, &refusal):
		return refusal.Text, true
	case errors.As(err, &fault):
		return fault.Message, true
	}
	return "", false
}

// replyError answers with an isError result.
func replyError(x *edge.Exchange, text string) { x.Reply(encodeResult(mcp.NewToolResultError(text))) }

// result returns a tool result with text and structured content.
func result(text string, structured any) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		Content:           []mcp.Content{mcp.NewTextContent(text)},
		StructuredContent: json.RawMessage(encode(structured, "")),
	}
}

// encodeResult encodes a result. mcp-go would escape &, < and > in tools and plans, but these must stay unchanged: a
// replayed plan makes the same calls.
func encodeResult(v any) []byte {
	if r, ok := v.(*mcp.CallToolResult); ok {
		v = struct {
			ResultType mcp.ResultType `json:"resultType,omitempty"`
			Content    []mcp.Content  `json:"content"`
			Structured any            `json:"structuredContent,omitempty"`
			IsError    bool           `json:"isError,omitempty"`
		}{r.ResultType, r.Content, r.StructuredContent, r.IsError}
	}
	return []byte(encode(v, ""))
}

// encode returns readable JSON that leaves &, < and > unescaped.
func encode(v any, indent string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return string(jsonrpc.StringID(err.Error()))
	}
	return string(bytes.TrimRight(b.Bytes(), "\n"))
}

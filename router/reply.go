package router

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// ReplyRPCError answers a request with the JSON-RPC error for a failed call. Router tools report errors as isError
// results instead, see replyToolError.
func ReplyRPCError(x *edge.Exchange, err error) {
	var unknown *plan.Error
	switch {
	case notAnswered(err):
	case errors.As(err, &unknown):
		x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: unknown.Message})
	default:
		x.Fail(downstream.Failed(err, x.Version.AtLeast(protocol.V20260728)))
	}
}

// replyToolError answers a call of a router tool with an isError result.
func replyToolError(x *edge.Exchange, err error) {
	if text, refused := refusalText(err); refused {
		replyError(x, text)
	} else if !cancelled(err) && !edge.Ended(err) { // else the edge answers, if anybody waits
		replyError(x, err.Error())
	}
}

// notAnswered reports whether err ends a request for which nobody waits, or which the edge answers.
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

// content is a text block of a result.
type content struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// replyError answers with an isError result.
func replyError(x *edge.Exchange, text string) {
	x.Reply([]byte(encode(struct {
		Content []content `json:"content"`
		IsError bool      `json:"isError"`
	}{[]content{{"text", text}}, true}, "")))
}

// result returns a tool result with text, raw content blocks, and structured content. &, < and > stay unescaped: a
// replayed plan makes the same calls.
func result(text string, structured any, blocks ...any) []byte {
	return []byte(encode(struct {
		Content    []any `json:"content"`
		Structured any   `json:"structuredContent"`
	}{append([]any{content{"text", text}}, blocks...), structured}, ""))
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

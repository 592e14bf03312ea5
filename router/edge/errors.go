package edge

import (
	"errors"
	"strconv"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// Causes of ended contexts, and errors of requests to clients.
var (
	ErrSessionEnded = errors.New("the client session has ended")
	ErrStopped      = errors.New("the server is shutting down")
	ErrNoClient     = errors.New("it does not accept requests")
	ErrClientGone   = errors.New("the client disconnected before it answered")
	ErrKeyRevoked   = errors.New("the API key is no longer valid")
	errYielded      = errors.New("its client did not come back with the input, and another client waits to be asked")
	errFenced       = errors.New("another replica has taken over the session")
)

// Ended reports whether err is the reason why the edge ended a request. The edge then replies, not the handler.
func Ended(err error) bool {
	return errors.Is(err, ErrSessionEnded) || errors.Is(err, ErrKeyRevoked) || errors.Is(err, ErrStopped) ||
		errors.Is(err, errFenced) || errors.Is(err, errYielded)
}

// Cancelled is the context cause of a request that the client cancelled.
type Cancelled struct {
	Reason []byte // raw JSON string, or nil
	Params []byte // raw params of the notification
}

// Error implements error.
func (c *Cancelled) Error() string {
	if reason := jsonrpc.Text(c.Reason); reason != "" {
		return "cancelled by the client: " + reason
	}
	return "cancelled by the client"
}

// CancelParams returns the raw params of the notification, for relaying to the server.
func (c *Cancelled) CancelParams() []byte { return c.Params }

// Answered converts the results of [Exchange.Request] to the raw result or error for the requesting server. Both are
// nil if the request did not reach the client.
func Answered(m jsonrpc.Message, err error) (result, rpcErr []byte) {
	switch {
	case errors.Is(err, ErrNoClient):
		return nil, nil
	case err != nil:
		e := &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "The client cannot be asked: " + err.Error()}
		return nil, e.Encode()
	}
	return m.Result, m.Err
}

// OnePage returns the error of a request for a list with one page: every cursor is unknown, also an empty one (MCP
// 2026-07-28, Pagination). It is nil without a cursor.
func OnePage(params []byte) *jsonrpc.Error {
	if cursor := jsonrpc.Get(params, "cursor"); cursor == nil || string(cursor) == "null" {
		return nil
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params: unknown cursor; the list has one page"}
}

// routerError returns the error for a request that the router itself fails. The code depends on the negotiated
// version, which may be unknown.
func routerError(v protocol.Version, text, reason string, retryable bool) *jsonrpc.Error {
	code := jsonrpc.CodeServer
	if v.AtLeast(protocol.V20260728) {
		code = jsonrpc.CodeInternal
	}
	data := strconv.AppendBool([]byte(`{"server":"","reason":"`+reason+`","retryable":`), retryable)
	return &jsonrpc.Error{Code: code, Message: text, Data: append(data, '}')}
}

// noReply returns the error for a request whose handler did not reply. If the edge ended the request, its outcome is
// unknown.
func noReply(cause error, v protocol.Version) *jsonrpc.Error {
	if !Ended(cause) {
		return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "Internal error: the request was not answered"}
	}
	return routerError(v, "The request was not answered: "+cause.Error(), "outcome_unknown", false)
}

// wireError converts an error of Edge.track for the client.
func wireError(err error) *jsonrpc.Error {
	var wire *jsonrpc.Error
	if errors.As(err, &wire) {
		return wire
	}
	return routerError("", "The request was not served: "+err.Error(), reason.Unavailable, false)
}

// inFlightError returns the error for a request whose id is already in flight.
func inFlightError(id jsonrpc.ID) *jsonrpc.Error {
	return inbound.InvalidRequest("the id " + id.Text() + " is already in flight")
}

// wrongKey counts a request with a wrong _meta.api_key and returns its response.
func wrongKey(e *Edge, m *jsonrpc.Message, v protocol.Version) output.Message {
	e.refusals.unauthorized.Add(1)
	const text = "Invalid API key"
	if m.Method != "tools/call" {
		return output.Error(m.ID, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: text})
	}
	body := `{"content":[{"type":"text","text":"` + text + `"}],"isError":true}`
	if v.AtLeast(protocol.V20260728) {
		body = `{"resultType":"complete",` + body[1:]
	}
	return output.Result(m.ID, []byte(body))
}

// WithoutSubscriptions removes the server capabilities that need subscriptions/listen (2026-07-28), for handlers that
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

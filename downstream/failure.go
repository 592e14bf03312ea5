package downstream

import (
	"errors"
	"strconv"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// UnknownError names what a caller asked for and cannot have, whether it is missing or hidden.
type UnknownError struct{ What, Name string }

// Error implements error.
func (e *UnknownError) Error() string { return "Unknown " + e.What + ": " + e.Name }

// retryable reports whether another attempt may fare better. It is the only place that says so.
func retryable(f *link.Failure) bool {
	switch f.Reason {
	case link.ReasonUnavailable, link.ReasonDisconnected, link.ReasonOverloaded:
		return true
	}
	return false
}

// reads are the methods that the specification defines as reads, and three that leave the same state however often
// they are called. Of any other, such as a vendor's own, nobody knows what a second call does.
var reads = map[string]bool{
	"ping": true, "server/discover": true,
	"tools/list": true, "prompts/list": true, "resources/list": true, "resources/templates/list": true,
	"prompts/get": true, "resources/read": true, "completion/complete": true,
	"tasks/list": true, "tasks/get": true, "tasks/result": true,

	"resources/subscribe": true, "resources/unsubscribe": true, "logging/setLevel": true,
}

// isLost reports whether a new session may fare better at once: the server does not know the old one.
func isLost(err error) bool {
	var f *link.Failure
	return errors.As(err, &f) && f.Lost
}

// mayHaveArrived reports whether what failed so may have reached the server.
func mayHaveArrived(err error) bool {
	var f *link.Failure
	return errors.As(err, &f) && f.Delivered
}

// Retryable reports whether the caller may usefully try again later what failed now.
func Retryable(f *link.Failure) bool { return retryable(f) || f.Reason == link.ReasonTimeout }

// Failed turns an error of Call into the error object of a JSON-RPC response; modern says for which era.
func Failed(err error, modern bool) *jsonrpc.Error {
	var failure *link.Failure
	var unknown *UnknownError
	var input *InputError
	switch {
	case errors.As(err, &input):
		e := Failed(&link.Failure{Server: input.Server, Reason: link.ReasonProtocol}, modern)
		e.Message = input.Error()
		return e
	case errors.As(err, &unknown):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: unknown.Error()}
	case errors.As(err, &failure):
		e := &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: failure.Error()}
		if modern {
			e.Code = jsonrpc.CodeInternal
		}
		e.Data = append(append(append([]byte(`{"server":`), jsonrpc.StringID(failure.Server)...), `,"reason":"`...), failure.Reason...)
		e.Data = strconv.AppendBool(append(e.Data, `","retryable":`...), Retryable(failure))
		e.Data = append(e.Data, '}')
		return e
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "Internal error: " + err.Error()}
}

// Failure is the error of a request that got no answer.
type Failure = link.Failure

// ReasonTimeout is the reason of a Failure after too long a silence.
const ReasonTimeout = link.ReasonTimeout

package downstream

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// UnknownError names what a caller asked for, which does not exist or is hidden from it.
type UnknownError struct{ What, Name string }

// Error implements error.
func (e *UnknownError) Error() string { return "Unknown " + e.What + ": " + e.Name }

// InputError is the error of a call whose server needs input that no client gives.
type InputError struct {
	Server   string
	Method   string // of the server's request
	Why      string
	Declined bool // the client was asked
}

// Error implements error.
func (e *InputError) Error() string {
	return fmt.Sprintf("server %s needs an answer to %s: %s", e.Server, e.Method, e.Why)
}

// retryable reports whether another attempt may succeed. No other code decides this.
func retryable(f *link.Failure) bool {
	switch f.Reason {
	case reason.Unavailable, reason.Disconnected, reason.Overloaded:
		return true
	}
	return false
}

// reads are the methods that the specification defines as reads, and three that leave the same state however often
// they are called. The effect of repeating any other method, such as a vendor's, is not known.
var reads = map[string]bool{
	"ping": true, "server/discover": true,
	"tools/list": true, "prompts/list": true, "resources/list": true, "resources/templates/list": true,
	"prompts/get": true, "resources/read": true, "completion/complete": true,
	"tasks/list": true, "tasks/get": true, "tasks/result": true,

	"resources/subscribe": true, "resources/unsubscribe": true, "logging/setLevel": true,
}

// isLost reports whether a new session may succeed at once, because the server does not know the old one.
func isLost(err error) bool {
	var f *link.Failure
	return errors.As(err, &f) && f.Lost
}

// mayHaveArrived reports whether a message that failed with err may have reached the server.
func mayHaveArrived(err error) bool {
	var f *link.Failure
	return errors.As(err, &f) && f.Delivered
}

// Retryable reports whether the same request may succeed later.
func Retryable(f *link.Failure) bool { return retryable(f) || f.Reason == reason.Timeout }

// Failed turns an error of Call into the error object of a JSON-RPC response; modern says for which era.
func Failed(err error, modern bool) *jsonrpc.Error {
	var failure *link.Failure
	var unknown *UnknownError
	var input *InputError
	switch {
	case errors.As(err, &input):
		e := Failed(&link.Failure{Server: input.Server, Reason: reason.Protocol}, modern)
		e.Message = input.Error()
		return e
	case errors.As(err, &unknown):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: unknown.Error()}
	case errors.As(err, &failure):
		e := &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: failure.Error()}
		if modern {
			e.Code = jsonrpc.CodeInternal
		}
		e.Data = append([]byte(`{"server":`), jsonrpc.StringID(failure.Server)...)
		e.Data = append(append(e.Data, `,"reason":"`...), failure.Reason...)
		e.Data = strconv.AppendBool(append(e.Data, `","retryable":`...), Retryable(failure))
		e.Data = append(e.Data, '}')
		return e
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "Internal error: " + err.Error()}
}

// Failure is the error of a request that got no answer.
type Failure = link.Failure

// refused marks a failure of a call that was refused before it reached its server.
type refused struct{ *link.Failure }

// Unwrap makes the Failure visible to errors.As.
func (r refused) Unwrap() error { return r.Failure }

func timedOut(err error) bool {
	var f *link.Failure
	return errors.As(err, &f) && f.Reason == reason.Timeout
}

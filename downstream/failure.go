package downstream

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/trust"
)

// UnknownError names a server, tool, method or other item that does not exist or is hidden from the caller.
type UnknownError struct{ What, Name string }

const unknownMethod = "method"

// Error implements error.
func (e *UnknownError) Error() string {
	if e.What == unknownMethod {
		return "Method not found: " + e.Name
	}
	return "Unknown " + e.What + ": " + e.Name
}

// ForbiddenError is the error of a call that was not made because of a decision: it is denied, or it needs consent and
// nobody could be asked or the user refused.
type ForbiddenError struct {
	trust.Decision
	Declined bool // the user was asked and refused
}

// Unasked returns the error of a call that needs approval although nobody could be asked. why tells why not.
func Unasked(d trust.Decision, why string) *ForbiddenError {
	d.Reason = strings.TrimSuffix(d.Reason, ".") + "; it needs approval, and " + why
	return &ForbiddenError{Decision: d}
}

// Error implements error.
func (e *ForbiddenError) Error() string { return e.Decision.Reason }

// Kind returns the reason of the failure, see package reason.
func (e *ForbiddenError) Kind() string {
	if e.Declined {
		return reason.Declined
	}
	return reason.Forbidden
}

// InputError is the error of a call whose server needs input that the client does not give.
type InputError struct {
	Server   string
	Method   string // of the server's request
	Why      string
	Declined bool // the client was asked and refused
}

// Error implements error.
func (e *InputError) Error() string {
	return fmt.Sprintf("server %s needs an answer to %s: %s", e.Server, e.Method, e.Why)
}

// retryable reports whether another attempt may succeed. This is the only place that decides it.
func retryable(f *link.Failure) bool {
	switch f.Reason {
	case reason.Unavailable, reason.Disconnected, reason.Overloaded:
		return true
	}
	return false
}

// reads are the methods that the specification defines as reads, and three idempotent ones. For any other method,
// such as a vendor's, the effect of a repetition is unknown.
var reads = map[string]bool{
	"ping": true, "server/discover": true,
	"tools/list": true, "prompts/list": true, "resources/list": true, "resources/templates/list": true,
	"prompts/get": true, "resources/read": true, "completion/complete": true,
	"tasks/list": true, "tasks/get": true, "tasks/result": true,

	"resources/subscribe": true, "resources/unsubscribe": true, "logging/setLevel": true,
}

// Retryable reports whether the same request may succeed later.
func Retryable(f *link.Failure) bool { return retryable(f) || f.Reason == reason.Timeout }

// Failed converts an error of Call to a JSON-RPC error; modern selects the era.
func Failed(err error, modern bool) *jsonrpc.Error {
	var failure *link.Failure
	var unknown *UnknownError
	var input *InputError
	var forbidden *ForbiddenError
	switch {
	case errors.As(err, &forbidden):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: forbidden.Error(),
			Data: []byte(`{"reason":"` + forbidden.Kind() + `"}`)}
	case errors.As(err, &input):
		e := Failed(&link.Failure{Server: input.Server, Reason: reason.Protocol}, modern)
		e.Message = input.Error()
		return e
	case errors.As(err, &unknown):
		code := jsonrpc.CodeInvalidParams
		if unknown.What == unknownMethod {
			code = jsonrpc.CodeMethodNotFound
		}
		return &jsonrpc.Error{Code: code, Message: unknown.Error()}
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

// Failure is the error of a request without a response.
type Failure = link.Failure

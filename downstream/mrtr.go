package downstream

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/downstream/server"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Limits of the input that a server requests during one call.
const (
	maxInputRounds   = 16      // results that ask for input
	maxInputRequests = 32      // per result
	maxIdleRounds    = 3       // consecutive results without requests, which only delay the call
	maxInputBytes    = 4 << 20 // size of such a result, and of the responses to it
)

const (
	inputRequired  = "input_required"
	clientNotAsked = "the client cannot be asked"
)

// NeedsInput reports whether a reply requests input instead of being the result.
func NeedsInput(r link.Reply) bool { return jsonrpc.Text(resultType(r)) == inputRequired }

// resultType returns the raw type of a result; nil if it has none.
func resultType(r link.Reply) []byte {
	if !r.Names.Has(jsonrpc.NameResultType) {
		return nil
	}
	return jsonrpc.Get(r.Result, "resultType")
}

// bridge converts input_required results of modern servers (MCP 2026-07-28, multi round-trip requests) to requests to
// the client, and continues the call with the responses. Meanwhile the call holds no permit of the queue and its time
// limit is paused. The following calls do not count as attempts, but losing the response to one of them is treated as
// usual. Clients that handle such results receive them unchanged.
func (c *callChain) bridge(next callFunc) callFunc {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		next := asking(next)
		reply, err := next(ctx, r)
		if err != nil || reply.Err != nil {
			return reply, err
		}
		in := input{Request: r}
		if r.Modern {
			switch kind := resultType(reply); {
			case isTask(kind) && !(reply.Modern && r.takesTasks()):
				return link.Reply{}, in.fails("it answered %s with a task, which its client does not take", r.Method)
			case reply.Modern && len(kind) > 0 && kind[0] != '"' && kind[0] != 'n':
				return link.Reply{}, in.fails("its resultType is not a string")
			case reply.Modern: // an extension may define other types
				return reply, nil
			}
		}
		for err == nil && reply.Err == nil {
			required, problem := in.required(reply)
			if problem != nil || !required {
				if reply.Modern {
					reply.Result = link.Older(reply.Result)
				}
				return reply, problem
			}
			following := *r
			if following.Params, err = in.params(ctx, reply.Result, c.opts.Execution.RetryDelay); err != nil {
				break
			}
			following.Attempts = new(int)
			reply, err = next(ctx, &following)
			r.server = following.server // the call may have moved to a successor
		}
		if err != nil {
			return link.Reply{}, err
		}
		return reply, nil
	}
}

// Attributed returns a reply in which the requests to the client name their server, see [server.AttributedReply]. The
// error is a *Failure.
func Attributed(name string, reply link.Reply) (link.Reply, error) {
	own, err := server.AttributedReply(name, reply)
	if err != nil {
		return link.Reply{}, &link.Failure{Server: name, Reason: reason.Protocol,
			Message: "its request to the user is invalid: " + err.Error(), MaybeDelivered: true}
	}
	return own, nil
}

// asking refuses replies that ask for what the server may not ask, and those of 2026-07-28 whose result is no object.
func asking(next callFunc) callFunc {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		reply, err := next(ctx, r)
		if err == nil && reply.Err == nil && (r.Modern || reply.Modern) && !bytes.HasPrefix(reply.Result, []byte("{")) {
			in := input{Request: r}
			return link.Reply{}, in.fails("its result is not an object")
		}
		asked := server.Asked
		if r.Task != "" {
			reply.Names |= jsonrpc.NameResultType // it may have requests without a resultType
			asked = askedByTask
		}
		if r.server.Config.Requests == nil || err != nil {
			return reply, err
		}
		for _, method := range asked(reply) {
			if !r.server.Config.MayAsk(method) {
				return link.Reply{}, &InputError{Server: r.Server, Method: texts.Line(method, 100),
					Why: "the configuration does not let the server ask for it"}
			}
		}
		return reply, nil
	}
}

// input is the state of a call between its round trips.
type input struct {
	*Request
	rounds   int
	idle     int         // consecutive results without a request
	declined *InputError // in the last round trip
}

// required reports whether a result requests input. The error tells why the result is invalid.
func (in *input) required(reply link.Reply) (bool, error) {
	read := reply.Modern || in.Step // handshake servers may use other values freely
	kind := resultType(reply)
	switch text := jsonrpc.Text(kind); {
	case kind == nil, string(kind) == "null", text == "complete":
		return false, nil
	case text == inputRequired:
	case read:
		return false, in.fails("unknown resultType %s", texts.Line(string(kind), 100))
	default:
		return false, nil
	}
	in.rounds++
	switch in.Method {
	case "tools/call", "prompts/get", "resources/read":
	default:
		return false, in.fails("%s asks for input, which it must not", in.Method)
	}
	switch {
	case in.declined != nil:
		return false, in.declined
	case in.rounds > maxInputRounds:
		return false, in.fails("it requested input more than %d times in one call", maxInputRounds)
	case len(reply.Result) > maxInputBytes:
		return false, in.fails("a result that requests input exceeds %d bytes", maxInputBytes)
	}
	return true, nil
}

func (in *input) fails(format string, args ...any) error {
	return &link.Failure{
		Server: in.Server, Reason: reason.Protocol, Message: fmt.Sprintf(format, args...), MaybeDelivered: true,
	}
}

// params relays the requests in a result to the client. It returns the params of the next call: the responses, and
// the server's unchanged requestState.
func (in *input) params(ctx context.Context, result []byte, wait time.Duration) ([]byte, error) {
	answers, err := in.ask(ctx, jsonrpc.Get(result, "inputRequests"))
	if err != nil {
		return nil, err
	}
	params := jsonrpc.Remove(in.Params, "inputResponses")
	if in.idle++; answers != nil {
		in.idle = 0
		params = jsonrpc.Set(params, "inputResponses", answers)
	}
	switch {
	case in.idle > maxIdleRounds:
		return nil, in.fails("it asked to be called again later %d times", in.idle)
	case in.idle > 0:
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if state := jsonrpc.Get(result, "requestState"); state != nil {
		return jsonrpc.Set(params, "requestState", state), nil
	}
	return jsonrpc.Remove(params, "requestState"), nil
}

// ask sends the requests to the client one after the other and returns the responses under the server's keys; nil if
// there are no requests.
func (in *input) ask(ctx context.Context, requests []byte) (answers []byte, err error) {
	defer in.pause()()
	asked := 0
	jsonrpc.Members(requests, func(key []byte, v jsonrpc.Span) bool {
		if asked++; asked > maxInputRequests {
			err = in.fails("one result has more than %d requests", maxInputRequests)
			return false
		}
		request := v.Of(requests)
		method := jsonrpc.Text(jsonrpc.Get(request, "method"))
		var answer []byte
		if answer, err = in.answer(ctx, method, jsonrpc.Get(request, "params")); err != nil {
			return false
		}
		answers = jsonrpc.Set(answers, string(key), answer)
		if len(answers) > maxInputBytes {
			err = &link.Failure{Server: in.Server, Reason: reason.TooLarge,
				Message: fmt.Sprintf("the responses to its requests exceed %d bytes", maxInputBytes)}
		}
		return err == nil
	})
	return answers, err
}

// answer returns the client's response to one request. A refusal by the user is a response and is sent to the server,
// but the call fails if the server asks again.
func (in *input) answer(ctx context.Context, method string, params []byte) ([]byte, error) {
	refused := &InputError{Server: in.Server, Method: texts.Line(method, 100), Why: clientNotAsked}
	if in.Ask == nil {
		return nil, refused
	}
	request := ServerRequest{
		Server: in.Server, Method: method, Params: params, Input: true, Notify: in.connection().Notify,
	}
	result, rpcErr := in.Ask(ctx, request)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case result != nil:
		switch jsonrpc.Text(jsonrpc.Get(result, "action")) {
		case "decline", "cancel":
			refused.Why, refused.Declined = "the user declined", true
			in.declined = refused
		}
		return result, nil
	case rpcErr != nil:
		refused.Why = "the client refused: " + texts.Line(jsonrpc.Text(jsonrpc.Get(rpcErr, "message")), 300)
		switch codeOf(rpcErr) {
		case jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidParams, jsonrpc.CodeMissingCapability:
		default:
			refused.Declined = true
		}
	}
	return nil, refused
}

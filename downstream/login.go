package downstream

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/downstream/server"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// loginTime limits how long a call waits for its user to log in to a server.
const loginTime = 5 * time.Minute

// loggingIn lets a caller log in to a server where it has to do so itself, and makes the call again then. The call's
// client shows its user the page (elicitation, URL mode); if it cannot, the error names the page. Lists and
// notifications do not ask. Nothing was handled before the login. Meanwhile the call holds no permit of the queue and
// its time limit is paused.
func loggingIn(servers *servers, next callFunc) callFunc {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		reply, err := next(ctx, r)
		failure, lacks := errors.AsType[*link.Failure](err)
		if !lacks || !failure.NoToken || r.server.Caller() == "" {
			return reply, err
		}
		if r.calledTool() != "" && r.Task == "" && r.Ask != nil && r.Logins != "" {
			why := r.logIn(ctx)
			switch {
			case ctx.Err() != nil:
				return link.Reply{}, context.Cause(ctx)
			case why == nil && r.calledTool() == server.LoginTool:
				own := view{servers, r.Login}.enabled(r.Server)
				if own != nil && own.HasToken() {
					return loggedIn(r.Server), nil
				}
			case why == nil:
				reply, err = next(ctx, r)
				if failure, lacks = errors.AsType[*link.Failure](err); !lacks || !failure.NoToken {
					return reply, err
				} // its sessions were closed for another reason
			case !errors.Is(why, server.ErrNotAsked):
				return link.Reply{}, r.loginFailure(failure, why.Error())
			}
		}
		return link.Reply{}, r.loginFailure(failure, failure.Message)
	}
}

// loginFailure is failure with another reason, and where to log in.
func (r *Request) loginFailure(failure *link.Failure, why string) error {
	own := *failure
	page := "/login/" + r.Server + " of this router"
	if r.Logins != "" {
		page = r.Logins + r.Server
	}
	own.Message = why + "; log in at " + page + ", then call again"
	return &own
}

// loggedIn is the result of LoginTool.
func loggedIn(name string) link.Reply {
	text := jsonrpc.StringID("You are logged in to " + name + ". List its tools again.")
	return link.Reply{Result: fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}]}`, text)}
}

// logIn asks the user to log in and waits for that. The error is server.ErrNotAsked, or tells why nobody has logged in.
func (r *Request) logIn(ctx context.Context) error {
	defer r.pause()()
	late := fmt.Errorf("nobody has logged in within %v", loginTime)
	waiting, cancel := context.WithTimeoutCause(ctx, loginTime, late)
	defer cancel()
	id := rand.Text()
	shown := false
	err := r.server.AskForLogin(waiting, func() error {
		params := jsonrpc.Set(nil, "message", []byte(jsonrpc.StringID("Log in to "+r.Server+" to go on. The page asks for "+
			"the key or token that your client uses at this router.")))
		for _, member := range [...][2]string{{"url", r.Logins + r.Server}, {"elicitationId", id}, {"mode", "url"}} {
			params = jsonrpc.Set(params, member[0], []byte(jsonrpc.StringID(member[1])))
		}
		result, rpcErr := r.Ask(waiting, ServerRequest{Server: r.Server, Method: "elicitation/create", Params: params,
			Input: true, Notify: func(context.Context, string, []byte) error { return nil }})
		switch action := jsonrpc.Text(jsonrpc.Get(result, "action")); {
		case waiting.Err() != nil:
			return context.Cause(waiting)
		case action == "accept":
			shown = true
			return nil
		case action != "":
			return errors.New("the user declined to log in")
		case rpcErr != nil && codeOf(rpcErr) != jsonrpc.CodeMissingCapability:
			return errors.New("the client could not ask the user to log in")
		}
		return server.ErrNotAsked
	})
	if err == nil && shown && r.Notify != nil {
		params := jsonrpc.Set(nil, "elicitationId", []byte(jsonrpc.StringID(id)))
		raw := jsonrpc.Notification("notifications/elicitation/complete", params)
		r.Notify(jsonrpc.Message{Method: "notifications/elicitation/complete", Params: params, Raw: raw})
	}
	return err
}

package downstream

import (
	"context"
	"strings"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// elsewhere makes the failures that another replica reports of the server that it runs the failures that they are
// there. That replica has repeated what may be repeated.
func (c *callChain) elsewhere(next callFunc) callFunc {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		reply, err := next(ctx, r)
		if err == nil && reply.Err != nil && r.server.Config.Via != nil {
			if f := reported(r.Server, reply.Err); f != nil {
				return link.Reply{}, f
			}
		}
		return reply, err
	}
}

// reported reads a failure that Failed has written; nil if the error is the server's own.
func reported(server string, rpcErr []byte) *link.Failure {
	data := jsonrpc.Get(rpcErr, "data")
	f := &link.Failure{Server: server, Reason: jsonrpc.Text(jsonrpc.Get(data, "reason"))}
	text, ok := strings.CutPrefix(jsonrpc.Text(jsonrpc.Get(rpcErr, "message")), f.Error())
	if f.Reason == "" || jsonrpc.Text(jsonrpc.Get(data, "server")) != server || !ok {
		return nil
	}
	f.Message = text
	return f
}

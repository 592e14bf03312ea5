package proxy

import (
	"context"
	"slices"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// resource serves the requests that name a resource.
func (s *Surface) resource(ctx context.Context, x *edge.Exchange) {
	params := x.Message.Params
	uri, place, ok := text(x, params, "uri")
	if !ok {
		return
	}
	if x.Session == "" && x.Message.Method != "resources/read" {
		x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: x.Message.Method +
			" needs a session: send initialize first, then its Mcp-Session-Id with every request"})
		return
	}
	server := s.only
	if server == "" {
		var own string
		if server, own, ok = s.names().splitURI(uri); !ok || !slices.Contains(s.reach(x), server) {
			unknown(x, "resource", uri)
			return
		}
		params = with(params, place, own)
	}
	s.forward(ctx, x, server, "", params)
}

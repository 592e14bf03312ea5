package downstream

import (
	"context"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// Message is a notification of a server that belongs to no call, or that concerns also others than the call's client.
type Message struct {
	Server  string
	Client  string // owner of the session; empty for the router's own, which is also the shared one
	Caller  string // the only caller concerned; empty for all
	Told    string // the client that has received it with its call; empty for none
	Message jsonrpc.Message
}

// ServerRequest is a request from a server.
type ServerRequest struct {
	Method string
	Params []byte // raw
	Input  bool   // from an input_required result: only a client with the capability may be asked
	// Notify sends the server a notification in the session that the request came from.
	Notify func(ctx context.Context, method string, params []byte) error
}

// Asker answers a server's request on behalf of the client whose call caused it. It returns a raw result or a raw
// error, or neither if the client cannot be asked and nothing was sent. When ctx ends, the client receives a
// cancellation.
type Asker func(ctx context.Context, q ServerRequest) (result, err []byte)

package proxy

import (
	"context"
	"sync"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// relays are the requests of servers that clients are answering and may report progress on. Each has a token of the
// router's own, because servers may choose equal tokens. The zero value is ready.
type relays struct {
	mu     sync.Mutex
	last   int64
	byOurs map[string]relay
}

type relay struct {
	session, server string
	token           []byte // the server's own, raw
	notify          func(ctx context.Context, method string, params []byte) error
}

// begin returns the params of a request with the router's own token, if they have a token, and a function that ends
// it.
func (r *relays) begin(session, server string, q downstream.ServerRequest) (_ []byte, end func()) {
	token := jsonrpc.Get(q.Params, "_meta", "progressToken")
	if !jsonrpc.ValidID(token) {
		return q.Params, func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byOurs == nil {
		r.byOurs = map[string]relay{}
	}
	r.last++
	ours := string(jsonrpc.IntID(r.last))
	r.byOurs[ours] = relay{session, server, token, q.Notify}
	return jsonrpc.Splice(q.Params, jsonrpc.Edit{Span: jsonrpc.At(q.Params, token), With: []byte(ours)}), func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.byOurs, ours)
	}
}

// find returns the request that a client reports progress on.
func (r *relays) find(session string, params []byte) (of relay, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of, ok = r.byOurs[string(jsonrpc.Get(params, "progressToken"))]
	return of, ok && of.session == session
}

// progress returns the params of a client's progress notification with the server's own token.
func (of relay) progress(params []byte) []byte {
	token := jsonrpc.Get(params, "progressToken")
	return jsonrpc.Splice(params, jsonrpc.Edit{Span: jsonrpc.At(params, token), With: of.token})
}

package proxy

import (
	"sync"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// relays are the requests of servers that clients are answering and may report progress on. Each is known
// to its client by a token of our own, for servers may choose the same ones. The zero value is ready.
type relays struct {
	mu     sync.Mutex
	last   int64
	byOurs map[string]relay
}

type relay struct {
	session, server string
	token           []byte // the server's own, raw
}

// begin returns a request's params with a token of our own, if they have one, and a function that ends it.
func (r *relays) begin(session, server string, params []byte) (_ []byte, end func()) {
	token := jsonrpc.Get(params, "_meta", "progressToken")
	if !jsonrpc.ValidID(token) {
		return params, func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byOurs == nil {
		r.byOurs = map[string]relay{}
	}
	r.last++
	ours := string(jsonrpc.IntID(r.last))
	r.byOurs[ours] = relay{session, server, token}
	return jsonrpc.Splice(params, jsonrpc.Edit{Span: jsonrpc.At(params, token), With: []byte(ours)}), func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.byOurs, ours)
	}
}

// progress finds the server that a client's progress is for and returns the params with its own token.
func (r *relays) progress(session string, params []byte) (server string, theirs []byte, ok bool) {
	token := jsonrpc.Get(params, "progressToken")
	r.mu.Lock()
	of, ok := r.byOurs[string(token)]
	r.mu.Unlock()
	if !ok || of.session != session || of.server == "" {
		return "", nil, false
	}
	return of.server, jsonrpc.Splice(params, jsonrpc.Edit{Span: jsonrpc.At(params, token), With: of.token}), true
}

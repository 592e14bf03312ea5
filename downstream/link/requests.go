package link

import (
	"context"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

const (
	maxAsked   = 64               // concurrent server requests per session; more are refused
	maxReplies = 1024             // pending responses to pings and refused requests; more are dropped
	answerTime = 30 * time.Second // to send a response
)

// requests are the server's requests being answered. The zero value is ready.
type requests struct {
	mu   sync.Mutex
	open map[string]*request // by id
	busy int                 // open requests, and those whose responses are being sent
}

type request struct {
	key       string
	cancel    context.CancelCauseFunc
	withdrawn bool // guarded by requests.mu
}

// begin adds a request of the server; nil if there are too many or its id is in use.
func (q *requests) begin(id jsonrpc.ID, cancel context.CancelCauseFunc) *request {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := id.Key()
	if q.open[key] != nil || q.busy == maxAsked {
		return nil
	}
	q.busy++
	if q.open == nil {
		q.open = map[string]*request{}
	}
	of := &request{key: key, cancel: cancel}
	q.open[key] = of
	return of
}

// settle removes a request before its response is sent, because the server may reuse the id after the response. It
// reports whether the server still waits for the response.
func (q *requests) settle(of *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, of.key)
	return !of.withdrawn
}

// end frees a place for another request once the response was sent: this limits the number of goroutines.
func (q *requests) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy--
}

// withdraw ends a request that the server cancels and reports whether there was one.
func (q *requests) withdraw(params []byte) bool {
	key := jsonrpc.ID(jsonrpc.Get(params, "requestId")).Key()
	q.mu.Lock()
	defer q.mu.Unlock()
	of := q.open[key]
	if of == nil || of.withdrawn {
		return false
	}
	of.withdrawn = true
	of.cancel(&withdrawn{params})
	return true
}

// withdrawn is the cause of a context whose request the server has cancelled.
type withdrawn struct{ params []byte }

// Error implements error.
func (*withdrawn) Error() string { return "the server has cancelled its request" }

// CancelParams returns the raw params of the notification, which are relayed to the client.
func (w *withdrawn) CancelParams() []byte { return w.params }

package link

import (
	"context"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

const (
	maxAsked   = 64               // server→client requests of a session at once; more are refused
	maxReplies = 1024             // answers to pings and refusals on their way; beyond that they are dropped
	answerTime = 30 * time.Second // for an answer that the server waits for
)

// requests are the server's requests that are being answered. The zero value is ready.
type requests struct {
	mu   sync.Mutex
	open map[string]*request // by id
	busy int                 // those that are open, and those whose answers are on their way
}

type request struct {
	key       string
	cancel    context.CancelCauseFunc
	withdrawn bool // guarded by requests.mu
}

// begin lists a request of the server; nil if there are too many or its id is taken.
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

// settle removes a request before it is answered, because the server may use its id again after that. It reports
// whether the server still waits for the answer.
func (q *requests) settle(of *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, of.key)
	return !of.withdrawn
}

// end makes room for another request once the answer has left: their number bounds the goroutines.
func (q *requests) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy--
}

// withdraw ends a request that the server cancels, and reports whether there is one.
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

// CancelParams returns the raw params of the notification, which go on to the client that was asked.
func (w *withdrawn) CancelParams() []byte { return w.params }

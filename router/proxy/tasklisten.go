package proxy

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/safe"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// taskListener passes on what servers announce about tasks to the subscriptions/listen request of their caller.
type taskListener struct {
	s        ofServers
	x        *edge.Exchange
	ctx      context.Context // ends when a server ends its announcements; then the client has to listen again
	cancel   context.CancelFunc
	wg       sync.WaitGroup // a request for each server
	accepted []string       // the client's ids of tasks whose servers announce them

	mu    sync.Mutex
	open  bool              // the client's request is acknowledged
	early map[string][]byte // raw tasks announced before, by the client's id
	free  []func()          // of what has been announced before
}

// listenTasks listens to the tasks of a client with these ids, and waits until their servers have accepted that, or the
// deadline of lists. end must be called.
func (s listening) listenTasks(ctx context.Context, x *edge.Exchange, ids []string) *taskListener {
	l := &taskListener{s: ofServers(s), x: x, early: map[string][]byte{}}
	l.ctx, l.cancel = context.WithCancel(ctx)
	of := map[string]map[string]string{} // by server: the client's ids by those of the server
	for _, id := range ids {
		if name, known := l.s.open(x, id); known && l.may(name) {
			if of[name.Server] == nil {
				of[name.Server] = map[string]string{}
			}
			of[name.Server][name.ID] = id
		}
	}
	answers := make(chan []string, len(of))
	for server, names := range of {
		l.wg.Go(func() {
			defer safe.Recover(s.p.log, "listening to tasks", nil)
			l.listen(server, names, answers)
		})
	}
	deadline := time.NewTimer(s.p.opts.Config.ListDeadline)
	defer deadline.Stop()
	for range of {
		select {
		case accepted := <-answers:
			l.accepted = append(l.accepted, accepted...)
		case <-deadline.C:
			return l
		case <-l.ctx.Done():
			return l
		}
	}
	return l
}

// may reports whether the caller may still use the tool whose call has begun a task.
func (l *taskListener) may(name taskName) bool {
	if l.s.peer {
		return true
	}
	caller, _ := l.x.Caller.Now()
	return caller.MayUse(name.Server, name.Tool)
}

// listen listens to tasks of one server until it ends that, and sends the client's ids that it has accepted.
func (l *taskListener) listen(server string, names map[string]string, answers chan<- []string) {
	var own []string
	for id := range names {
		own = append(own, id)
	}
	slices.Sort(own)
	var told atomic.Bool
	err := serversOf(l.s.Surface, l.x).Sessions().ListenTasks(l.ctx, server, l.x.Caller.ID, own, func(raw []byte) {
		var accepted []string
		for _, id := range jsonrpc.Elements(raw) {
			if known := names[jsonrpc.Text(id)]; known != "" && !slices.Contains(accepted, known) {
				accepted = append(accepted, known)
			}
		}
		if !told.Swap(true) {
			answers <- accepted
		}
	}, func(task []byte) { l.heard(server, names, task) })
	if !told.Swap(true) {
		answers <- nil
		l.s.p.log.Debug("a server does not announce its tasks", "server", server, "error", err)
		return
	}
	l.cancel()
}

// heard passes a task of a server on.
func (l *taskListener) heard(server string, names map[string]string, task []byte) {
	id := names[jsonrpc.Text(jsonrpc.Get(task, "taskId"))]
	name, known := l.s.open(l.x, id)
	if id == "" || !known || !l.may(name) {
		return
	}
	reply := link.Reply{Result: task, Names: jsonrpc.AnyName}
	var err error
	if attributes(l.s.Surface) {
		reply, err = downstream.Attributed(server, reply)
	}
	if err == nil {
		task, err = l.s.renamedTask(server, id, reply.Result)
	}
	if err != nil {
		l.s.p.log.Debug("dropped the announcement of a task", "server", server, "error", err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.open:
		if free, ok := l.x.Hold(len(task)); ok { // else the client has to ask
			l.early[id], l.free = task, append(l.free, free)
		}
	case slices.Contains(l.accepted, id):
		l.x.Notify(edge.Subscribed(l.x, protocol.MethodTask, task))
	}
}

// acknowledged sends what was announced before the client's request was acknowledged.
func (l *taskListener) acknowledged() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = true
	for id, task := range l.early {
		if slices.Contains(l.accepted, id) {
			l.x.Notify(edge.Subscribed(l.x, protocol.MethodTask, task))
		}
	}
	l.drop()
}

// drop frees what was announced before.
func (l *taskListener) drop() {
	for _, free := range l.free {
		free()
	}
	l.early, l.free = nil, nil
}

// end ends the requests.
func (l *taskListener) end() {
	l.cancel()
	l.wg.Wait()
	l.drop()
}

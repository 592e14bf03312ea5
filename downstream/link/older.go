package link

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// Numbers of resources that are subscribed to in one session of 2026-07-28, a request each.
const (
	maxWatches       = 200
	callerWatchesMax = maxWatches / 2 // by one caller
)

// Numbers of requests for announcements open in one session of 2026-07-28 beyond which none listens to tasks.
const (
	maxTaskListeners   = 1000
	callerListenersMax = maxTaskListeners / 2 // of one caller
)

// older serves what either 2026-07-28 or the older versions have no requests for: log levels of sessions and of
// requests, and subscriptions to resources.
type older struct {
	s *Session

	mu      sync.Mutex
	level   []byte           // of the session, raw; nil = none
	watches map[string]watch // by URI
}

// watch is a subscription to a resource.
type watch struct {
	caller string
	cancel context.CancelFunc
}

// serve answers a request of an older version that the server of 2026-07-28 does not know. ok is false for all others.
func (o *older) serve(ctx context.Context, call *Call) (reply Reply, ok bool, err error) {
	switch call.Method {
	case "logging/setLevel":
		if jsonrpc.Get(o.s.Initialized, "capabilities", "logging") != nil {
			return o.setLevel(jsonrpc.Get(call.Params, "level")), true, nil
		}
	case "resources/subscribe", "resources/unsubscribe":
		updates := protocol.ResourceUpdates
		uri := jsonrpc.Text(jsonrpc.Get(call.Params, "uri"))
		switch {
		case string(jsonrpc.Get(o.s.Initialized, "capabilities", updates.Kind, updates.Capability)) != "true":
		case call.Method == "resources/subscribe":
			reply, err = o.watch(ctx, call.Caller, uri)
			return reply, true, err
		default:
			o.unwatch(uri)
			return done, true, nil
		}
	}
	return Reply{}, false, nil
}

var done = Reply{Result: []byte("{}")}

var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// setLevel sets the level that later requests carry.
func (o *older) setLevel(level []byte) Reply {
	if !slices.Contains(levels, jsonrpc.Text(level)) {
		return refusal("Invalid params: unknown level")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.level = level
	return done
}

func (o *older) logLevel() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.level
}

// levelTime limits logging/setLevel on behalf of another request.
const levelTime = 3 * time.Second

// heed serves, in a session with a handshake, what 2026-07-28 has no request for: the log level that a request names in
// _meta is set for the session unless its level is as low. It stays set, because other requests may name it.
func (o *older) heed(ctx context.Context, call *Call) {
	set := call.Method == "logging/setLevel"
	if !set && !bytes.Contains(call.Params, []byte(metaLogLevel)) ||
		jsonrpc.Get(o.s.Initialized, "capabilities", "logging") == nil {
		return
	}
	level := jsonrpc.Get(call.Params, "level")
	if !set {
		level = jsonrpc.Get(call.Params, "_meta", metaLogLevel)
	}
	rank := slices.Index(levels, jsonrpc.Text(level))
	o.mu.Lock()
	if rank < 0 || !set && o.level != nil && slices.Index(levels, jsonrpc.Text(o.level)) <= rank {
		o.mu.Unlock()
		return
	}
	o.level = bytes.Clone(level)
	o.mu.Unlock()
	if set {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, levelTime)
	defer cancel()
	reply, err := o.s.Call(ctx, &Call{Method: "logging/setLevel", Params: jsonrpc.Set(nil, "level", level)})
	if err != nil || reply.Err != nil {
		o.s.logger.Debug("cannot set the log level of a request", "server", o.s.server, "error", err,
			"answer", jsonrpc.Text(jsonrpc.Get(reply.Err, "message")))
	}
}

func refusal(why string) Reply {
	return Reply{Err: (&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: why}).Encode()}
}

// outcome is that of a request.
type outcome struct {
	reply Reply
	err   error
}

// watch subscribes to a resource by a request that stays open, and is opened again when it ends.
func (o *older) watch(ctx context.Context, caller, uri string) (Reply, error) {
	o.mu.Lock()
	if o.watches[uri].cancel != nil {
		o.mu.Unlock()
		return done, nil
	}
	own := 0
	for _, w := range o.watches {
		if caller != "" && w.caller == caller {
			own++
		}
	}
	if all := len(o.watches); all >= maxWatches || own >= callerWatchesMax {
		o.mu.Unlock()
		return Reply{}, o.s.failure(reason.Overloaded, "there are %d subscriptions already, %d of the caller; unsubscribe "+
			"from some resources first", all, own)
	}
	open, cancel := context.WithCancel(o.s.ctx)
	if o.watches == nil {
		o.watches = map[string]watch{}
	}
	o.watches[uri] = watch{caller, cancel}
	o.mu.Unlock()
	first := make(chan outcome, 1)
	tell := func(out outcome) {
		select {
		case first <- out:
		default: // told
		}
	}
	uris := append(append([]byte{'['}, jsonrpc.StringID(uri)...), ']')
	params := jsonrpc.Set(nil, "notifications", jsonrpc.Set(nil, protocol.ResourceUpdates.Member, uris))
	call := &Call{Method: protocol.MethodListen, Params: params, listens: func(filter []byte) {
		if slices.Contains(stringsOf(jsonrpc.Get(filter, protocol.ResourceUpdates.Member)), uri) {
			tell(outcome{reply: done})
			return
		}
		tell(outcome{reply: refusal("The server does not announce changes of " + uri)})
		cancel()
	}}
	o.s.spawn(func() {
		defer func() { tell(outcome{err: o.s.failure(reason.Disconnected, "the subscription has ended")}) }()
		reopen(open, func() (time.Duration, bool) {
			reply, err := o.s.Call(open, call)
			if open.Err() != nil {
				return 0, false
			}
			if reply.Err != nil || err != nil {
				tell(outcome{reply, err})
				o.s.logger.Debug("a subscription to a resource has ended", "server", o.s.server, "uri", uri, "error", err,
					"answer", jsonrpc.Text(jsonrpc.Get(reply.Err, "message")))
			}
			return 0, reply.Err == nil
		})
	})
	var out outcome
	select {
	case out = <-first:
	case <-ctx.Done():
		out.err = context.Cause(ctx)
	case <-o.s.ctx.Done():
		out.err = o.s.Err()
	}
	if out.err != nil || out.reply.Err != nil {
		o.unwatch(uri)
	}
	return out.reply, out.err
}

// ListenTasks lets the server announce tasks as params, those of subscriptions/listen, have it. It returns when ctx or
// the session ends, or when the server ends the request or refuses it. accepted is called with the raw ids that the
// server accepts, and then heard with each raw task. Both must not block. Of 1,000 such requests in a session, 500 may
// be of one caller. The error is a *Failure, or the cause of ctx.
func (s *Session) ListenTasks(
	ctx context.Context, caller string, params []byte, accepted, heard func(raw []byte),
) error {
	if !s.modern {
		return s.failure(reason.Unavailable, "it does not speak %s", protocol.V20260728)
	}
	if all, own := s.calls.listening(caller); all >= maxTaskListeners || own >= callerListenersMax {
		return s.failure(reason.Overloaded, "%d requests listen to its tasks already, %d of the caller", all, own)
	}
	_, err := s.Call(ctx, &Call{
		Method: protocol.MethodListen, Params: params, Caller: caller, heard: heard,
		listens: func(filter []byte) { accepted(jsonrpc.Get(filter, protocol.MemberTasks)) },
	})
	return err
}

// unwatch ends a subscription.
func (o *older) unwatch(uri string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w := o.watches[uri]; w.cancel != nil {
		w.cancel()
		delete(o.watches, uri)
	}
}

// Older returns a raw result of 2026-07-28 without the members that older versions do not have.
func Older(result []byte) []byte {
	return jsonrpc.Map(result, func(name, value []byte) []byte {
		switch string(name) {
		case "resultType", "ttlMs", "cacheScope", "supportedVersions":
			return nil
		}
		return value
	})
}

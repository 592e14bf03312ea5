package edge

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
)

// Subscribed returns a notification with the id of x, a subscriptions/listen request.
func Subscribed(x *Exchange, method string, params []byte) []byte {
	meta := inbound.Object(jsonrpc.Get(params, "_meta"))
	meta = jsonrpc.Set(meta, protocol.MetaSubscription, []byte(x.Message.ID))
	return jsonrpc.Notification(method, jsonrpc.Set(params, "_meta", meta))
}

// Acknowledge sends the accepted filter of x, a subscriptions/listen request, which must precede all other
// notifications. It reports false if the caller's memory limit forbids that.
func Acknowledge(x *Exchange, filter []byte) bool {
	return NotifyKept(x, Subscribed(x, protocol.MethodAcknowledged, jsonrpc.Set(nil, "notifications", filter)))
}

// OpenStream makes the response to x, a subscriptions/listen request, an event stream. It reports false if the client
// does not accept one; x then has an error.
func OpenStream(x *Exchange) bool {
	if x.ForceStream() {
		return true
	}
	x.Fail(inbound.InvalidRequest(x.Message.Method + " needs Accept: application/json, text/event-stream"))
	return false
}

// Listened ends x, a subscriptions/listen request.
func Listened(x *Exchange) {
	x.Reply(jsonrpc.Set(nil, "_meta", jsonrpc.Set(nil, protocol.MetaSubscription, []byte(x.Message.ID))))
}

// maxListenedTasks is the number of tasks of one subscriptions/listen.
const maxListenedTasks = 100

// ListenedTasks returns the ids of tasks in the filter of x, a subscriptions/listen request. The error is for the
// client.
func ListenedTasks(x *Exchange) (ids []string, err *jsonrpc.Error) {
	value := jsonrpc.Get(x.Message.Params, "notifications", protocol.MemberTasks)
	switch {
	case value == nil:
		return nil, nil
	case !x.Client.TakesTasks():
		return nil, inbound.MissingTasks()
	case value[0] != '[':
		return nil, inbound.InvalidParams(protocol.MemberTasks + " must be a list of ids")
	}
	for _, id := range jsonrpc.Elements(value) {
		if len(ids) == maxListenedTasks || len(id) == 0 || id[0] != '"' {
			return nil, inbound.InvalidParams(protocol.MemberTasks + " must be a list of at most " +
				strconv.Itoa(maxListenedTasks) + " ids")
		}
		ids = append(ids, jsonrpc.Text(id))
	}
	return ids, nil
}

// ListenTasks serves subscriptions/listen for tasks that [AsTask] has made for the caller on the surface, until the
// client ends it or the edge stops. The client is told the state of each task now and whenever it changes.
func ListenTasks(ctx context.Context, x *Exchange) {
	x.ReleaseWaiting()
	ids, err := ListenedTasks(x)
	if err != nil {
		x.Fail(err)
		return
	}
	if !OpenStream(x) {
		return
	}
	known, accepted := map[*task]bool{}, []string{}
	for _, id := range ids {
		if t := x.edge.mrtrs.tasks.of(x, id); t != nil && !known[t] {
			known[t], accepted = true, append(accepted, id)
		}
	}
	list, _ := json.Marshal(accepted) // strings always marshal
	if !Acknowledge(x, jsonrpc.Set(nil, protocol.MemberTasks, list)) {
		const text = "the caller holds too many bytes; read the pending responses"
		x.Fail(routerError(x.Version, text, reason.Overloaded, true))
		return
	}
	for t := range known {
		defer t.watch(x)()
	}
	Listen(ctx, x)
	Listened(x)
}

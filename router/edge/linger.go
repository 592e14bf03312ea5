package edge

import (
	"context"

	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// NotifyKept is like Exchange.Notify, for a message that must not be dropped for newer ones. It reports false if the
// response has been sent, or if a large message exceeds the caller's memory limit.
func NotifyKept(x *Exchange, message []byte) bool {
	m := output.Whole(message)
	m.Keep = true
	return x.out.outlet != nil && x.out.state.Load() == live && x.send(m, false)
}

// Linger waits as long as the client may receive notifications on the stream of x: until ctx ends, the session of x
// accepts no more messages, or the edge stops. Meanwhile ctx also ends when the caller's access token expires.
func Linger(ctx context.Context, x *Exchange) {
	x.out.lingers.Store(true)
	var closing <-chan struct{}
	if x.session != nil {
		closing = x.session.life.closing
	}
	select {
	case <-ctx.Done():
	case <-closing:
	case <-x.edge.life.stopped:
	}
}

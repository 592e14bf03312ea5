package edge

import "context"

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

package downstream

import (
	"context"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
)

// stopTime is how long a server may take to end politely.
const stopTime = 2 * time.Second

// endpoint is what all sessions with one server share.
type endpoint struct {
	*identity
	health   *monitor
	queue    *admission.Queue
	known    known
	clients  *clients
	checks   HealthConfig
	deadline time.Duration // of a list
	say      func(Message) // passes a notification on

	ctx    context.Context // ends with stop; bounds connections and lists under way
	cancel context.CancelFunc
	wg     sync.WaitGroup // connections, lists and deliveries under way
}

// lists reports whether the server lists a tool.
func (e *endpoint) lists(tool string) bool {
	known := e.known.last("tools/list")
	return known.tool(tool) != nil
}

func newEndpoint(c ServerConfig, o *Options, clients *clients) *endpoint {
	e := &endpoint{
		identity: &identity{config: c, logger: o.Logger, where: c.where()}, queue: admission.NewQueue(c.places(), c.room()),
		clients: clients, checks: o.Health, deadline: o.ListDeadline, say: o.OnMessage,
	}
	e.health = newMonitor(e.identity, func() { o.OnReturn(c.Name) })
	e.known.byMethod = map[string]knownList{}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e
}

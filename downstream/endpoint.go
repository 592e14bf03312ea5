package downstream

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
	"github.com/agenticnexus/agenticnexus/downstream/oauth"
)

// stopTime is the time for a server to end cleanly.
const stopTime = 2 * time.Second

// endpoint is the state of one server that its sessions share.
type endpoint struct {
	*identity
	health   *monitor
	queue    *admission.Queue
	known    known
	clients  *clients
	checks   HealthConfig
	deadline time.Duration // for a list
	say      func(Message) // delivers a notification
	tokens   *oauth.Source // nil = none needed

	ctx    context.Context // ends with stop; so do connection attempts and lists
	cancel context.CancelFunc
	wg     sync.WaitGroup // running connection attempts, lists and deliveries
}

// through returns the round tripper for requests to the server, which adds a token if one is needed.
func (e *endpoint) through(base http.RoundTripper) http.RoundTripper {
	if e.tokens == nil {
		return base
	}
	return e.tokens.Transport(base)
}

// lists reports whether the server lists a tool.
func (e *endpoint) lists(tool string) bool {
	return e.known.last("tools/list").tools.Tool(tool) != nil
}

func newEndpoint(c ServerConfig, o *Options, clients *clients) *endpoint {
	e := &endpoint{
		identity: &identity{config: c, logger: o.Logger, where: c.where()}, queue: admission.NewQueue(c.places(), c.room()),
		clients: clients, checks: o.Health, deadline: o.ListDeadline, say: o.OnMessage,
	}
	e.health = newMonitor(e.identity, func() { o.OnReturn(c.Name) })
	if s, ok := c.Authorized(); ok {
		e.tokens = oauth.NewSource(s, o.Tokens, o.Logger)
	}
	e.known.byMethod = map[string]knownList{}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e
}

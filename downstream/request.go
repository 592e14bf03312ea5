package downstream

import (
	"context"
	"net/http"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// Request is one request to a server.
type Request struct {
	Server   string
	Method   string
	Params   []byte // raw, with the server's own names
	Tool     string // the tool's own name, for tools/call
	Client   string // the client session that causes it; empty for the router itself
	Caller   string // charged for the request: an API key or a remote address; empty for the router itself
	Proxied  bool   // from a proxy surface: use the client's own session if the server has one per client
	Step     bool   // a step of a plan: the execution limits apply
	Modern   bool   // the client handles input_required results of a modern server itself
	Visible  Visible
	Attempts *int // incremented per call made; may be nil
	Hooks

	pause  func() (resume func()) // pauses the time limit; set by limitTime
	place  *admission.Place       // in the server's queue; set by admit
	server *server                // handles the request; set by authorize and admit
}

// Hooks connect a request to its client. Each may be nil. They must not block, except Ask.
type Hooks struct {
	Progress func(params []byte)        // raw params of progress notifications
	Ask      Asker                      // answers the server's own requests
	Notify   func(jsonrpc.Message) bool // receives the call's other notifications; false = call is over
	Gone     func() bool                // the client's connection has ended
	Sent     func()                     // the request has been sent
	Streams  func()                     // the server answers with a stream
	Reserve  func(total int) bool       // charges the response to the caller before its memory is allocated
	Hold     Hold                       // charges data kept after the call
	Header   http.Header                // of the client's HTTP request; those in forward_headers are forwarded

	Tried func(began time.Time, err error) // an attempt has ended
}

// owner returns the client whose session is used; empty for the router's own.
func (r *Request) owner() string {
	if r.Proxied {
		return r.Client
	}
	return ""
}

// resource returns the resource that a request names.
func (r *Request) resource() resource {
	return resource{r.Server, jsonrpc.Text(jsonrpc.Get(r.Params, "uri"))}
}

// origin identifies a call in the server messages that a link associates with it.
type origin struct {
	client string // the client session, as in Request
	ask    Asker
	notify func(jsonrpc.Message) bool
	pause  func() (resume func()) // pauses the time limit of the call
	place  *admission.Place       // of the call, in its server's queue
	ctx    context.Context        // of the call
}

// roundTrip sends a request and returns the response. Each middleware of calls wraps another roundTrip.
type roundTrip func(ctx context.Context, r *Request) (link.Reply, error)

// calls is the path of every request to a server: a chain of middleware.
type calls struct {
	opts    *Options
	servers *servers
	clients *clients
	chain   roundTrip
}

// serverFor returns the server that handles a request. The error is an *UnknownError.
func (c *calls) serverFor(r *Request) (*server, error) {
	s := c.servers.server(r.Server)
	switch {
	case s == nil || s.config.Disabled:
		return nil, &UnknownError{"server", r.Server}
	case r.Tool != "" && (!s.config.Tools.allows(r.Tool) || r.Visible != nil && !r.Visible(r.Server, r.Tool)):
		return nil, &UnknownError{"tool", catalog.FullName(r.Server, r.Tool)}
	}
	return s, nil
}

package downstream

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/downstream/link/http1"
)

// dialer opens sessions.
type dialer struct {
	opts      *Options
	clients   *clients
	transport *http1.Transport
}

func newDialer(opts *Options, clients *clients) *dialer {
	// With fewer idle connections, a busy router would dial for every call.
	return &dialer{opts: opts, clients: clients, transport: http1.New(&http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 4096, IdleConnTimeout: 90 * time.Second,
		DialContext:        (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		DisableCompression: true, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
	})}
}

// open connects a session for a slot.
func (d *dialer) open(ctx context.Context, sl *slot) (*link.Session, error) {
	c := sl.s.config
	target := link.Target{
		Env: c.Env, Dir: c.Cwd, URL: c.URL, Headers: c.Headers, SSE: c.Type == TransportSSE, Dial: d.opts.Embedded[c.Name],
	}
	if c.Command != "" {
		target.Command = append([]string{c.Command}, c.Args...)
	}
	params, initialized := d.initialize(sl.client)
	return link.Connect(ctx, link.Options{
		Server: c.Name, Target: target, Initialize: params, Handler: handler{d.opts, sl, sl.opened.Add(1)},
		MaxMessage: d.opts.MaxMessage, HTTP: sl.s.through(d.transport), Logger: d.opts.Logger, ClientDriven: !initialized,
	})
}

// initialize returns the params of initialize for a client's session, and whether notifications/initialized follows
// immediately.
func (d *dialer) initialize(client string) (params []byte, initialized bool) {
	if client != "" {
		if params, initialized = d.clients.initialize(client); params != nil {
			return params, initialized
		}
	}
	none := struct{}{}
	own, _ := json.Marshal(map[string]any{
		"protocolVersion": ProtocolVersion,
		// The server's requests are relayed to the client of the call, which may have these capabilities.
		"capabilities": map[string]any{"elicitation": none, "roots": none, "sampling": none},
		"clientInfo":   map[string]string{"name": "agenticnexus-router", "version": d.opts.Version},
	})
	return own, true
}

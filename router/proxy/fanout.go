package proxy

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/safe"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// each calls within with the list deadline.
func (p *Proxy) each(ctx context.Context, x *edge.Exchange, servers []string,
	f func(ctx context.Context, i int) error) error {
	return p.within(ctx, p.opts.Config.ListDeadline, x, servers, f)
}

// within runs f for all servers in parallel, within a limit and after the client's earlier notifications. It logs
// failures and returns the first error, in server order, if all fail. A timeout is a *downstream.Failure with the
// reason timeout.
func (p *Proxy) within(ctx context.Context, limit time.Duration, x *edge.Exchange, servers []string,
	f func(ctx context.Context, i int) error) error {
	slow := &downstream.Failure{Reason: reason.Timeout,
		Message: x.Message.Method + " took longer than " + limit.String()}
	bounded, cancel := context.WithTimeoutCause(ctx, limit, slow)
	defer cancel()
	failed := make([]error, len(servers))
	var wg sync.WaitGroup
	for i, server := range servers {
		wg.Go(func() {
			defer safe.Recover(p.log, "asking server "+server, func(err error) {
				failed[i] = &downstream.Failure{Server: server, Reason: reason.Unavailable, Message: err.Error()}
			})
			p.inOrder(bounded, x.Session, server)
			failed[i] = failureOf(server, f(bounded, i))
		})
	}
	wg.Wait()
	var first error
	fine := 0
	for i, err := range failed {
		switch {
		case err == nil:
			fine++
		case ctx.Err() == nil:
			p.servers.Sessions().LeftOut(servers[i], x.Message.Method, err)
			first = cmp.Or(first, err)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if fine > 0 {
		return nil
	}
	return first
}

// failureOf adds the server to a failure without one, such as the timeout of the whole request.
func failureOf(server string, err error) error {
	var f *downstream.Failure
	if !errors.As(err, &f) || f.Server != "" {
		return err
	}
	own := *f
	own.Server = server
	return &own
}

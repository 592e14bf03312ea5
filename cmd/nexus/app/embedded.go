package app

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/demo"
)

// embedded runs servers in this process. The router talks to them over pipes, as to a child process. nil runs none.
type embedded struct {
	servers []demo.Server
	ctx     context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

func newEmbedded(servers []demo.Server) *embedded {
	e := &embedded{servers: servers}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e
}

func (e *embedded) configs() []downstream.ServerConfig {
	var out []downstream.ServerConfig
	for _, s := range e.servers {
		out = append(out, downstream.ServerConfig{Name: s.Name, Type: downstream.TransportStdio})
	}
	return out
}

func (e *embedded) dialers() map[string]downstream.DialFunc {
	if e == nil {
		return nil
	}
	out := map[string]downstream.DialFunc{}
	for _, s := range e.servers {
		out[s.Name] = func(context.Context) (io.ReadWriteCloser, error) {
			fromRouter, toServer := io.Pipe()
			fromServer, toRouter := io.Pipe()
			e.wg.Go(func() {
				err := s.Serve(e.ctx, fromRouter, toRouter)
				toRouter.CloseWithError(errors.Join(io.EOF, err))
			})
			return pipe{fromServer, toServer}, nil
		}
	}
	return out
}

// stop ends the servers and waits for them.
func (e *embedded) stop() {
	if e != nil {
		e.cancel()
		e.wg.Wait()
	}
}

type pipe struct {
	*io.PipeReader
	w *io.PipeWriter
}

func (p pipe) Write(b []byte) (int, error) { return p.w.Write(b) }

func (p pipe) Close() error { return errors.Join(p.w.Close(), p.PipeReader.Close()) }

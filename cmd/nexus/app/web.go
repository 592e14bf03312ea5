package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// web is the HTTP server of an App. The zero value listens nowhere.
type web struct {
	ready    atomic.Bool
	server   *http.Server
	listener net.Listener
	wg       sync.WaitGroup
}

// serve answers requests on a listener until close.
func (w *web) serve(listener net.Listener, handler http.Handler, log *slog.Logger) {
	w.listener = listener
	w.server = &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	server, coalesced := w.server, output.CoalesceWrites(w.server, listener)
	w.wg.Go(func() {
		if err := server.Serve(coalesced); !errors.Is(err, http.ErrServerClosed) {
			log.Error("serving HTTP ended", "error", err)
		}
	})
	w.ready.Store(true)
}

// flushTime is the time to write complete answers.
const flushTime = time.Second

// close ends the HTTP server and waits for it. Connections have flushTime to write complete answers.
func (w *web) close(ctx context.Context) (err error) {
	if w.server != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
		defer cancel()
		if w.server.Shutdown(ctx) != nil {
			err = w.server.Close()
		}
	}
	w.wg.Wait()
	return err
}

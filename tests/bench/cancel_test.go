package bench

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// BenchmarkCancel reports how long a cancellation takes from the client to the server while 32 callers keep
// the router busy.
func BenchmarkCancel(b *testing.B) {
	const callers = 32
	arrived := make(chan struct{}, 1)
	cancelled := make(chan time.Time, 1)
	p := start(b, "shared", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, _ := jsonrpc.Parse(body)
		switch {
		case m.IsNotification():
			cancelled <- time.Now()
			w.WriteHeader(http.StatusAccepted)
		case jsonrpc.Text(jsonrpc.Get(m.Params, "arguments", "text")) == "x": // the one to be cancelled
			arrived <- struct{}{}
			<-r.Context().Done()
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(jsonrpc.Result(m.ID, []byte(`{"content":[]}`)))
		}
	})
	var over atomic.Bool
	var load sync.WaitGroup
	var calls atomic.Int64
	for range callers {
		session := p.open()
		load.Go(func() {
			for i := 0; !over.Load(); i++ {
				if resp := p.post(session, call(i, 100)); resp != nil {
					drain(resp)
					calls.Add(1)
				}
			}
		})
	}
	session := p.open()
	var took []time.Duration
	id := 0
	began := time.Now()
	for b.Loop() {
		id++
		var wg sync.WaitGroup
		wg.Go(func() {
			if resp := p.post(session, call(id, 1)); resp != nil {
				drain(resp)
			}
		})
		<-arrived
		sent := time.Now()
		drain(p.post(session, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id)))
		at := <-cancelled
		took = append(took, at.Sub(sent))
		wg.Wait()
	}
	b.ReportMetric(float64(calls.Load())/time.Since(began).Seconds(), "other-calls/s")
	over.Store(true)
	load.Wait()
	slices.Sort(took)
	ms := func(share float64) float64 {
		return float64(took[int(share*float64(len(took)-1))].Microseconds()) / 1000
	}
	b.ReportMetric(ms(0.5), "p50-ms")
	b.ReportMetric(ms(0.99), "p99-ms")
}

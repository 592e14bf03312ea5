package bench

import (
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
)

// BenchmarkIdleHeap reports the heap and the goroutines that an idle client session costs the router, before ten
// servers: sessions that were opened, and those that hold a stream open as well. The other ends of the streams are in the
// same process and count, too.
func BenchmarkIdleHeap(b *testing.B) {
	for _, row := range []struct {
		path, session string
		sessions      float64
	}{{"/mcp", downstream.SessionShared, 2000}, {"/proxy/mcp", downstream.SessionShared, 2000}, {"/proxy/mcp", downstream.SessionPerClient, 200}} {
		for _, kind := range []string{"opened", "streaming"} {
			b.Run(row.path[1:]+"-"+row.session+"-"+kind, func(b *testing.B) {
				a := newFarm(b, 10).serveRouter(b, row.session)
				p := &program{b: b, url: "http://" + a.Addr(), path: row.path, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
				drain(p.post(p.open(), `{"jsonrpc":"2.0","method":"notifications/initialized"}`))
				time.Sleep(time.Second)
				heap, running := settled()
				for range int(row.sessions) {
					id := p.open()
					drain(p.post(id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`))
					if kind == "streaming" {
						defer p.listen(id).Body.Close()
					}
				}
				for b.Loop() {
					time.Sleep(2 * time.Second)
				}
				after, now := settled()
				b.ReportMetric((after-heap)/row.sessions/1024, "KiB/session")
				b.ReportMetric(float64(now-running)/row.sessions, "goroutines/session")
			})
		}
	}
}

// settled returns the heap and stacks in use after a collection, and the number of goroutines.
func settled() (bytes float64, goroutines int) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse), runtime.NumGoroutine()
}

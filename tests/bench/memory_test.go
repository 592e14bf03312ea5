package bench

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

const mib = 1 << 20

// BenchmarkIdleSessions reports the resident memory of the program with 2,000 client sessions, each with an
// open stream of its own, before one shared session with the server.
func BenchmarkIdleSessions(b *testing.B) {
	const sessions = 2000
	p := start(b, "shared", func(w http.ResponseWriter, r *http.Request) {})
	before := p.memory("VmRSS")
	for range sessions {
		id := p.open()
		drain(p.post(id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`))
		defer p.listen(id).Body.Close()
	}
	for b.Loop() {
		time.Sleep(2 * time.Second)
	}
	b.ReportMetric(before/mib, "MiB-before")
	b.ReportMetric(p.memory("VmRSS")/mib, "MiB")
}

// BenchmarkInFlight reports the resident memory that a call takes while its server works, by the size of its
// body. Every client has a session of its own with the server.
func BenchmarkInFlight(b *testing.B) {
	for _, size := range []int{100, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%d-bytes", size), func(b *testing.B) {
			calls := 1000
			if size == mib {
				calls = 64
			}
			var waiting atomic.Int64
			end := make(chan struct{})
			p := start(b, "per_client", func(w http.ResponseWriter, r *http.Request) {
				waiting.Add(1)
				<-end
				body, _ := io.ReadAll(r.Body)
				m, _ := jsonrpc.Parse(body)
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(jsonrpc.Result(m.ID, []byte(`{"content":[]}`)))
			})
			sessions := make([]string, 16)
			for i := range sessions {
				sessions[i] = p.open()
			}
			time.Sleep(time.Second)
			before := p.memory("VmRSS")
			p.forgetPeak()
			var wg sync.WaitGroup
			for i := range calls {
				wg.Go(func() {
					if resp := p.post(sessions[i%len(sessions)], call(i, size)); resp != nil {
						drain(resp)
					}
				})
			}
			for deadline := time.Now().Add(time.Minute); waiting.Load() < int64(calls); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					b.Fatalf("%d of %d calls have reached the server", waiting.Load(), calls)
				}
			}
			for b.Loop() {
				time.Sleep(time.Second)
			}
			b.ReportMetric((p.memory("VmRSS")-before)/float64(calls)/1024, "KiB/call")
			b.ReportMetric((p.memory("VmHWM")-before)/float64(calls)/1024, "peak-KiB/call")
			close(end)
			wg.Wait()
		})
	}
}

// BenchmarkLargeResult reports by how many times its size a result of 64 MiB raises the peak of the resident
// memory, as JSON of known and of unknown length and as an event: the first one, and the worst of all.
func BenchmarkLargeResult(b *testing.B) {
	text := strings.Repeat("x", 64*mib-1024)
	for _, kind := range []string{"json", "chunked", "events"} {
		b.Run(kind, func(b *testing.B) {
			p := start(b, "shared", func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				m, _ := jsonrpc.Parse(body)
				head := `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"content":[{"type":"text","text":"`
				tail := `"}]}}`
				switch kind {
				case "json":
					w.Header().Set("Content-Length", fmt.Sprint(len(head)+len(text)+len(tail)))
					fallthrough
				case "chunked":
					w.Header().Set("Content-Type", "application/json")
				case "events":
					w.Header().Set("Content-Type", "text/event-stream")
					head, tail = "data: "+head, tail+"\n\n"
				}
				for _, part := range []string{head, text, tail} {
					_, _ = io.WriteString(w, part)
				}
			})
			session := p.open()
			drain(p.post(session, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
			before := p.memory("VmRSS")
			worst := 0.0
			for first := true; b.Loop(); first = false {
				p.forgetPeak()
				resp := p.post(session, call(2, 0))
				if resp == nil {
					b.FailNow()
				}
				if n := drain(resp); n < int64(len(text)) {
					b.Fatalf("got %d bytes, want more than %d", n, len(text))
				}
				sizes := (p.memory("VmHWM") - before) / float64(len(text))
				if worst = max(worst, sizes); first {
					b.ReportMetric(sizes, "sizes-first")
				}
			}
			b.ReportMetric(worst, "sizes-worst")
		})
	}
}

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
				a := startRouter(b, nil, tenServers(b, row.session)...)
				p := clientOf(b, a, row.path)
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

func tenServers(b *testing.B, session string) (all []downstream.ServerConfig) {
	for i := range 10 {
		s := httptest.NewServer(&mcptest.Server{})
		b.Cleanup(s.Close)
		all = append(all, downstream.ServerConfig{Name: fmt.Sprint("server", i), Type: downstream.TransportHTTP, URL: s.URL, Session: session})
	}
	return all
}

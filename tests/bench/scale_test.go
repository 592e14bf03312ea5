package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/router"
)

// startFarm starts a router in front of a farm whose sessions are shared, and lists all its tools once.
func startFarm(b *testing.B) (*farm, *app.App) {
	b.Helper()
	f := newFarm(b, farmServers)
	a := f.serveRouter(b, downstream.SessionShared)
	began := time.Now()
	for deadline := began.Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		tools, err := a.Router().Tools(b.Context(), nil, "")
		if len(tools) == farmServers*farmTools {
			break
		}
		if time.Now().After(deadline) {
			b.Fatalf("%d tools are listed after three minutes: %v", len(tools), err)
		}
	}
	postTo(b, a, "/mcp", callOf("search_available_tools", `{"query":"weather"}`)) // indexes
	fmt.Fprintf(os.Stderr, "%d servers with %d tools each are listed and indexed after %v\n", farmServers, farmTools, time.Since(began).Round(time.Millisecond))
	f.heard(b)
	return f, a
}

// serveRouter starts a router in front of the farm.
func (f *farm) serveRouter(b *testing.B, session string) *app.App {
	b.Helper()
	cfg := config.Default()
	cfg.Listen = "127.0.0.1:0"
	cfg.Servers = f.configs(session)
	a, err := app.New(b.Context(), app.Options{Config: cfg})
	if err != nil {
		b.Fatal(err)
	}
	if err := a.Listen(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		f.CloseClientConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = a.Stop(ctx)
	})
	return a
}

// postTo posts a message and returns the size of the answer.
func postTo(tb testing.TB, a *app.App, path, message string) int64 {
	tb.Helper()
	req, _ := http.NewRequest(http.MethodPost, "http://"+a.Addr()+path, strings.NewReader(message))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	var head [512]byte
	read, _ := io.ReadFull(resp.Body, head[:])
	failed := strings.Contains(string(head[:read]), `"error":`) || strings.Contains(string(head[:read]), `"isError":true`)
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || failed {
		tb.Fatalf("%s: status %d, %s, %v", path, resp.StatusCode, head[:read], err)
	}
	return n + int64(read)
}

func callOf(tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments)
}

// cpu reports how much CPU time an operation takes, of router, servers and clients: a measure that other processes
// of the machine change less than the time on the clock.
func cpu(b *testing.B) func() {
	used := func() float64 {
		var r syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
		return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e6
	}
	before := used()
	return func() { b.ReportMetric((used()-before)/float64(b.N), "cpu-ms/op") }
}

// timings collects durations.
type timings []time.Duration

func (t timings) report(b *testing.B) {
	slices.Sort(t)
	for _, p := range []int{50, 99} {
		b.ReportMetric(ms(t[min(len(t)*p/100, len(t)-1)]), fmt.Sprintf("p%d-ms", p))
	}
}

func (t *timings) time(f func()) {
	began := time.Now()
	f()
	*t = append(*t, time.Since(began))
}

// allocated returns the bytes that f allocates, in all goroutines.
func allocated(f func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc - before.TotalAlloc)
}

// BenchmarkScale measures a router in front of 1,000 servers with 100,000 tools.
func BenchmarkScale(b *testing.B) {
	f, a := startFarm(b)
	b.Run("search", func(b *testing.B) {
		defer cpu(b)()
		var took timings
		n := 0
		bytes := allocated(func() {
			for b.Loop() {
				q, _ := json.Marshal(map[string]any{"query": farmQuestions[n%len(farmQuestions)], "limit": 5})
				took.time(func() { postTo(b, a, "/mcp", callOf("search_available_tools", string(q))) })
				n++
			}
		})
		took.report(b)
		b.ReportMetric(bytes/1024/float64(n), "KiB/search")
	})
	b.Run("search-while-lists-change", func(b *testing.B) {
		defer cpu(b)()
		var took timings
		for n := 0; b.Loop(); n++ {
			f.servers[n%farmServers].change()
			time.Sleep(2 * time.Millisecond)
			q, _ := json.Marshal(map[string]any{"query": farmQuestions[n%len(farmQuestions)], "limit": 5})
			took.time(func() { postTo(b, a, "/mcp", callOf("search_available_tools", string(q))) })
		}
		took.report(b)
	})
	b.Run("search-of-a-filtered-caller", func(b *testing.B) {
		defer cpu(b)()
		var took timings
		visible := func(server, tool string) bool { return strings.HasSuffix(server, "7") }
		for n := 0; b.Loop(); n++ {
			took.time(func() {
				if _, err := a.Router().Search(b.Context(), farmQuestions[n%len(farmQuestions)], 10, visible); err != nil {
					b.Fatal(err)
				}
			})
		}
		took.report(b)
	})
	b.Run("query", func(b *testing.B) {
		defer cpu(b)()
		var took timings
		n := 0
		bytes := allocated(func() {
			for b.Loop() {
				took.time(func() {
					if _, err := a.Router().Query(b.Context(), router.Query{Text: farmQuestions[n%len(farmQuestions)], DryRun: true}); err != nil {
						b.Fatal(err)
					}
				})
				n++
			}
		})
		took.report(b)
		b.ReportMetric(bytes/1024/float64(n), "KiB/query")
	})
	b.Run("given-plan", func(b *testing.B) {
		plan := json.RawMessage(`[{"tool":"server5__missing","arguments":{}}]`)
		n := 0
		bytes := allocated(func() {
			for b.Loop() {
				if _, err := a.Router().Query(b.Context(), router.Query{Text: "do it", Plan: plan, DryRun: true}); err != nil {
					b.Fatal(err)
				}
				n++
			}
		})
		b.ReportMetric(bytes/1024/float64(n), "KiB/query")
	})
	b.Run("proxy-list", func(b *testing.B) {
		defer cpu(b)()
		var took timings
		n := 0
		bytes := allocated(func() {
			for b.Loop() {
				took.time(func() { postTo(b, a, "/proxy/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`) })
				n++
			}
		})
		took.report(b)
		b.ReportMetric(bytes/1024/float64(n), "KiB/list")
	})
	b.Run("proxy-list-after-a-change", func(b *testing.B) {
		defer cpu(b)()
		var took timings
		for n := 0; b.Loop(); n++ {
			f.servers[n%farmServers].change()
			time.Sleep(2 * time.Millisecond)
			took.time(func() { postTo(b, a, "/proxy/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`) })
		}
		took.report(b)
	})
	b.Run("call", func(b *testing.B) { forwarded(b, a, nil) })
	b.Run("call-while-lists-change", func(b *testing.B) {
		forwarded(b, a, func(n int) {
			f.servers[0].change()
			time.Sleep(5 * time.Millisecond)
			if n%20 == 0 {
				postTo(b, a, "/mcp", callOf("search_available_tools", `{"query":"weather"}`))
			}
		})
	})
}

// forwarded measures calls through /proxy beside something that goes on in the background.
func forwarded(b *testing.B, a *app.App, meanwhile func(n int)) {
	stop := make(chan struct{})
	var beside sync.WaitGroup
	if meanwhile != nil {
		beside.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					meanwhile(n)
				}
			}
		})
	}
	message := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{"id":"1"}}}`, "server3__"+toolOf(b, a, "server3"))
	defer cpu(b)()
	var took timings
	for b.Loop() {
		took.time(func() { postTo(b, a, "/proxy/mcp", message) })
	}
	close(stop)
	beside.Wait()
	took.report(b)
}

func toolOf(b *testing.B, a *app.App, server string) string {
	tools, err := a.Router().Tools(b.Context(), nil, server)
	if err != nil || len(tools) == 0 {
		b.Fatalf("no tools of %s: %v", server, err)
	}
	return tools[0].Name[strings.LastIndexByte(tools[0].Name, '.')+1:]
}

// BenchmarkCatalog measures Manager.Catalog over 1,000 servers with 100,000 tools.
func BenchmarkCatalog(b *testing.B) {
	f := newFarm(b, farmServers)
	m := downstream.New(downstream.Options{Servers: f.configs(downstream.SessionShared)})
	m.Start()
	b.Cleanup(func() {
		f.CloseClientConnections()
		m.StopWithin(2 * time.Second)
	})
	catalog := func() *downstream.Catalog {
		c, err := m.Catalog(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		return c
	}
	for deadline := time.Now().Add(time.Minute); len(catalog().Missing) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("some servers cannot be listed: %v", catalog().Missing)
		}
	}
	f.heard(b)
	b.Run("unchanged", func(b *testing.B) {
		defer cpu(b)()
		b.ReportAllocs()
		for b.Loop() {
			catalog()
		}
	})
	b.Run("one-changed", func(b *testing.B) {
		defer cpu(b)()
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			before := catalog()
			f.servers[n%farmServers].change()
			for catalog() == before {
				runtime.Gosched()
			}
		}
	})
}

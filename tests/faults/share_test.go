package faults

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// shareFaults are those of a caller that takes more than its share.
func shareFaults() []fault {
	return []fault{
		{name: "fair queue with session-less callers", outcome: "others: result; the flood: result or overloaded", run: flooded},
	}
}

// flooded has a caller without a session send more calls than the subject takes, while another caller writes.
func flooded(w *world) string {
	c := w.serve(subject, &mcptest.Server{})
	c.MaxParallel = 4
	const flooders = 100 // more than run and wait
	w.start(nil, c)
	w.ready()
	// Without keys, a caller is a remote address.
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	transport := &http.Transport{DialContext: from.DialContext, MaxIdleConnsPerHost: flooders}
	w.t.Cleanup(transport.CloseIdleConnections)
	flood := &mcptest.Client{URL: w.base + "/proxy/mcp", HTTP: &http.Client{Transport: transport}}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var served, refused atomic.Int64
	for range flooders {
		wg.Go(func() {
			for ctx.Err() == nil {
				r := w.within(ample, func(ctx context.Context) mcptest.Reply { return flood.Call(ctx, subject+"__wait", `{"ms":20}`) })
				switch got := r.Outcome(); got {
				case "result":
					served.Add(1)
				case "-32000 overloaded":
					refused.Add(1)
				default:
					w.t.Errorf("the flood: got %s %s (%v), want a result or overloaded", got, r.Error, r.Err)
					return
				}
			}
		})
	}
	defer wg.Wait()
	defer stop()
	w.wait("the flood", func() bool { return served.Load() > 0 && refused.Load() > 0 })
	for n := range 20 {
		if r := w.write("write", 0); r.Outcome() != "result" {
			return fmt.Sprintf("write %d of others: %s %s", n, r.Outcome(), r.Error)
		}
	}
	return "others: result; the flood: result or overloaded"
}

package tests

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// openStream keeps the stream of a session open through the balancer.
type openStream struct {
	heard, opened atomic.Int64
	lost          atomic.Pointer[string] // what came instead of a stream
}

// listen follows the stream of a session until ctx ends.
func (c *replicated) listen(ctx context.Context, of *mcptest.Client) (*openStream, func()) {
	l := &openStream{}
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, of.URL, nil)
			if err != nil {
				c.t.Error(err)
				return
			}
			request.Header.Set("Accept", "text/event-stream")
			request.Header.Set("Mcp-Session-Id", of.Session)
			response, err := c.http.Do(request)
			if err != nil || response.StatusCode != http.StatusOK {
				why := fmt.Sprint(time.Now().Format(time.StampMilli), " ", err)
				if err == nil {
					text, _ := io.ReadAll(response.Body) // as much as there is
					response.Body.Close()
					why = fmt.Sprintf("%s %s: %s", time.Now().Format(time.StampMilli), response.Status, text)
				}
				if ctx.Err() == nil {
					l.lost.Store(&why)
				}
				return
			}
			l.opened.Add(1)
			_ = mcptest.Events(response.Body, func(_, data string) { // until its replica ends
				if strings.Contains(data, "list_changed") {
					l.heard.Add(1)
				}
			})
			response.Body.Close()
		}
	})
	return l, running.Wait
}

// endTime bounds how long a replica ends whose calls take a quarter of a second. It is ample.
const endTime = 15 * time.Second

// rollingRestarts restarts replicas one by one under more load than there are cores. No call fails, and each session
// hears from its server after each restart.
func rollingRestarts(t *testing.T, restarts int) {
	c := cluster(t, 3)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	l := c.load(4, 0)
	var streams []*openStream
	for _, r := range c.replicas {
		stream, wait := c.listen(ctx, c.through(c.dial(r)))
		streams = append(streams, stream)
		defer wait()
	}
	defer stop()
	var slowest time.Duration
	for n := range restarts {
		r, began := c.replicas[n%3], time.Now()
		if code := r.Stop(); code != 0 {
			t.Errorf("restart %d: %s ended with %d, want 0", n, r.Name, code)
		}
		took := time.Since(began)
		if slowest = max(slowest, took); took > endTime {
			t.Errorf("restart %d: %s ended after %v", n, r.Name, took)
		}
		c.start(r)
		for i, stream := range streams {
			before, next := stream.heard.Load(), time.Now()
			mcptest.Eventually(t, fmt.Sprintf("news for session %d after restart %d", i, n), func() bool {
				if now := time.Now(); now.After(next) { // what comes while a stream is opened again is not kept
					next = now.Add(200 * time.Millisecond)
					c.work.SetTools(strings.Replace(mcptest.Tools, "Returns its", fmt.Sprintf("%d returns its", now.UnixNano()), 1))
				}
				return stream.heard.Load() > before || stream.lost.Load() != nil
			})
			if lost := stream.lost.Load(); lost != nil {
				t.Fatalf("restart %d: the stream of session %d is lost: %s", n, i, *lost)
			}
		}
	}
	stop()
	l.end("result")
	opened := int64(0)
	for _, stream := range streams {
		opened += stream.opened.Load()
	}
	t.Logf("%d restarts, which ended after %v at most: %v, p50 %v, p99 %v; %d streams were opened %d times", restarts, slowest,
		outcomes(l.calls), quantile(l.calls, .5), quantile(l.calls, .99), len(streams), opened)
}

// Restarts one by one under load fail no call.
func TestCluster_RollingRestart(t *testing.T) {
	t.Parallel()
	rollingRestarts(t, 3)
}

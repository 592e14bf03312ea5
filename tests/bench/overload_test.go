package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	parallel = 8               // calls that the tool server takes at once
	lasting  = 3 * time.Second // of each measurement
)

// loaded is a router in front of a tool server that takes toolTime for a call and parallel calls at once.
type loaded struct{ *program }

func newLoaded(b *testing.B) loaded {
	server := serveTools(b, []tool{newTool("nap", "Sleeps.", `{"type":"object"}`, toolTime)}).config()
	server.MaxParallel = parallel
	return loaded{clientOf(b, startRouter(b, nil, server), "/mcp")}
}

var ids atomic.Int64

// call calls the tool and reports whether it was refused as overloaded.
func (l loaded) call(session string) (took time.Duration, refused bool) {
	began := time.Now()
	resp := l.post(session, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"tools__nap","arguments":{}}}`, ids.Add(1)))
	if resp == nil {
		return 0, false
	}
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body)
	took = time.Since(began)
	switch answer := string(raw); {
	case strings.Contains(answer, `"done"`):
	case strings.Contains(answer, `"overloaded"`):
		refused = true
	default:
		l.b.Errorf("got %s, want an answer of the tool or overloaded", answer)
	}
	return took, refused
}

// tally is what became of calls.
type tally struct {
	mu            sync.Mutex
	done, refused []time.Duration
}

func (t *tally) add(took time.Duration, refused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if refused {
		t.refused = append(t.refused, took)
	} else {
		t.done = append(t.done, took)
	}
}

// closed has each of the callers call again when it is answered.
func (l loaded) closed(callers int, session string) *tally {
	t := &tally{}
	var wg sync.WaitGroup
	end := time.Now().Add(lasting)
	for range callers {
		wg.Go(func() {
			for time.Now().Before(end) {
				t.add(l.call(session))
			}
		})
	}
	wg.Wait()
	return t
}

// offer makes calls at a rate, whatever becomes of them, in turns by the sessions.
func (l loaded) offer(perSecond float64, sessions ...string) *tally {
	t := &tally{}
	var wg sync.WaitGroup
	began := time.Now()
	for n := 0; ; n++ {
		due := began.Add(time.Duration(float64(n) / perSecond * float64(time.Second)))
		if due.Sub(began) > lasting {
			break
		}
		time.Sleep(time.Until(due))
		wg.Go(func() { t.add(l.call(sessions[n%len(sessions)])) })
	}
	wg.Wait()
	return t
}

func p99(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[(len(all)-1)*99/100]
}

// BenchmarkOverload offers three times what a server can take, from ten clients, and reports how much of the
// peak is still answered and how soon the rest is refused.
func BenchmarkOverload(b *testing.B) {
	l := newLoaded(b)
	var sessions []string
	for range 10 {
		sessions = append(sessions, l.open())
	}
	l.call(sessions[0])
	for b.Loop() {
		peak := float64(len(l.closed(parallel, sessions[0]).done)) / lasting.Seconds()
		t := l.offer(3*peak, sessions...)
		b.ReportMetric(peak, "peak/s")
		b.ReportMetric(float64(len(t.done))/lasting.Seconds()/peak, "goodput/peak")
		b.ReportMetric(ms(p99(t.refused)), "refused-p99-ms")
	}
}

// BenchmarkFlood reports what becomes of the latency of one client while another offers three times what the
// server can take.
func BenchmarkFlood(b *testing.B) {
	l := newLoaded(b)
	flooder, other := l.open(), l.open()
	l.call(other)
	for b.Loop() {
		alone := l.closed(1, other)
		var wg sync.WaitGroup
		var flood *tally
		wg.Go(func() { flood = l.offer(3*parallel/toolTime.Seconds(), flooder) })
		beside := l.closed(1, other)
		wg.Wait()
		b.ReportMetric(ms(p99(alone.done)), "alone-p99-ms")
		b.ReportMetric(ms(p99(beside.done)), "beside-p99-ms")
		b.ReportMetric(float64(p99(beside.done))/float64(p99(alone.done)), "p99-ratio")
		b.ReportMetric(float64(len(beside.refused)), "refused")
		b.ReportMetric(float64(len(flood.done))/lasting.Seconds(), "flood/s")
	}
}

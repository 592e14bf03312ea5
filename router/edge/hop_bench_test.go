//go:build unix

package edge_test

import (
	"context"
	"net/http"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/internal/shared"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// cpu returns the CPU time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail with these arguments
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkHop reports the CPU time of a call at the home of its session and through another replica, both with that of
// the client.
func BenchmarkHop(b *testing.B) {
	for _, through := range []string{"home", "another"} {
		b.Run(through, func(b *testing.B) {
			rs := newReplicas(b, 2, edge.Options{})
			h := rs.open("2025-11-25")
			rs.through(through == "home")
			rs.client.CloseIdleConnections()
			rs.client = &http.Client{Transport: &http.Transport{DialContext: rs.dial}}
			defer rs.client.CloseIdleConnections()
			rs.want("call", call("1", "echo", "{}"), h, 200)
			before := cpu()
			for b.Loop() {
				rs.post(call("1", "echo", "{}"), h)
			}
			b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// BenchmarkIdleReplicatedSessions reports the memory of an idle session at its home, and its entries in the directory.
func BenchmarkIdleReplicatedSessions(b *testing.B) {
	const sessions = 20_000
	rs := newReplicas(b, 3, edge.Options{Limits: limit.Config{Sessions: 2 * sessions}})
	rs.client.CloseIdleConnections()
	rs.client = &http.Client{Transport: &http.Transport{DialContext: rs.dial, MaxIdleConnsPerHost: 8}}
	rs.open("2025-11-25")
	before := heap()
	for i := range sessions {
		rs.only.Store(int64(i % 3))
		rs.open("2025-11-25")
	}
	for b.Loop() {
		runtime.GC()
	}
	b.ReportMetric((heap()-before)/sessions, "B/session")
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	entries := 0
	_ = rs.state.Watch(ctx, "session/", func(e shared.Entry) {
		if entries++; e.Key == "" { // all have been reported
			entries--
			cancel()
		}
	})
	b.ReportMetric(float64(entries), "entries")
}

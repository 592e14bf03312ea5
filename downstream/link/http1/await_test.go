//go:build unix

package http1

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

// A request that waits for its response holds no read buffer.
func TestNoBufferWhileWaiting(t *testing.T) {
	const requests = 50
	var made atomic.Int64
	before := readers.New
	readers.New = func() any { made.Add(1); return bufio.NewReader(nil) }
	defer func() { readers.New = before }()
	for range 1000 { // those of earlier tests
		readers.Get()
	}
	made.Store(0)

	var arrived sync.WaitGroup
	arrived.Add(requests)
	answer := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived.Done()
		<-answer
	}))
	defer srv.Close()
	client := New(&http.Transport{MaxIdleConnsPerHost: requests})
	defer client.CloseIdleConnections()
	var all sync.WaitGroup
	for range requests {
		all.Go(func() {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := client.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
		})
	}
	arrived.Wait()
	if n := made.Load(); n != 0 {
		t.Errorf("got %d buffers for %d requests that wait, want none", n, requests)
	}
	close(answer)
	all.Wait()
}

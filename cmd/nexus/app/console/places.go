package console

import (
	"net/http"
	"sync"
	"time"
)

// readTime bounds the time to read a response that is not a stream.
const readTime = 30 * time.Second

// places bounds the requests in progress, in total and per viewer.
type places struct {
	all, own int

	mu       sync.Mutex
	taken    int
	byCaller map[string]int
}

func newPlaces(all, own int) *places { return &places{all: all, own: own, byCaller: map[string]int{}} }

// within serves a request if a place is free, and refuses it otherwise.
func (p *places) within(w http.ResponseWriter, caller string, serve func()) {
	if !p.enter(caller) {
		w.Header().Set("Retry-After", "10")
		fail(w, http.StatusServiceUnavailable, "too many requests at once; close a page")
		return
	}
	defer p.leave(caller)
	serve()
}

func (p *places) enter(caller string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.all || p.byCaller[caller] >= p.own {
		return false
	}
	p.taken++
	p.byCaller[caller]++
	return true
}

func (p *places) leave(caller string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.byCaller[caller]--; p.byCaller[caller] == 0 {
		delete(p.byCaller, caller)
	}
}

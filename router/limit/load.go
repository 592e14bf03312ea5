package limit

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

const (
	hundredth = 100 // of the places is kept for clients that hold less than that
	shards    = 16  // of the table of clients, so that they do not wait for each other
)

// Load bounds the requests in flight: all of them by a number, so that the last places are kept for clients
// that hold few, and new ones by the memory that is left. It is safe for concurrent use. Nobody waits: who is
// refused is told so at once.
type Load struct {
	most   int64
	kept   int64 // the last places
	memory *Memory

	inFlight atomic.Int64
	seed     maphash.Seed
	clients  [shards]shard
}

// shard is a part of the table: the requests in flight by client.
type shard struct {
	mu sync.Mutex
	by map[string]int
	_  [40]byte // a cache line each
}

// NewLoad returns a Load for so many requests; memory may be nil.
func NewLoad(requests int, memory *Memory) *Load {
	l := &Load{most: int64(requests), kept: int64(requests) / hundredth, memory: memory, seed: maphash.MakeSeed()}
	for i := range l.clients {
		l.clients[i].by = map[string]int{}
	}
	return l
}

// Enter counts a request of a client and accepts it, or refuses it. Leave must follow if it is accepted.
func (l *Load) Enter(client string) bool {
	n := l.inFlight.Add(1)
	if n > l.most || l.memory.Short() {
		l.inFlight.Add(-1)
		return false
	}
	s := l.shard(client)
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.by[client]
	if n > l.most-l.kept && int64(own) >= l.kept {
		l.inFlight.Add(-1)
		return false
	}
	s.by[client] = own + 1
	return true
}

// Leave ends what Enter accepted.
func (l *Load) Leave(client string) {
	s := l.shard(client)
	s.mu.Lock()
	if s.by[client]--; s.by[client] == 0 {
		delete(s.by, client)
	}
	s.mu.Unlock()
	l.inFlight.Add(-1)
}

func (l *Load) shard(client string) *shard {
	return &l.clients[maphash.String(l.seed, client)%shards]
}

// InFlight returns the number of requests accepted and not yet over.
func (l *Load) InFlight() int { return int(l.inFlight.Load()) }

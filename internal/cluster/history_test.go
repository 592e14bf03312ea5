package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/agenticnexus/agenticnexus/internal/cluster"
	"github.com/agenticnexus/agenticnexus/internal/shared"
)

// owners is what a session's history must obey: one incarnation at a time acts for it, and none again after another.
func owners() porcupine.Model {
	type state struct {
		now  uint64
		past string
	}
	return porcupine.Model{
		Init: func() any { return state{} },
		Step: func(s, _, served any) (bool, any) {
			at, by := s.(state), served.(uint64)
			if by == at.now {
				return true, at
			}
			name := fmt.Sprintf("%016x ", by)
			for i := 0; i < len(at.past); i += len(name) {
				if at.past[i:i+len(name)] == name {
					return false, at
				}
			}
			return true, state{by, at.past + name}
		},
		DescribeOperation: func(_, served any) string { return fmt.Sprintf("served by %016x", served) },
	}
}

// history is what clients see of a session.
type history struct {
	mu   sync.Mutex
	ops  []porcupine.Operation
	nows atomic.Int64
}

// request lets a client at a replica send a request of the session.
func (h *history) request(client int, n *node, s cluster.Session) {
	call := h.nows.Add(1)
	by, err := n.act(context.Background(), s)
	end := h.nows.Add(1)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Call: call, Output: by, Return: end})
}

// act serves a request of a session as the edge does, and returns the incarnation that served it.
func (n *node) act(ctx context.Context, s cluster.Session) (uint64, error) {
	for range 5 {
		self := n.dir.Self()
		place, err := n.dir.Find(ctx, s)
		switch {
		case err != nil:
			return 0, err
		case place.Here() && n.dir.Draining():
			to, ok := n.dir.Elsewhere()
			if ok && n.dir.HandOver(ctx, s, to, func() ([]byte, bool) { return nil, true }) == nil {
				continue
			}
			return 0, cluster.ErrUnavailable
		case place.Here():
			if n.dir.Self() != self || n.dead.Load() {
				return 0, cluster.ErrUnavailable
			}
			return self, nil
		case cluster.Forwarded(ctx):
			return 0, cluster.ErrMoved
		}
		w := &recorder{header: http.Header{}}
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://nexus.example/mcp", nil)
		err = place.Forward(w, r)
		switch {
		case errors.Is(err, cluster.ErrMoved), errors.Is(err, cluster.ErrRefused):
			continue
		case err != nil:
			return 0, err
		case w.status != http.StatusOK:
			return 0, errors.New(w.body.String())
		}
		return strconv.ParseUint(w.body.String(), 16, 64)
	}
	return 0, cluster.ErrMoved
}

// serveSession lets the replica's server serve the session.
func (n *node) serveSession(s cluster.Session) {
	n.serve(func(w http.ResponseWriter, r *http.Request) {
		by, err := n.act(r.Context(), s)
		switch {
		case errors.Is(err, cluster.ErrMoved):
			w.WriteHeader(http.StatusMisdirectedRequest)
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		default:
			fmt.Fprintf(w, "%x", by)
		}
	})
}

// TestHistories lets clients send requests of one session to all replicas while replicas lose the store and each other,
// lose answers, crash, start again and drain.
func TestHistories(t *testing.T) {
	seeds := 12
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inBubble(t, func(w *world) {
				h := &history{}
				disturb(w, h, rand.New(rand.NewPCG(uint64(seed), 1)))
				result, _ := porcupine.CheckOperationsVerbose(owners(), h.ops, 0)
				if result != porcupine.Ok {
					w.t.Errorf("the history of %d requests is %v", len(h.ops), result)
				}
				served := map[uint64]int{}
				for _, op := range h.ops {
					served[op.Output.(uint64)]++
				}
				w.t.Logf("%d requests were served, by %d incarnations", len(h.ops), len(served))
			})
		})
	}
}

// disturb runs the replicas, their clients and the faults.
func disturb(w *world, h *history, random *rand.Rand) {
	names := []string{"a", "b", "c"}
	var nodes [3]atomic.Pointer[node]
	var session cluster.Session
	for i, name := range names {
		n := w.node(name)
		if i == 0 {
			session = n.session("s")
		}
		nodes[i].Store(n)
	}
	for i := range nodes {
		nodes[i].Load().serveSession(session)
	}
	ctx, stop := context.WithCancel(w.t.Context())
	var clients sync.WaitGroup
	for client := range 6 {
		wait := time.Duration(50+random.IntN(100)) * time.Millisecond
		clients.Go(func() {
			for ctx.Err() == nil {
				h.request(client, nodes[client%3].Load(), session)
				time.Sleep(wait)
			}
		})
	}
	for range 25 {
		i := random.IntN(3)
		n := nodes[i].Load()
		switch random.IntN(7) {
		case 0:
			n.leases.SetCut(true)
		case 1:
			w.net.Isolate(n.host, true)
		case 2:
			for k := range nodes {
				nodes[k].Load().leases.SetCut(true)
			}
		case 3:
			n.leases.Lose.Store(int32(1 + random.IntN(3)))
		case 4, 5:
			if random.IntN(2) == 0 {
				n.Drain()
				time.Sleep(time.Second)
			}
			n.crash()
			again := w.prepare(n.name, n.host)
			again.serveSession(session)
			nodes[i].Store(again)
			starting, cancel := context.WithTimeout(ctx, 15*time.Second)
			if err := again.Start(starting); err != nil {
				again.leases.SetCut(false)
				_ = again.Start(ctx)
			}
			cancel()
		}
		time.Sleep(time.Duration(random.IntN(8000)) * time.Millisecond)
		if random.IntN(3) > 0 {
			for k := range nodes {
				nodes[k].Load().leases.SetCut(false)
				w.net.Isolate(nodes[k].Load().host, false)
			}
			time.Sleep(time.Duration(random.IntN(4000)) * time.Millisecond)
		}
	}
	stop()
	clients.Wait()
}

func TestHistory_StoreForgets(t *testing.T) {
	inBubble(t, func(w *world) {
		h := &history{}
		all := []*node{w.node("a"), w.node("b"), w.node("c")}
		s := all[0].session("s")
		for _, n := range all {
			n.serveSession(s)
		}
		all[0].crash()
		all = all[1:]
		h.request(0, all[0], s) // adopts
		for _, n := range all {
			n.leases.SetCut(true)
		}
		time.Sleep(3 * time.Second)
		empty := shared.NewMemory()
		for _, n := range all {
			n.leases.Replace(empty)
			n.leases.SetCut(false)
		}
		for range 200 {
			for i, n := range []*node{all[1], all[0]} {
				h.request(i, n, s)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if result, _ := porcupine.CheckOperationsVerbose(owners(), h.ops, 0); result != porcupine.Ok {
			w.t.Errorf("the history of %d requests is %v", len(h.ops), result)
		}
		served := map[uint64]bool{}
		for _, op := range h.ops {
			served[op.Output.(uint64)] = true
		}
		if len(served) != 2 {
			w.t.Errorf("got %d incarnations that served, want the one before and one after", len(served))
		}
	})
}

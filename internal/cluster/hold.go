package cluster

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// holdPath is where a replica asks another for its promise. The request makes the asking replica known.
const holdPath = "/cluster/hold"

// promise is the answer.
type promise struct {
	Granted bool     `json:"granted"` // not to fence the asking replica for promiseFor
	Known   []friend `json:"known"`   // the answering replica; if it was the one asked, those that it knows, too
}

// friend is a replica that another names.
type friend struct {
	ID      uint64 `json:"id"`
	Name    string `json:"name"`
	Address string `json:"address"`
}

// maxPromise bounds the bytes of a promise.
const maxPromise = 64 << 10

// hold lets an incarnation that cannot renew its lease act on the promises of all others.
func (k *keeper) hold(ctx context.Context, i *incarnation) {
	members := k.replica.members
	asked := k.replica.askAll(ctx, i.id)
	members.mu.Lock()
	others := make([]sight, len(asked))
	for n, m := range asked {
		others[n] = m.sight
	}
	members.mu.Unlock()
	i.prolong(heldUntil(time.Now(), others))
}

// askAll asks all replicas that have not ended for a promise to an incarnation, and returns them, with those of which
// it has learned.
func (r *Replica) askAll(ctx context.Context, from uint64) []*member {
	unended := func(m *member) bool { return !m.ended && m.id != from }
	var asked sync.WaitGroup
	for n, m := range r.members.others(unended) {
		if n < maxReplicas {
			asked.Go(func() {
				if _, err := r.ask(ctx, from, m); err != nil && r.members.standing(m) == live {
					r.members.unreached(m.id, err)
				}
			})
		}
	}
	asked.Wait()
	return r.members.others(unended)
}

// ask asks an incarnation for a promise to from; 0 is nobody. It reports whether it is alive, and notes the answer.
func (r *Replica) ask(ctx context.Context, from uint64, m *member) (alive bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, ioTime)
	defer cancel()
	sent := time.Now()
	query := url.Values{"name": {r.config.Name}, "address": {r.config.Address}}
	id, body, err := r.hops.call(ctx, m, from, holdPath+"?"+query.Encode())
	switch {
	case isRefused(err), err == nil && id != m.id:
		r.members.update(m, func(s *sight) { s.refuses = true })
	case err != nil:
		return false, err
	}
	var p promise
	if err == nil {
		err = json.Unmarshal(body, &p)
	}
	for _, f := range p.Known[:min(len(p.Known), maxReplicas)] {
		r.members.introduce(f.ID, f.Name, f.Address)
	}
	if err != nil || id != m.id {
		return false, err
	}
	r.members.update(m, func(s *sight) {
		s.answered, s.refuses = time.Now(), false
		if p.Granted && from != 0 {
			s.held = sent
		}
	})
	return true, nil
}

// promiseTo answers a request for a promise from an incarnation. Nothing is promised if another incarnation than the
// present one was asked: the request may be a recorded one.
func (r *Replica) promiseTo(w http.ResponseWriter, from uint64, asked bool, query url.Values) {
	p := promise{Known: []friend{{r.self(), r.config.Name, r.config.Address}}}
	if asked {
		p.grant(r, from, query)
	}
	body, _ := json.Marshal(p) // cannot fail
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

// grant promises not to fence an incarnation unless it is already, and names the replicas that this one knows.
func (p *promise) grant(r *Replica, from uint64, query url.Values) {
	for _, m := range r.members.others(func(m *member) bool { return !m.ended && m.id != from }) {
		if len(p.Known) < maxReplicas {
			p.Known = append(p.Known, friend{m.id, m.name, m.address})
		}
	}
	if m := r.members.introduce(from, query.Get("name"), query.Get("address")); m != nil {
		now := time.Now()
		r.members.update(m, func(s *sight) {
			if p.Granted = !s.ended; p.Granted {
				s.answered, s.promised, s.refuses = now, now, false
			}
		})
	}
}

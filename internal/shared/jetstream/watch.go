package jetstream

import (
	"context"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agenticnexus/agenticnexus/internal/shared"
)

// watch is one call of Watch. It follows the bucket from one disruption to the next.
type watch struct {
	prefix string
	f      func(shared.Entry)
	begun  bool               // f has got the present entries
	known  map[string]version // what f knows
}

// version tells values of a key apart. The revision alone does not: a bucket that was lost begins to count anew.
type version struct {
	revision uint64
	created  int64
}

// Watch implements shared.State.
func (s *Store) Watch(ctx context.Context, prefix string, f func(shared.Entry)) error {
	w := watch{prefix: prefix, f: f, known: map[string]version{}}
	for {
		b := s.bucket.Load()
		w.follow(ctx, b)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closed:
			return shared.ErrUnreachable
		case <-b.disrupted:
		case <-time.After(retrying):
		}
	}
}

// follow reports the differences between what is known and the bucket, and its changes, until it is disrupted.
func (w *watch) follow(ctx context.Context, b *bucket) {
	ctx, cancel := context.WithCancel(ctx)
	watcher, err := b.kv.Watch(ctx, w.pattern())
	if err != nil {
		cancel()
		return
	}
	defer func() {
		cancel() // ends the watcher, which would wait for a reader
		for range watcher.Updates() {
		}
	}()
	present := map[string]bool{} // nil after the present entries
	for {
		select {
		case e, open := <-watcher.Updates():
			switch {
			case !open:
				return
			case e == nil:
				w.begin(present)
				present = nil
			default:
				if present != nil && e.Operation() == jetstream.KeyValuePut {
					present[keyOf(e)] = true
				}
				w.report(e)
			}
		case <-b.disrupted:
			return
		case <-ctx.Done():
			return
		}
	}
}

// pattern returns the narrowest pattern of the keys with the prefix.
func (w *watch) pattern() string {
	folder := w.prefix[:strings.LastIndex(w.prefix, "/")+1]
	return subject(folder) + ">"
}

// begin reports what is gone, and the end of the present entries.
func (w *watch) begin(present map[string]bool) {
	for key := range w.known {
		if !present[key] {
			w.remove(key)
		}
	}
	if !w.begun {
		w.begun = true
		w.f(shared.Entry{})
	}
}

// report passes an entry on unless it is known.
func (w *watch) report(e jetstream.KeyValueEntry) {
	key, v := keyOf(e), version{e.Revision(), e.Created().UnixNano()}
	switch {
	case !strings.HasPrefix(key, w.prefix) || w.known[key] == v:
	case e.Operation() == jetstream.KeyValuePut:
		w.known[key] = v
		w.f(shared.Entry{Key: key, Value: e.Value(), Revision: e.Revision(), Created: e.Created()})
	default:
		w.remove(key)
	}
}

// remove reports that an entry is gone unless it was before the watch began. NATS may have left out that it was there.
func (w *watch) remove(key string) {
	_, known := w.known[key]
	if delete(w.known, key); known || w.begun {
		w.f(shared.Entry{Key: key})
	}
}

func keyOf(e jetstream.KeyValueEntry) string { return strings.ReplaceAll(e.Key(), ".", "/") }

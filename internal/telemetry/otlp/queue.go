package otlp

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/resource"
)

// maxQueued limits the encoded size in bytes of queued spans.
const maxQueued = 16 << 20

// maxSpare limits the bytes of further fields that are kept for reuse.
const maxSpare = 1 << 20

// queue holds ended spans until their export. Beyond its limits spans are dropped: no caller waits for a collector.
type queue struct {
	poster   *poster
	envelope envelope
	limits   limits
	dropped  atomic.Int64 // spans that were not exported

	mu      sync.Mutex
	batches []batch                    // all full except the last
	waiting struct{ spans, bytes int } // total
	spare   batch                      // memory for the next batch
	closed  bool

	full   chan struct{} // has a token if there is a full batch
	cancel context.CancelFunc
	stop   chan struct{}
	done   chan struct{}
	lost   error // error of the last batches; set before done is closed
}

// limits are those of the specification's batching processor. The default queue and batch sizes are four times the
// specified defaults, because the cost of an export is mostly that of the request, not of its spans.
type limits struct {
	queue, batch int
	delay        time.Duration
}

// readLimits reads OTEL_BSP_…; values that are malformed or not positive mean the default.
func readLimits() limits {
	number := func(name string, usual int) int {
		if n, err := strconv.Atoi(strings.TrimSpace(os.Getenv("OTEL_BSP_" + name))); err == nil && n > 0 {
			return n
		}
		return usual
	}
	l := limits{queue: number("MAX_QUEUE_SIZE", 8192), batch: number("MAX_EXPORT_BATCH_SIZE", 2048),
		delay: time.Duration(number("SCHEDULE_DELAY", 5000)) * time.Millisecond}
	l.batch = min(l.batch, l.queue)
	return l
}

func newQueue(p *poster, about *resource.Resource, scope string) *queue {
	ctx, cancel := context.WithCancel(context.Background())
	q := &queue{poster: p, envelope: newEnvelope(about, scope), limits: readLimits(), full: make(chan struct{}, 1),
		cancel: cancel, stop: make(chan struct{}), done: make(chan struct{})}
	go q.run(ctx)
	return q
}

// add adds an ended span with further encoded fields, which it copies.
func (q *queue) add(r record, more []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.waiting.spans == q.limits.queue || q.waiting.bytes >= maxQueued {
		q.dropped.Add(1)
		return
	}
	if n := len(q.batches); n == 0 || len(q.batches[n-1].spans) == q.limits.batch {
		q.batches = append(q.batches, q.spare)
		q.spare = batch{}
	}
	last := &q.batches[len(q.batches)-1]
	q.waiting.spans++
	q.waiting.bytes += last.add(r, more)
	if len(last.spans) == q.limits.batch {
		select {
		case q.full <- struct{}{}:
		default:
		}
	}
}

// take returns the oldest batch; one that is not full only if all is set.
func (q *queue) take(all bool) (b batch, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.batches) == 0 || !all && len(q.batches[0].spans) < q.limits.batch {
		return b, false
	}
	b = q.batches[0]
	q.batches = slices.Delete(q.batches, 0, 1)
	q.waiting.spans -= len(b.spans)
	q.waiting.bytes -= b.bytes
	return b, true
}

// reuse keeps the memory of a batch of usual size for reuse.
func (q *queue) reuse(b batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if cap(b.more) <= maxSpare {
		clear(b.spans) // release the shapes
		q.spare = batch{spans: b.spans[:0], more: b.more[:0]}
	}
}

// run exports full batches immediately and all batches periodically, until stop is closed.
func (q *queue) run(ctx context.Context) {
	defer close(q.done)
	ticker := time.NewTicker(q.limits.delay)
	defer ticker.Stop()
	for stopped := false; !stopped; {
		all := true
		select {
		case <-q.full:
			all = false
		case <-ticker.C:
		case <-q.stop:
			stopped = true
		}
		for {
			b, ok := q.take(all)
			if !ok {
				break
			}
			unused, err := q.poster.post(ctx, newTraces(q.envelope, b))
			if unused {
				q.reuse(b)
			}
			if err != nil {
				q.dropped.Add(int64(len(b.spans)))
			}
			if stopped {
				q.lost = errors.Join(q.lost, err)
			} else if err != nil {
				otel.Handle(err)
			}
		}
	}
}

// shutdown exports the queued spans within ctx. The error tells why some are lost.
func (q *queue) shutdown(ctx context.Context) (err error) {
	q.mu.Lock()
	again := q.closed
	q.closed = true
	q.mu.Unlock()
	if !again {
		close(q.stop)
	}
	select {
	case <-q.done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	q.cancel()
	<-q.done
	q.poster.close()
	return errors.Join(err, q.lost)
}

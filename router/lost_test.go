package router_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// A server that is lost fails its own steps with the reason, and the next question uses it once it is back.
func TestQuery_LostServer(t *testing.T) {
	var mu sync.Mutex
	var down bool
	var conn io.Closer
	k := newKit(t, func(_ *router.Options, o *downstream.Options) {
		o.Execution = downstream.DefaultExecution()
		o.Execution.RetryDelay = time.Millisecond
		dial := o.Embedded["peer"]
		o.Embedded["peer"] = func(ctx context.Context) (io.ReadWriteCloser, error) {
			mu.Lock()
			defer mu.Unlock()
			if down {
				return nil, errors.New("nobody is there")
			}
			c, err := dial(ctx)
			conn = c
			return c, err
		}
	})
	steps := []byte(`[{"tool":"echo","arguments":{"n":1}}]`)
	if r := k.query(router.Query{Plan: steps}); !r.Outcomes[0].OK() {
		t.Fatalf("got %v, want a result", r.Outcomes[0].Err)
	}
	mu.Lock()
	down = true
	conn.Close()
	mu.Unlock()
	mcptest.Eventually(t, "the server counts as disconnected", func() bool {
		h, err := k.Health(nil, "")
		return err == nil && h.Servers["peer"].LastError != nil && h.Servers["peer"].Status == downstream.StateDisconnected
	})
	for range 2 { // also once the failure is known
		o := k.query(router.Query{Plan: steps}).Outcomes[0]
		if o.OK() || o.Err.Reason != "unavailable" || o.Attempts != 3 {
			t.Errorf("got %v after %d attempts, want it unavailable after three", o.Err, o.Attempts)
		}
	}
	r := k.query(router.Query{Text: "find a hotel room in the city Oslo"})
	if got := r.Answer.Text; !strings.HasPrefix(got, "No server could be listed: peer.") || strings.Contains(got, "model") {
		t.Errorf("got %q, want the server named and no word of models, which would not help", got)
	}
	if len(r.Unmet) != 1 || r.Unmet[0].Reason != plan.UnmetFailed {
		t.Errorf("got %+v unmet, want the question as failed", r.Unmet)
	}
	mu.Lock()
	down = false
	mu.Unlock()
	r = k.query(router.Query{Text: "find a hotel room in the city Oslo"})
	if len(r.Outcomes) != 1 || !r.Outcomes[0].OK() || r.Plan.Source != plan.SourceRules {
		t.Errorf("once it is back: got %q, want it asked", r.Answer.Text)
	}
}

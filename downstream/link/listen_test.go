package link_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// A session watches the lists that the server accepts in subscriptions/listen, and no others. The request is no call in
// flight, and its stream is not resumed, but opened again.
func TestListen(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{}, 16)
	cut := make(chan struct{})
	srv := answering(t, func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) bool {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method != http.MethodPost:
			t.Errorf("got %s, want POST alone", r.Method)
			return false
		case m.Method == "initialize":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no handshake"}}`, m.ID)
		case m.Method == "server/discover":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{`+
				`"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":false}}}}`, m.ID)
		case m.Method == "subscriptions/listen":
			want := `{"promptsListChanged":true,"toolsListChanged":true}`
			if got := string(jsonrpc.Get(m.Params, "notifications")); got != want {
				t.Errorf("got the filter %s, want %s", got, want)
			}
			if got := r.Header.Get("Mcp-Method"); got != m.Method {
				t.Errorf("got Mcp-Method %q, want %s", got, m.Method)
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "id: 1\ndata: "+`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{`+
				`"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":{"toolsListChanged":true}}}`+"\n\n", m.ID)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-cut:
			case <-r.Context().Done():
				ended <- struct{}{}
			}
		default:
			return false
		}
		return true
	})
	l := &listener{}
	s := connect(t, link.Target{URL: srv.URL}, l, 1<<20)
	for opening := range int64(2) {
		mcptest.Eventually(t, "the accepted request", func() bool { return s.Watching("tools") == opening+1 })
		if got := s.Watching("prompts") + s.Watching("resources"); got != 0 {
			t.Errorf("got a watch %d of lists that the server has not accepted", got)
		}
		if opening == 0 {
			cut <- struct{}{}
		}
	}
	if got := s.InFlight(); got != 0 {
		t.Errorf("in flight: got %d, want 0", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if s.Drain(ctx); ctx.Err() != nil {
		t.Error("Drain waits for the listen request")
	}
	s.Close()
	select {
	case <-ended:
	case <-ctx.Done():
		t.Error("the request goes on after Close")
	}
	if s.Watching("tools") != 0 {
		t.Error("got a watch in a closed session")
	}
	if l.has(&l.notified, "acknowledged") {
		t.Error("the acknowledgement was passed on")
	}
}

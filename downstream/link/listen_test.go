package link_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
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

// Tasks that the server announces go to the request that listens to them, also where all share a stream, and to nobody
// else.
func TestListenTasks(t *testing.T) {
	t.Parallel()
	srv := &mcptest.Server{Version: mcptest.Modern, OnLine: func(m mcptest.Message, write func(string)) bool {
		if m.Method == "initialize" {
			write(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32601,"message":"no handshake"}}` + "\n")
		}
		return m.Method == "initialize"
	}}
	web := httptest.NewServer(srv)
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	targets := map[string]link.Target{"http": {URL: web.URL}, "stdio": {Dial: func(context.Context) (io.ReadWriteCloser, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			srv.ServeLines(theirs, theirs)
		}()
		return ours, nil
	}}}
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + mcptest.Tasks + `}`
	for name, target := range targets {
		s := connect(t, target, &listener{}, 1<<20)
		begun, err := s.Call(t.Context(), &link.Call{Method: "tools/call", Params: []byte(`{"name":"slow_compute","arguments":{"seconds":60},` + meta + `}`)})
		if err != nil {
			t.Fatal(err)
		}
		id := string(jsonrpc.Get(begun.Result, "taskId"))
		ctx, cancel := context.WithCancel(t.Context())
		accepted, heard, over := make(chan string, 1), make(chan string, 9), make(chan error, 1)
		go func() {
			over <- s.ListenTasks(ctx, "ann", []byte(`{"notifications":{"taskIds":[`+id+`]},`+meta+`}`),
				func(ids []byte) { accepted <- string(ids) }, func(task []byte) { heard <- string(task) })
		}()
		if got := <-accepted; got != "["+id+"]" {
			t.Errorf("%s: got %s accepted, want the id", name, got)
		}
		if _, err := s.Call(t.Context(), &link.Call{Method: "tasks/cancel", Params: []byte(`{"taskId":` + id + `,` + meta + `}`)}); err != nil {
			t.Errorf("%s: tasks/cancel: %v", name, err)
		}
		if got := <-heard; string(jsonrpc.Get([]byte(got), "taskId")) != id || jsonrpc.Text(jsonrpc.Get([]byte(got), "status")) != "cancelled" {
			t.Errorf("%s: heard %s, want that the task is cancelled", name, got)
		}
		cancel()
		if err := <-over; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want that the caller ended it", name, err)
		}
		if name == "stdio" {
			listenersOfOneCaller(t, s)
		}
	}
}

// listenersOfOneCaller checks that a caller leaves room for the listeners of others.
func listenersOfOneCaller(t *testing.T, s *link.Session) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	listen := func(caller string) error {
		accepted, over := make(chan bool, 1), make(chan error, 1)
		wg.Go(func() {
			over <- s.ListenTasks(ctx, caller, []byte(`{"notifications":{"taskIds":[]}}`), func([]byte) { accepted <- true }, nil)
		})
		select {
		case <-accepted:
			return nil
		case err := <-over:
			return err
		}
	}
	for i := range 501 {
		if err := listen("ann"); (err != nil) != (i == 500) || err != nil && failure(err).Reason != reason.Overloaded {
			t.Fatalf("listener %d of a caller: got %v, want that 500 fit", i+1, err)
		}
	}
	if err := listen("bob"); err != nil {
		t.Errorf("another caller: got %v, want that its listener fits", err)
	}
}

package link_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// The log level that a request of 2026-07-28 names is set in a session with a handshake, unless its level is as low.
func TestLogLevelsOfRequests(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []string
	srv := answering(t, func(w http.ResponseWriter, _ *http.Request, m jsonrpc.Message) bool {
		result := `{}`
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"logging":{}}}`
		case "logging/setLevel", "tools/call":
			mu.Lock()
			defer mu.Unlock()
			got = append(got, m.Method+" "+jsonrpc.Text(jsonrpc.Get(m.Params, "level")))
		default:
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(jsonrpc.Result(m.ID, []byte(result)))
		return true
	})
	s := connect(t, link.Target{URL: srv.URL}, &listener{}, 1<<20)
	for _, tc := range []struct{ method, params, want string }{
		{"tools/call", `{}`, ""},
		{"tools/call", `{"_meta":{"io.modelcontextprotocol/logLevel":"loud"}}`, ""},
		{"tools/call", `{"_meta":{"io.modelcontextprotocol/logLevel":"warning"}}`, "warning"},
		{"tools/call", `{"_meta":{"io.modelcontextprotocol/logLevel":"error"}}`, ""},
		{"tools/call", `{"_meta":{"io.modelcontextprotocol/logLevel":"info"}}`, "info"},
		{"logging/setLevel", `{"level":"error"}`, "error"},
		{"tools/call", `{"_meta":{"io.modelcontextprotocol/logLevel":"info"}}`, "info"},
		{"tools/call", `{"_meta":{"io.modelcontextprotocol/logLevel":"info"}}`, ""},
	} {
		got = nil
		if reply, err := s.Call(t.Context(), &link.Call{Method: tc.method, Params: []byte(tc.params)}); err != nil || reply.Err != nil {
			t.Fatalf("%s %s: got %s, %v", tc.method, tc.params, reply.Err, err)
		}
		var want []string
		if tc.want != "" {
			want = []string{"logging/setLevel " + tc.want}
		}
		if tc.method == "tools/call" {
			want = append(want, "tools/call ")
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s %s: got %q, want %q", tc.method, tc.params, got, want)
		}
	}
}

// A subscription to a resource of a server of 2026-07-28 is a request that stays open. What the server does not accept
// is an error, and the number is limited.
func TestSubscriptionsOfOlderVersions(t *testing.T) {
	t.Parallel()
	var open atomic.Int64
	srv := answering(t, func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) bool {
		w.Header().Set("Content-Type", "application/json")
		filter := string(jsonrpc.Get(m.Params, "notifications"))
		switch {
		case m.Method == "server/discover":
			_, _ = w.Write(jsonrpc.Result(m.ID, []byte(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"resources":{"subscribe":true}}}`)))
		case m.Method != "subscriptions/listen":
			return false
		case strings.Contains(filter, "file:///error"):
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32050,"message":"no"}}`, m.ID)
		default:
			if strings.Contains(filter, "file:///ignored") {
				filter = "{}"
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: "+`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{`+
				`"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":%s}}`+"\n\n", m.ID, filter)
			_ = http.NewResponseController(w).Flush()
			open.Add(1)
			defer open.Add(-1)
			<-r.Context().Done()
		}
		return true
	})
	s := connect(t, link.Target{URL: srv.URL}, &listener{}, 1<<20)
	caller := "ann"
	do := func(method, uri string) (string, error) {
		reply, err := s.Call(t.Context(), &link.Call{Caller: caller, Method: method, Params: fmt.Appendf(nil, `{"uri":%q}`, uri)})
		return string(reply.Result) + string(jsonrpc.Get(reply.Err, "code")), err
	}
	for uri, want := range map[string]string{"file:///error": "-32050", "file:///ignored": "-32602"} {
		if got, err := do("resources/subscribe", uri); got != want || err != nil {
			t.Errorf("%s: got %s, %v; want the error %s", uri, got, err, want)
		}
	}
	const most = 100
	for i := range most {
		if got, err := do("resources/subscribe", fmt.Sprintf("file:///%d", i)); got != "{}" || err != nil {
			t.Fatalf("subscription %d: got %s, %v", i, got, err)
		}
	}
	if _, err := do("resources/subscribe", "file:///x"); failure(err).Reason != reason.Overloaded {
		t.Errorf("one more: got %v, want it overloaded", err)
	}
	caller = "bob"
	if got, err := do("resources/subscribe", "file:///y"); got != "{}" || err != nil {
		t.Errorf("another caller: got %s, %v", got, err)
	}
	if got, err := do("resources/unsubscribe", "file:///0"); got != "{}" || err != nil {
		t.Errorf("unsubscribe: got %s, %v", got, err)
	}
	mcptest.Eventually(t, "the end of one request", func() bool { return open.Load() == most })
	s.Close()
	mcptest.Eventually(t, "the end of all", func() bool { return open.Load() == 0 })
}

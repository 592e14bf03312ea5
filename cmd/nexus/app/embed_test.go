package app_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router"
)

// A program uses the router without any listener, as the command line does.
func TestEmbedded(t *testing.T) {
	p := newPeer(echoTool("echo"), peerTool{"broken", object, func(*peerCall) (string, string) {
		return "", `{"code":-31999,"message":"no luck","data":{"n":1}}`
	}})
	url := p.serve(t).URL
	r := prepare(t, func(o *app.Options) { o.Config.Servers = append(o.Config.Servers, server("peer", url)) })
	if err := r.Connect(t.Context()); err != nil {
		t.Fatalf("Connect: got %v, want nil", err)
	}
	for _, name := range []string{"echo", "peer__echo", "peer:echo", "peer.echo"} {
		raw, err := r.Router().Call(t.Context(), name, json.RawMessage(`{"n":9007199254740993}`))
		if err != nil || !strings.Contains(string(raw), `"structuredContent":{"n":9007199254740993}`) {
			t.Errorf("Call %s: got %s, %v, want the arguments back", name, raw, err)
		}
	}
	var wire *jsonrpc.Error
	if _, err := r.Router().Call(t.Context(), "broken", json.RawMessage(`{}`)); !errors.As(err, &wire) || wire.Code != -31999 || wire.Message != "no luck" {
		t.Errorf("Call broken: got %v, want the server's error", err)
	}
	if _, err := r.Router().Call(t.Context(), "nope", json.RawMessage(`{}`)); err == nil || !strings.Contains(err.Error(), "Unknown tool: nope") {
		t.Errorf("Call nope: got %v, want Unknown tool: nope", err)
	}
	var mu sync.Mutex
	var values []float64
	q := router.Query{Text: "q", Plan: json.RawMessage(`[{"tool":"echo","arguments":{}}]`), Report: router.NewReporter(func(fraction float64, _ string) {
		mu.Lock()
		defer mu.Unlock()
		values = append(values, fraction)
	})}
	record, err := r.Router().Query(t.Context(), q)
	q.Report.Close()
	if err != nil || record.Called() != 1 || !slices.Equal(values, []float64{0.1, 0.2, 0.8, 0.9, 1}) {
		t.Errorf("Query: got %+v, %v with progress %v, want one call", record, err, values)
	}
	var refusal *router.Refusal
	if _, err := r.Router().Query(t.Context(), router.Query{Text: " "}); !errors.As(err, &refusal) || refusal.Text != "Query is empty" {
		t.Errorf("empty Query: got %v, want a Refusal", err)
	}
}

// Under lazy discovery nothing is listed before a client asks, and a call by full name lists its server alone.
func TestDiscovery(t *testing.T) {
	for _, row := range []struct {
		discovery     string
		before, after [2]int // lists at both servers, before and after run one__echo
	}{
		{downstream.DiscoveryLazy, [2]int{0, 0}, [2]int{1, 0}},
		{downstream.DiscoveryEager, [2]int{1, 1}, [2]int{1, 1}},
	} {
		t.Run(row.discovery, func(t *testing.T) {
			one, two := newPeer(echoTool("echo")), newPeer(echoTool("other"))
			r := start(t, func(o *app.Options) {
				o.Config.Discovery = row.discovery
				o.Config.Servers = append(o.Config.Servers, server("one", one.serve(t).URL), server("two", two.serve(t).URL))
			})
			lists := func() [2]int { return [2]int{len(one.received("tools/list")), len(two.received("tools/list"))} }
			c := r.dial("", nil)
			c.list()
			c.call("health_check", `{}`, "")
			if got := lists(); got != row.before {
				t.Errorf("lists before a client asks: got %v, want %v", got, row.before)
			}
			for _, name := range []string{"one__echo", "one:echo", "one.echo"} {
				c.call("run", `{"tool":"`+name+`"}`, "")
			}
			if got := lists(); got != row.after {
				t.Errorf("lists after calls by full names: got %v, want %v", got, row.after)
			}
		})
	}
}

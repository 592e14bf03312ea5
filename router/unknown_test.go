package router_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/router"
)

// The error about an unknown tool names the servers that could not be listed, if there are any.
func TestUnknownToolNamesServersThatAreLost(t *testing.T) {
	whole := newKit(t, nil)
	if got := whole.call("run", `{"tool":"nope"}`).text(); !strings.Contains(got, "nope") || strings.Contains(got, "not listed") {
		t.Errorf("all servers are listed: got %q, want no word of servers", got)
	}
	part := newKit(t, func(_ *router.Options, o *downstream.Options) {
		o.Servers = append(o.Servers, downstream.ServerConfig{Name: "gone", Type: downstream.TransportStdio})
		o.Embedded["gone"] = func(context.Context) (io.ReadWriteCloser, error) { return nil, errors.New("nobody is there") }
	})
	var got string
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(got, "; not listed: gone (unavailable: "); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) { // it is starting at first
			t.Fatalf("one server is lost: got %q, want its name and why", got)
		}
		got = part.call("run", `{"tool":"nope"}`).text()
	}
	if got := part.call("run", `{"tool":"peer__nope"}`).text(); strings.Contains(got, "gone") {
		t.Errorf("a tool of another server: got %q, want no word of the lost one", got)
	}
}

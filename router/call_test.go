package router_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// A user of the process calls a tool by any of its names and gets the raw result, or the error of the server.
func TestCall(t *testing.T) {
	k := newKit(t, nil)
	for _, name := range []string{"echo", "peer__echo", "peer:echo", "peer.echo"} {
		got, err := k.Call(t.Context(), name, json.RawMessage(`{"a":9007199254740993}`))
		if want := `{"content":[],"structuredContent":{"a":9007199254740993}}`; err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, want)
		}
	}
	if got, err := k.Call(t.Context(), "nope", nil); err == nil || !strings.Contains(err.Error(), "nope") || got != nil {
		t.Errorf("got %s, %v, want an error that names the tool", got, err)
	}
	var refused *jsonrpc.Error
	if got, err := k.Call(t.Context(), "breaks", json.RawMessage(`{}`)); !errors.As(err, &refused) || refused.Code != -32001 || refused.Message != "it broke" || got != nil {
		t.Errorf("got %s, %v, want the error of the server", got, err)
	}
}

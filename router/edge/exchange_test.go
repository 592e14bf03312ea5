package edge_test

import (
	"context"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// keeping is a handler that passes on its exchanges.
type keeping chan *edge.Exchange

func (keeping) Ended(string) {}

func (k keeping) Serve(_ context.Context, x *edge.Exchange) {
	x.RelayProgress()([]byte(`{"progressToken":1,"progress":1}`))
	if send := x.Progress(); send != nil {
		send(0.5, "half")
	}
	x.Reply([]byte(`{}`))
	k <- x
}

// An Exchange has the visibility, the version and the progress token of its message.
func TestExchange(t *testing.T) {
	keys, err := auth.New(auth.Config{APIKeys: []auth.KeyConfig{
		{Name: "all", Key: "key-all"}, {Name: "few", Key: "key-few", Servers: []string{"a"}},
	}}, auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := edge.New(edge.Options{Keys: keys})
	defer stop(t, e)
	served := make(keeping, 1)
	h := e.Streamable(served, nil)
	const progress = `event: message
data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}

event: message
data: {"jsonrpc":"2.0","method":"notifications/progress","params":` +
		`{"progressToken":"t","progress":0.5,"total":1.0,"message":"half"}}

event: message
data: `
	const result = `{"jsonrpc":"2.0","id":1,"result":{}}`
	for _, row := range []struct {
		name, key, version, meta string
		token, body              string
		visible                  map[string]bool // by server; nil = all
	}{
		{"restricted", "key-few", "2025-06-18", `"progressToken":"t"`, `"t"`, progress + result + "\n\n",
			map[string]bool{"a": true, "b": false}},
		{"unrestricted", "key-all", "2025-03-26", ``, "", result, nil},
		{"invalid token", "key-all", "2025-03-26", `"progressToken":{}`, "", result, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := direct(h, "POST", request("1", "tools/call", row.meta),
				header{"X-API-Key": row.key, "MCP-Protocol-Version": row.version})
			if got := w.Body.String(); got != row.body {
				t.Errorf("got %q, want %q", got, row.body)
			}
			var x *edge.Exchange
			select {
			case x = <-served:
			case <-time.After(20 * time.Second):
				t.Fatal("waited 20 s for the exchange")
			}
			if string(x.ProgressToken) != row.token || x.Version != protocol.Version(row.version) {
				t.Errorf("got token %s and version %s, want %s and %s", x.ProgressToken, x.Version, row.token, row.version)
			}
			if (x.Visible == nil) != (row.visible == nil) {
				t.Fatalf("visible: got nil %t, want %t", x.Visible == nil, row.visible == nil)
			}
			for server, want := range row.visible {
				if got := x.Visible(server, ""); got != want {
					t.Errorf("server %s: got visible %t, want %t", server, got, want)
				}
			}
			if x.Notify(jsonrpc.Notification("notifications/message", nil)) {
				t.Error("after the response: got a notification sent, want it dropped")
			}
		})
	}
}

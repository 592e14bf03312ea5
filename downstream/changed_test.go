package downstream_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// Changed goes over every server at first, and later names those that are gone.
func TestChangedNamesServersThatAreGone(t *testing.T) {
	o := pipes([]string{"a", "b"}, newServer(), newServer(tool("x"), tool("y")))
	m := start(t, o)
	changed := func(c, since *downstream.Catalog) (all []string) {
		for server, tools := range c.Changed(since) {
			all = append(all, fmt.Sprint(server, len(tools)))
		}
		slices.Sort(all)
		return all
	}
	first := catalogOf(t, m)
	if got := changed(first, nil); !slices.Equal(got, []string{"a1", "b2"}) {
		t.Errorf("at first: got %v, want both servers with their tools", got)
	}
	m.Apply(o.Servers[:1])
	if got := changed(catalogOf(t, m), first); !slices.Contains(got, "b0") {
		t.Errorf("without b: got %v, want b without tools", got)
	}
}

// Progress that a server reports while a client is asked does not begin the limit of the call anew: it stands still.
func TestProgressWhileAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(tool("ask"))
		m := start(t, pipes([]string{"a"}, s))
		defer m.Stop()
		r := request("a", "ask")
		r.Step, r.Client = true, "c"
		r.Ask = func(_ context.Context, _ downstream.ServerRequest) (result, err []byte) {
			token := jsonrpc.Get([]byte(s.params("tools/call")[0]), "_meta", "progressToken")
			s.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":` + string(token) + `}}`)
			time.Sleep(9 * time.Minute)
			return []byte(`"well"`), nil
		}
		if reply, err := m.Call(t.Context(), r); err != nil || !strings.Contains(resultText(reply), "well") {
			t.Errorf("got %s, %v, want the answer of the client", resultText(reply), err)
		}
	})
}

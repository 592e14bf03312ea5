package server

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// The state of clients is indexed in several ways; nothing is left of a client in any of them when it has gone.
func TestClients_ForgetLeavesNothing(t *testing.T) {
	cs := NewClients()
	for i := range 10 {
		id := fmt.Sprint("client ", i)
		if i%2 == 0 {
			cs.Enter(id, []byte(`{"protocolVersion":"2025-11-25"}`))
		}
		for n := range 20 {
			of := Resource{fmt.Sprint("server ", n%3), fmt.Sprint("x:", n)}
			if _, err := cs.Subscribe(of, id, "", []byte(`{"uri":"x"}`), nil); err != nil {
				t.Fatal(err)
			}
			if n%4 == 0 {
				cs.Unsubscribe(of, id, false)
			}
		}
		undo, err := cs.SetLevel("server 9", id, []byte(`{"level":"debug"}`))
		if err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			undo()
		}
	}
	passing := Resource{"server 0", "x:0"} // of a client without a session, which never leaves
	if _, err := cs.Subscribe(passing, "passing", "", []byte(`{"uri":"x"}`), nil); err != nil {
		t.Fatal(err)
	}
	cs.Unsubscribe(passing, "passing", false)
	for i := range 10 {
		id := fmt.Sprint("client ", i)
		if subscribed, _ := cs.Leave(id); len(subscribed) != 15 {
			t.Errorf("%s: got %d subscriptions, want 15", id, len(subscribed))
		}
		cs.Forget(id)
	}
	if len(cs.byID)+len(cs.subscribers)+len(cs.resources) > 0 {
		t.Errorf("got clients %v and resources %v, want none", cs.byID, cs.subscribers)
	}
}

// The bytes of subscriptions and levels are bounded, and come back with what is given up.
func TestClients_BoundsBytes(t *testing.T) {
	cs := NewClients()
	large := []byte(`{"uri":"` + strings.Repeat("x", maxClientBytes/4) + `"}`)
	uri := func(n int) Resource { return Resource{"a", fmt.Sprint("x:", n)} }
	for n := range 3 {
		if _, err := cs.Subscribe(uri(n), "c", "", large, nil); err != nil {
			t.Fatal(err)
		}
	}
	_, err := cs.Subscribe(uri(3), "c", "", large, nil)
	if err == nil || !strings.Contains(err.Error(), "unsubscribe") {
		t.Errorf("a fourth: got %v, want it refused", err)
	}
	if _, err := cs.SetLevel("a", "c", large); err == nil {
		t.Error("a level of that size: got no error")
	}
	if _, err := cs.Subscribe(uri(3), "other", "", large, nil); err != nil {
		t.Errorf("another client: got %v", err)
	}
	cs.Unsubscribe(uri(0), "c", false)
	if _, err := cs.Subscribe(uri(3), "c", "", large, nil); err != nil {
		t.Errorf("after one was ended: got %v", err)
	}
	for n := range 4 {
		cs.Unsubscribe(uri(n), "c", false)
	}
	if c := cs.byID["c"]; c != nil {
		t.Errorf("got %d bytes and %d subscriptions, want the client forgotten", c.bytes, len(c.subscriptions))
	}
}

// A session is restored from the record of its own client, however many others there are.
func TestClients_ReplayIsOfOneClient(t *testing.T) {
	cs := NewClients()
	for i := range 3 {
		id := fmt.Sprint("client ", i)
		for n := range i + 1 {
			if _, err := cs.Subscribe(Resource{"a", fmt.Sprint("x:", n)}, id, "", []byte(id), nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := cs.SetLevel("a", id, []byte(id)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		id := fmt.Sprint("client ", i)
		calls := cs.replay("a", id, true)
		if len(calls) != i+2 {
			t.Errorf("%s: got %d calls, want its level and %d subscriptions", id, len(calls), i+1)
		}
		for _, call := range calls {
			if string(call.Params) != id {
				t.Errorf("%s: got params of %s", id, call.Params)
			}
		}
	}
	shared := cs.replay("a", "", false)
	if last := shared[len(shared)-1]; len(shared) != 4 || last.Method != "logging/setLevel" || string(last.Params) != "client 2" {
		t.Errorf("shared: got %d calls and %s %s at the end, want three resources and the latest level", len(shared), last.Method, last.Params)
	}
	if got := cs.Interested("a"); len(got) != 3 || cs.Interested("b") != nil {
		t.Errorf("got interested %v, want the three clients", got)
	}
}

// A subscription that its caller has no room for is refused and leaves nothing.
func TestClients_ChargeSubscriptions(t *testing.T) {
	cs := NewClients()
	held := 0
	hold := func(n int) (func(), bool) {
		if held += n; held > 100 {
			held -= n
			return nil, false
		}
		return func() { held -= n }, true
	}
	params := []byte(`{"future":"` + strings.Repeat("x", 60) + `"}`)
	undo, err := cs.Subscribe(Resource{"a", "x:1"}, "c", "", params, hold)
	if err != nil || held < len(params) {
		t.Fatalf("got %v and %d bytes, want it charged", err, held)
	}
	var f *link.Failure
	if _, err := cs.Subscribe(Resource{"a", "x:2"}, "c", "", params, hold); !errors.As(err, &f) || f.Reason != reason.Overloaded {
		t.Errorf("beyond what the caller may hold: got %v, want overloaded", err)
	}
	undo()
	if held != 0 || len(cs.byID)+len(cs.subscribers)+len(cs.resources) > 0 {
		t.Errorf("got %d bytes, clients %v and resources %v, want none", held, cs.byID, cs.subscribers)
	}
}

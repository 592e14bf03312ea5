package downstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// The state of clients is indexed in several ways; nothing is left of a client in any of them when it has gone.
func TestClients_ForgetLeavesNothing(t *testing.T) {
	cs := newClients()
	for i := range 10 {
		id := fmt.Sprint("client ", i)
		if i%2 == 0 {
			cs.enter(id, []byte(`{"protocolVersion":"2025-11-25"}`))
		}
		for n := range 20 {
			of := resource{fmt.Sprint("server ", n%3), fmt.Sprint("x:", n)}
			if _, err := cs.subscribe(of, id, true, []byte(`{"uri":"x"}`), nil); err != nil {
				t.Fatal(err)
			}
			if n%4 == 0 {
				cs.unsubscribe(of, id, false)
			}
		}
		undo, err := cs.setLevel("server 9", id, []byte(`{"level":"debug"}`))
		if err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			undo()
		}
	}
	for i := range 10 {
		id := fmt.Sprint("client ", i)
		if _, subscribed, _ := cs.leave(id); len(subscribed) != 15 {
			t.Errorf("%s: got %d subscriptions, want 15", id, len(subscribed))
		}
		cs.forget(id)
	}
	if len(cs.byID)+len(cs.interest) > 0 {
		t.Errorf("got clients %v and servers %v, want none", cs.byID, cs.interest)
	}
}

// A client that never entered is forgotten with its last subscription.
func TestClients_NotEntered(t *testing.T) {
	cs := newClients()
	of := resource{"a", "x:1"}
	if _, err := cs.subscribe(of, "c", true, []byte(`{"uri":"x:1"}`), nil); err != nil {
		t.Fatal(err)
	}
	cs.unsubscribe(of, "c", false)
	if len(cs.byID)+len(cs.interest) > 0 {
		t.Errorf("got clients %v and servers %v, want none", cs.byID, cs.interest)
	}
}

// The bytes of subscriptions and levels are bounded, and come back with what is given up.
func TestClients_BoundsBytes(t *testing.T) {
	cs := newClients()
	large := []byte(`{"uri":"` + strings.Repeat("x", maxRecord/4) + `"}`)
	uri := func(n int) resource { return resource{"a", fmt.Sprint("x:", n)} }
	for n := range 3 {
		if _, err := cs.subscribe(uri(n), "c", false, large, nil); err != nil {
			t.Fatal(err)
		}
	}
	_, err := cs.subscribe(uri(3), "c", false, large, nil)
	if err == nil || !strings.Contains(err.Error(), "unsubscribe") {
		t.Errorf("a fourth: got %v, want it refused", err)
	}
	if _, err := cs.setLevel("a", "c", large); err == nil {
		t.Error("a level of that size: got no error")
	}
	if _, err := cs.subscribe(uri(3), "other", false, large, nil); err != nil {
		t.Errorf("another client: got %v", err)
	}
	cs.unsubscribe(uri(0), "c", false)
	if _, err := cs.subscribe(uri(3), "c", false, large, nil); err != nil {
		t.Errorf("after one was ended: got %v", err)
	}
	for n := range 4 {
		cs.unsubscribe(uri(n), "c", false)
	}
	if c := cs.byID["c"]; c != nil {
		t.Errorf("got %d bytes and %d subscriptions, want the client forgotten", c.bytes, c.subscriptions)
	}
}

// Params of initialize are kept whole, or trimmed to what the protocol defines.
func TestIntroduction(t *testing.T) {
	const small = `{"protocolVersion":"2025-11-25","future":9007199254740993,"capabilities":{}}`
	if got := keptInitialize([]byte(small)); string(got) != small {
		t.Errorf("got %s, want %s", got, small)
	}
	large := `{"future":"` + strings.Repeat("x", maxInitialize) + `","clientInfo":{"name":"c"},"capabilities":{"x":1},"protocolVersion":"2025-11-25"}`
	var got map[string]any
	if err := json.Unmarshal(keptInitialize([]byte(large)), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"clientInfo": map[string]any{"name": "c"}, "capabilities": map[string]any{"x": 1.0}, "protocolVersion": "2025-11-25"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A record survives being written and read: another process can take the client over with it.
func TestRecord_IsSerialisable(t *testing.T) {
	cs := newClients()
	cs.enter("c", []byte(`{"protocolVersion":"2025-11-25"}`))
	cs.initialized("c")
	for _, server := range []string{"a", "b"} {
		if _, err := cs.setLevel(server, "c", []byte(`{"level":"debug"}`)); err != nil {
			t.Fatal(err)
		}
		if _, err := cs.subscribe(resource{server, "x:1"}, "c", false, []byte(`{"uri":"x:1","future":1}`), nil); err != nil {
			t.Fatal(err)
		}
	}
	want := cs.byID["c"].record
	raw, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got record
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// A session is restored from the record of its own client, however many others there are.
func TestClients_ReplayIsOfOneClient(t *testing.T) {
	cs := newClients()
	for i := range 3 {
		id := fmt.Sprint("client ", i)
		for n := range i + 1 {
			if _, err := cs.subscribe(resource{"a", fmt.Sprint("x:", n)}, id, false, []byte(id), nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := cs.setLevel("a", id, []byte(id)); err != nil {
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
	if got := cs.interested("a"); len(got) != 3 || cs.interested("b") != nil {
		t.Errorf("got interested %v, want the three clients", got)
	}
}

// A subscription that its caller has no room for is refused and leaves nothing.
func TestClients_ChargeSubscriptions(t *testing.T) {
	cs := newClients()
	held := 0
	hold := func(n int) (func(), bool) {
		if held += n; held > 100 {
			held -= n
			return nil, false
		}
		return func() { held -= n }, true
	}
	params := []byte(`{"future":"` + strings.Repeat("x", 60) + `"}`)
	undo, err := cs.subscribe(resource{"a", "x:1"}, "c", false, params, hold)
	if err != nil || held < len(params) {
		t.Fatalf("got %v and %d bytes, want it charged", err, held)
	}
	var f *link.Failure
	if _, err := cs.subscribe(resource{"a", "x:2"}, "c", false, params, hold); !errors.As(err, &f) || f.Reason != reason.Overloaded {
		t.Errorf("beyond what the caller may hold: got %v, want overloaded", err)
	}
	undo()
	if held != 0 || len(cs.byID)+len(cs.interest) > 0 {
		t.Errorf("got %d bytes, clients %v and servers %v, want none", held, cs.byID, cs.interest)
	}
}

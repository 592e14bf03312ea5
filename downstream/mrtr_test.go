package downstream_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// modern is a server of 2026-07-28 with the tools named.
func modern(tools ...string) *server {
	s := newServer(tools...)
	s.modern = true
	return s
}

// accepting answers every question after some time.
func accepting(after time.Duration) downstream.Asker {
	return func(_ context.Context, q downstream.ServerRequest) (result, err []byte) {
		time.Sleep(after)
		return []byte(`{"action":"accept","of":"` + q.Method + `"}`), nil
	}
}

// While a modern server waits for input, the time of the call stands still. The call goes on as the same attempt.
func TestInputStopsTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := modern(tool("form"))
		m := start(t, pipes([]string{"a"}, s))
		r := request("a", "form")
		r.Step, r.Attempts, r.Ask = true, new(int), accepting(9*time.Minute)
		reply, err := m.Call(t.Context(), r)
		if want := `got {"action":"accept","of":"elicitation/create"}`; err != nil || resultText(reply) != want {
			t.Errorf("got %s, %v, want %s", resultText(reply), err, want)
		}
		if *r.Attempts != 1 || s.count("tools/call") != 2 {
			t.Errorf("got %d attempts and %d requests at the server, want 1 and 2", *r.Attempts, s.count("tools/call"))
		}
		m.Stop()
	})
}

// The continuation of a call is repeated under the same rules as a call: not where it may have done its work.
func TestLostContinuation(t *testing.T) {
	for _, row := range []struct {
		annotations, reason string
		calls               int
	}{
		{"", reason.OutcomeUnknown, 2},
		{readOnly, reason.Disconnected, 4},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := modern(tool("form then die", row.annotations))
			m := start(t, pipes([]string{"a"}, s))
			if _, err := m.Catalog(t.Context()); err != nil {
				t.Fatal(err)
			}
			r := request("a", "form then die")
			r.Ask = accepting(0)
			_, err := m.Call(t.Context(), r)
			if f := failureOf(err); f.Reason != row.reason || s.count("tools/call") != row.calls {
				t.Errorf("annotations %q: got %v after %d calls, want %s after %d", row.annotations, err, s.count("tools/call"), row.reason, row.calls)
			}
			m.Stop()
		})
	}
}

// A result of another kind than the known ones is no success, nor is one that is no object.
func TestUnknownResultType(t *testing.T) {
	const object = "its result is not an object"
	for result, want := range map[string][2]string{ // for a client with a handshake; for one that reads the type itself
		`{"resultType":"riddle","content":[]}`: {`unknown resultType "riddle"`},
		`{"resultType":7}`:                     {"unknown resultType 7", "its resultType is not a string"},
		`{"resultType":{}}`:                    {"unknown resultType {}", "its resultType is not a string"},
		`{"resultType":"task"}`:                {`unknown resultType "task"`, "with a task, which its client does not take"},
		`[]`:                                   {object, object}, `7`: {object, object}, `"x"`: {object, object}, `null`: {object, object},
	} {
		m := start(t, pipes([]string{"a"}, modern(tool("raw"))))
		for i, want := range want {
			r := request("a", "raw")
			r.Modern = i == 1
			r.Params = []byte(`{"name":"raw","result":` + result + `}`)
			reply, err := m.Call(t.Context(), r)
			if f := failureOf(err); want != "" && (f.Reason != reason.Protocol || !strings.Contains(f.Message, want)) || want == "" && string(reply.Result) != result {
				t.Errorf("%s, read by the client: %t: got %s, %v, want a failure that says %q", result, r.Modern, reply.Result, err, want)
			}
		}
	}
}

// While the client is asked, other calls have the place at the server.
func TestInputHoldsNoPlace(t *testing.T) {
	s := modern(tool("form"), tool("echo"))
	o := pipes([]string{"a"}, s)
	o.Servers[0].MaxParallel = 1
	m := start(t, o)
	r := request("a", "form")
	r.Ask = func(ctx context.Context, _ downstream.ServerRequest) (result, err []byte) {
		if _, err := m.Call(ctx, request("a", "echo")); err != nil {
			t.Errorf("another call: got %v, want its result", err)
		}
		return []byte(`{"action":"accept"}`), nil
	}
	if _, err := m.Call(t.Context(), r); err != nil {
		t.Errorf("got %v, want the result", err)
	}
}

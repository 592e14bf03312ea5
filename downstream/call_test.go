package downstream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// Callers with the same token never see each other's progress, and the server sees tokens of our own.
func TestProgressReachesItsCaller(t *testing.T) {
	s := newServer(tool("progress"))
	m := start(t, pipes([]string{"a"}, s))
	const callers = 20
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			var got []string
			tokens := map[string]bool{}
			r := request("a", "progress")
			r.Client = fmt.Sprint("c", i)
			r.Params = []byte(`{"name":"progress","_meta":{"progressToken":"same","x":1}}`)
			r.Progress = func(p []byte) {
				got = append(got, string(jsonrpc.Get(p, "progress")))
				tokens[string(jsonrpc.Get(p, "progressToken"))] = true
			}
			if reply, err := m.Call(t.Context(), r); err != nil || resultText(reply) != "done" {
				t.Errorf("got %s, %v", reply.Result, err)
			}
			if want := []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}; !slices.Equal(got, want) || len(tokens) != 1 || tokens[`"same"`] {
				t.Errorf("got progress %v under tokens %v, want %v under one token that is not the client's", got, tokens, want)
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, p := range s.params("tools/call") {
		seen[string(jsonrpc.Get([]byte(p), "_meta", "progressToken"))] = true
		if string(jsonrpc.Get([]byte(p), "_meta", "x")) != "1" {
			t.Errorf("got params %s, want the rest of _meta to stay", p)
		}
	}
	if len(seen) != callers {
		t.Errorf("the server saw %d tokens, want %d", len(seen), callers)
	}
}

func TestTimeouts(t *testing.T) {
	for _, tc := range []struct {
		name       string
		tool, args string
		step       bool
		own        time.Duration
		after      time.Duration
		text       string
	}{
		{"a silent step", "hang", "{}", true, 0, 30 * time.Second, "Tool execution timed out after 30s"},
		{"a silent call of a client", "hang", "{}", false, 0, 10 * time.Minute, "Tool execution timed out after 600s"},
		{"the server's own limit, step", "hang", "{}", true, 1500 * time.Millisecond, 1500 * time.Millisecond, "Tool execution timed out after 1.5s"},
		{"the server's own limit, client", "hang", "{}", false, 45 * time.Second, 45 * time.Second, "Tool execution timed out after 45s"},
		{"progress begins it anew", "slow", `{"rounds":20}`, true, 0, 400 * time.Second, ""},
		{"silence after progress", "slow", `{"rounds":1}`, true, 10 * time.Second, 10 * time.Second, "Tool execution timed out after 10s"},
		{"the cap", "slow", `{"rounds":100}`, true, 0, 10 * time.Minute, "Tool execution timed out after 600s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(tool(tc.tool))
				o := pipes([]string{"a"}, s)
				o.Servers[0].Timeout = tc.own
				m := start(t, o)
				r := request("a", tc.tool)
				r.Params = []byte(`{"name":"` + tc.tool + `","arguments":` + tc.args + `}`)
				r.Step = tc.step
				began := time.Now()
				_, err := m.Call(t.Context(), r)
				if took := time.Since(began); took != tc.after {
					t.Errorf("it took %v, want %v", took, tc.after)
				}
				if tc.text == "" {
					if err != nil {
						t.Errorf("got %v", err)
					}
				} else if f := failureOf(err); f.Reason != reason.Timeout || f.Message != tc.text {
					t.Errorf("got %v, want a timeout with %q", err, tc.text)
				}
				synctest.Wait()
				if got := s.params("notifications/cancelled"); (len(got) == 1) != (tc.text != "") || len(got) == 1 && !strings.Contains(got[0], tc.text) {
					t.Errorf("the server was told %v, want the reason", got)
				}
				if n := s.count("tools/call"); n != 1 {
					t.Errorf("got %d calls, want 1", n)
				}
				m.Stop()
			})
		})
	}
}

// While the client is asked, the limit of the call stands still; the time for its answers has the limit
// tool_timeout_max, however many they are.
func TestAskingStopsTheClock(t *testing.T) {
	for _, tc := range []struct {
		name  string
		takes time.Duration // an answer of the client
		asks  int
		ended time.Duration // 0 = with the answers
	}{
		{"a slow person", 9 * time.Minute, 1, 0},
		{"several requests", 4 * time.Minute, 2, 0},
		{"nobody answers", time.Hour, 1, 10 * time.Minute},
		{"each answer is in time, but not all", 4 * time.Minute, 3, 10 * time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(tool("ask"))
				m := start(t, pipes([]string{"a"}, s))
				r := request("a", "ask")
				r.Params = fmt.Appendf(nil, `{"name":"ask","arguments":{"times":%d}}`, tc.asks)
				r.Step, r.Client = true, "c"
				told := 0
				r.Ask = func(ctx context.Context, q downstream.ServerRequest) (result, err []byte) {
					// Progress does not restart a limit that stands still.
					token := jsonrpc.Get([]byte(s.params("tools/call")[0]), "_meta", "progressToken")
					s.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":` + string(token) + `}}`)
					select {
					case <-time.After(tc.takes):
					case <-ctx.Done():
						told++
					}
					return []byte(`"` + q.Method + `"`), nil
				}
				began := time.Now()
				reply, err := m.Call(t.Context(), r)
				synctest.Wait()
				switch f := failureOf(err); {
				case tc.ended == 0:
					if err != nil || resultText(reply) != `"sampling/createMessage"` {
						t.Errorf("got %s, %v", resultText(reply), err)
					}
				case f.Reason != reason.Timeout || !strings.Contains(f.Message, "did not answer") || time.Since(began) != tc.ended || told != 1:
					t.Errorf("got %v after %v, told the client %d times; want a timeout after %v, told once", err, time.Since(began), told, tc.ended)
				}
				m.Stop()
			})
		})
	}
}

// While a client is asked, others use the call's place. It gets one back before calls that have not begun, and is
// never refused.
func TestAskingGivesUpThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(tool("ask"), tool("wait"))
		o := pipes([]string{"a"}, s)
		o.Servers[0].MaxParallel = 1
		m := start(t, o)
		defer m.Stop()
		var mu sync.Mutex
		var order []string
		var wg sync.WaitGroup
		call := func(caller, name string, ask downstream.Asker) {
			wg.Go(func() {
				r := request("a", name)
				r.Caller, r.Client, r.Ask = caller, caller, ask
				if _, err := m.Call(t.Context(), r); err != nil {
					t.Errorf("%s: got %v", caller, err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, caller)
			})
			synctest.Wait()
		}
		answer := make(chan struct{})
		call("ann", "ask", func(context.Context, downstream.ServerRequest) (result, err []byte) {
			<-answer
			return []byte("1"), nil
		})
		call("bob", "wait", nil)
		call("cid", "wait", nil)
		if st := m.Status()["a"]; st.InFlight != 2 || st.Queued != 1 {
			t.Errorf("got %d in flight and %d waiting, want 2 and 1", st.InFlight, st.Queued)
		}
		close(answer)
		synctest.Wait() // all places are taken
		s.gate <- struct{}{}
		synctest.Wait()
		s.gate <- struct{}{}
		wg.Wait()
		// bob's place is free before his call has returned, so that ann's may return first.
		if len(order) != 3 || order[2] != "cid" {
			t.Errorf("got the order %v, want cid last", order)
		}
	})
}

// cancellation is a cause that knows what the client said.
type cancellation struct{ params string }

func (c cancellation) Error() string        { return "cancelled by the client" }
func (c cancellation) CancelParams() []byte { return []byte(c.params) }

func TestCancel(t *testing.T) {
	for _, tc := range []struct {
		name  string
		cause error
		want  string // in the params; empty = no reason
	}{
		{"with the client's params", cancellation{`{"requestId":"theirs","reason":"changed my mind","x":9007199254740993}`}, `"reason":"changed my mind","x":9007199254740993`},
		{"with a cause", errors.New("enough"), `"reason":"enough"`},
		{"without a cause", context.Canceled, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				m := start(t, pipes([]string{"a"}, s))
				ctx, cancel := context.WithCancelCause(t.Context())
				done := make(chan error, 1)
				go func() { _, err := m.Call(ctx, request("a", "hang")); done <- err }()
				synctest.Wait()
				cancel(tc.cause)
				if err := <-done; err != tc.cause {
					t.Errorf("got %v, want the cause", err)
				}
				synctest.Wait()
				id := ""
				for _, received := range s.received {
					if received.Method == "tools/call" {
						id = string(received.ID)
					}
				}
				got := s.params("notifications/cancelled")
				if len(got) != 1 || !strings.Contains(got[0], tc.want) || !strings.Contains(got[0], `"requestId":`+id) || strings.Contains(got[0], "reason") != (tc.want != "") {
					t.Errorf("the server was told %v, want one with %s of request %s", got, tc.want, id)
				}
				m.Stop()
			})
		})
	}
}

// A call that waits for its server to connect, or for its turn to be written, never starts once cancelled.
func TestCancelBeforeItStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.dial = func(ctx context.Context) error {
			select {
			case <-time.After(10 * time.Second):
			case <-ctx.Done():
			}
			return nil
		}
		m := start(t, pipes([]string{"a"}, s))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := m.Call(ctx, request("a", "echo")); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Minute)
		if n, c := s.count("tools/call"), s.count("notifications/cancelled"); n+c > 0 {
			t.Errorf("the server saw %d calls and %d cancellations, want none", n, c)
		}
		m.Stop()
	})
}

func TestRetry(t *testing.T) {
	dies := func(more string) []string { return []string{tool("die", more)} }
	no := false
	for _, tc := range []struct {
		name     string
		tools    []string
		mistrust bool
		dial     func(n int) error // of the nth connection
		unlisted bool
		call     string
		reason   string // "" succeeds
		attempts int
		least    time.Duration
		most     time.Duration
		state    string
	}{
		{name: "nobody there", dial: func(int) error { return errors.New("no") }, call: "echo", unlisted: true,
			reason: reason.Unavailable, attempts: 3, least: 2700 * time.Millisecond, most: 3300 * time.Millisecond, state: downstream.StateDisconnected},
		{name: "there at last", dial: func(n int) error {
			if n < 3 {
				return errors.New("not yet")
			}
			return nil
		}, call: "echo", unlisted: true, attempts: 3, least: 2700 * time.Millisecond, most: 3300 * time.Millisecond, state: downstream.StateConnected},
		{name: "lost, unknown tool", tools: dies(""), call: "die", reason: reason.OutcomeUnknown, attempts: 1},
		{name: "lost, never listed", tools: dies(readOnly), unlisted: true, call: "die", reason: reason.OutcomeUnknown, attempts: 1},
		{name: "lost, read only", tools: dies(readOnly), call: "die", reason: reason.Disconnected, attempts: 3, least: 2700 * time.Millisecond, most: 3300 * time.Millisecond},
		{name: "lost, idempotent", tools: dies(`,"annotations":{"idempotentHint":true,"destructiveHint":true}`), call: "die", reason: reason.Disconnected, attempts: 3, least: 2700 * time.Millisecond, most: 3300 * time.Millisecond},
		{name: "lost, read only but not trusted", tools: dies(readOnly), mistrust: true, call: "die", reason: reason.OutcomeUnknown, attempts: 1},
		{name: "the server's answer stands", tools: []string{tool("refuse", readOnly)}, call: "refuse", attempts: 1, state: downstream.StateConnected},
		{name: "the tool's failure stands", tools: []string{tool("fail", readOnly)}, call: "fail", attempts: 1, state: downstream.StateConnected},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(tc.tools...)
				if tc.dial != nil {
					s.dial = func(context.Context) error { return tc.dial(s.connections()) }
				}
				o := pipes([]string{"a"}, s)
				if tc.mistrust {
					o.Servers[0].TrustAnnotations = &no
				}
				observed := make(chan downstream.Observation, 1)
				o.Observe = func(ob downstream.Observation) { observed <- ob }
				m := downstream.New(o) // not started: nobody else connects
				if !tc.unlisted {
					catalogOf(t, m)
				}
				attempts := 0
				r := request("a", tc.call)
				r.Attempts = &attempts
				began := time.Now()
				reply, err := m.Call(t.Context(), r)
				took := time.Since(began)
				if got := failureOf(err).Reason; got != tc.reason || (err == nil) != (tc.reason == "") {
					t.Errorf("got %v, %s; want reason %q", err, resultText(reply), tc.reason)
				}
				if attempts != tc.attempts || took < tc.least || took > tc.most {
					t.Errorf("got %d attempts in %v, want %d in %v to %v", attempts, took, tc.attempts, tc.least, tc.most)
				}
				if got := m.Status()["a"].Status; tc.state != "" && got != tc.state {
					t.Errorf("got state %s, want %s", got, tc.state)
				}
				if ob := <-observed; ob.Attempts != tc.attempts || ob.Server != "a" || ob.Duration != took {
					t.Errorf("got observation %+v", ob)
				}
				if tc.reason != "" {
					if last := m.Status()["a"].LastError; last == nil || last.Reason != tc.reason {
						t.Errorf("got last error %+v, want %s", last, tc.reason)
					}
				}
				m.Stop()
			})
		})
	}
}

// Sent is called once, also where the call is made several times. The caller's request is not changed.
func TestSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := start(t, pipes([]string{"a"}, newServer(tool("die", readOnly))))
		catalogOf(t, m)
		r := request("a", "die")
		sent := 0
		r.Sent = func() { sent++ }
		m.Call(t.Context(), r)
		if sent != 1 || r.Attempts != nil || r.Progress != nil {
			t.Errorf("Sent was called %d times, want once; the request is %+v", sent, r)
		}
		m.Stop()
	})
}

func TestServerRequestsReachWhoCausedThem(t *testing.T) {
	call := func(ctx context.Context, m *downstream.Manager, tool, client string) string {
		r := request("a", tool)
		if r.Client = client; client != "" {
			r.Ask = func(context.Context, downstream.ServerRequest) (result, err []byte) {
				return []byte(`"` + client + `"`), nil
			}
		}
		reply, err := m.Call(ctx, r)
		if err != nil {
			return err.Error()
		}
		return resultText(reply)
	}
	for _, tc := range []struct {
		name, client string
		beside       []string // clients with calls in flight, empty for the router itself
		want         string
	}{
		{"one client", "c1", nil, `"c1"`},
		{"two clients on a shared session", "c1", []string{"c2"}, "error -32601"},
		{"the router's own calls do not count", "c1", []string{""}, `"c1"`},
		{"nobody", "", nil, "error -32601"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := start(t, pipes([]string{"a"}, newServer()))
				defer m.Stop()
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				for _, other := range tc.beside {
					wg.Go(func() { call(ctx, m, "hang", other) })
				}
				synctest.Wait()
				if got := call(t.Context(), m, "ask", tc.client); got != tc.want {
					t.Errorf("got %s, want %s", got, tc.want)
				}
				cancel()
				wg.Wait()
				if got := call(t.Context(), m, "ask", "c1"); got != `"c1"` {
					t.Errorf("alone: got %s, want the answer of the client", got)
				}
			})
		})
	}
	t.Run("each on its own stream over HTTP", func(t *testing.T) {
		m := start(t, downstream.Options{Servers: []downstream.ServerConfig{serveHTTP(t, newServer()).config("a")}})
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				client := fmt.Sprint("c", i)
				if got := call(t.Context(), m, "ask", client); got != `"`+client+`"` {
					t.Errorf("got %s, want %s", got, client)
				}
			})
		}
		wg.Wait()
	})
}

// Failures say on the wire what the contract promises, in both eras.
func TestFailed(t *testing.T) {
	f := &link.Failure{Server: "a\"b", Reason: reason.Timeout, Message: "m"}
	for _, tc := range []struct {
		err    error
		modern bool
		code   int
		data   string
	}{
		{f, false, -32000, `{"server":"a\"b","reason":"timeout","retryable":true}`},
		{f, true, -32603, `{"server":"a\"b","reason":"timeout","retryable":true}`},
		{fmt.Errorf("x: %w", &link.Failure{Server: "s", Reason: reason.OutcomeUnknown}), false, -32000, `{"server":"s","reason":"outcome_unknown","retryable":false}`},
		{&link.Failure{Server: "s", Reason: reason.Overloaded}, false, -32000, `{"server":"s","reason":"overloaded","retryable":true}`},
		{&downstream.UnknownError{What: "tool", Name: "x"}, true, -32602, ""},
		{errors.New("odd"), false, -32603, ""},
	} {
		if got := downstream.Failed(tc.err, tc.modern); got.Code != tc.code || string(got.Data) != tc.data {
			t.Errorf("Failed(%v): got %d %s, want %d %s", tc.err, got.Code, got.Data, tc.code, tc.data)
		}
	}
}

func TestValidate(t *testing.T) {
	m := start(t, pipes([]string{"a"}, newServer(`{"name":"n","inputSchema":{"type":"object","required":["x"]}}`)))
	for args, fine := range map[string]bool{`{}`: false, `{"x":1}`: true} {
		if bad, err := m.Validate(t.Context(), "a", "n", []byte(args)); err != nil || (bad == nil) != fine {
			t.Errorf("Validate(%s): got %v, %v", args, bad, err)
		}
	}
	if bad, err := m.Validate(t.Context(), "a", "unknown", []byte(`{}`)); bad != nil || err != nil {
		t.Errorf("got %v, %v; want nothing to be known of an unknown tool", bad, err)
	}
}

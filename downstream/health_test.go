package downstream_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

func TestPingEveryInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.ping = func(reply func(result, err string)) { reply("", `{"code":-32601,"message":"unknown"}`) }
		m := start(t, pipes([]string{"a"}, s))
		time.Sleep(30*time.Minute + time.Second)
		if n := s.count("ping"); n < 60 || n > 61 {
			t.Errorf("got %d pings in 30 minutes, want one each 30 s", n)
		}
		st := m.Status()["a"]
		if st.Status != downstream.StateConnected || s.connections() != 1 || st.LastError != nil {
			t.Errorf("got %+v after %d connections, want an error answer to count as alive", st, s.connections())
		}
		if st.LastHealthy == nil || time.Since(*st.LastHealthy) > 31*time.Second {
			t.Errorf("got last healthy %v", st.LastHealthy)
		}
		if n := s.count("tools/list"); n > 0 {
			t.Errorf("got %d lists, want none", n)
		}
		m.Stop()
	})
}

func TestUnhealthyServerIsConnectedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var sick atomic.Bool
		s.ping = func(reply func(result, err string)) {
			if !sick.Load() {
				reply("{}", "")
			}
		}
		s.dial = func(ctx context.Context) error {
			if sick.Load() {
				return errors.New("still sick")
			}
			return nil
		}
		var log mcptest.Log
		o := pipes([]string{"a"}, s)
		o.Logger = logger(&log)
		m := start(t, o)
		time.Sleep(time.Minute)
		sick.Store(true)
		began := time.Now()
		for m.Status()["a"].Status == downstream.StateConnected && time.Since(began) < time.Minute {
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(began); took > 35*time.Second+100*time.Millisecond {
			t.Errorf("it was noticed after %v, want an interval and the limit of a ping at most", took)
		}
		if !log.Has("level=WARN", "Health check failed for a: ", "no answer to ping within 5s") {
			t.Error("the log does not say that the health check failed")
		}
		if st := m.Status()["a"]; st.LastError == nil {
			t.Errorf("got %+v, want the last error", st)
		}
		before := s.connections()
		time.Sleep(2 * time.Minute)
		if n := s.connections() - before; n < 4 || n > 20 {
			t.Errorf("got %d connections in two minutes, want attempts with backoff", n)
		}
		if st := m.Status()["a"]; st.Status != downstream.StateDisconnected {
			t.Errorf("got state %s", st.Status)
		}
		sick.Store(false)
		time.Sleep(time.Minute)
		if st := m.Status()["a"]; st.Status != downstream.StateConnected {
			t.Errorf("got state %s once it is well", st.Status)
		}
		m.Stop()
	})
}

// A server that does not answer pings while it works keeps its calls.
func TestBusyServerIsDegraded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var busy atomic.Bool
		busy.Store(true)
		s.ping = func(reply func(result, err string)) {
			if !busy.Load() {
				reply("{}", "")
			}
		}
		m := start(t, pipes([]string{"a"}, s))
		r := request("a", "slow")
		r.Params = []byte(`{"name":"slow","arguments":{"rounds":5}}`)
		done := make(chan error, 1)
		go func() { _, err := m.Call(t.Context(), r); done <- err }()
		time.Sleep(50 * time.Second)
		if st := m.Status()["a"]; st.Status != downstream.StateDegraded || st.LastError == nil || st.LastError.Reason != reason.Timeout || st.InFlight != 1 {
			t.Errorf("got %+v, want degraded with a timeout and one call in flight", st)
		}
		busy.Store(false)
		if err := <-done; err != nil {
			t.Errorf("the call failed: %v", err)
		}
		time.Sleep(40 * time.Second)
		if st := m.Status()["a"]; st.Status != downstream.StateConnected || s.connections() != 1 {
			t.Errorf("got state %s after %d connections, want the first to be well again", st.Status, s.connections())
		}
		m.Stop()
	})
}

// A server that ends right after its handshake is started again with pauses that grow.
func TestCrashLoopHasPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.ping = func(func(result, err string)) {}
		m := downstream.New(pipes([]string{"a"}, s))
		stop := make(chan struct{})
		go func() {
			for {
				select {
				case <-time.After(20 * time.Millisecond):
					s.cut()
				case <-stop:
					return
				}
				m.Sessions().List(t.Context(), "a", "", "tools/list") // what clients ask for does not start it either
			}
		}()
		m.Start()
		time.Sleep(10 * time.Minute)
		close(stop)
		if s.connections() < 10 || s.connections() > 150 { // without pauses there are 30,000
			t.Errorf("got %d connections in 10 minutes", s.connections())
		}
		time.Sleep(time.Minute)
		if got := m.Status()["a"].Status; got != downstream.StateConnected {
			t.Errorf("got state %s once it stays, want connected", got)
		}
		m.Stop()
	})
}

// The state of a lost session is never "connected".
func TestStatusOfLostSession(t *testing.T) {
	s := newServer()
	m := downstream.New(pipes([]string{"a"}, s)) // nobody watches
	defer m.Stop()
	if _, err := m.Call(t.Context(), request("a", "echo")); err != nil {
		t.Fatal(err)
	}
	if st := m.Status()["a"]; st.Status != downstream.StateConnected || st.Sessions != 1 || st.ProtocolVersion != "2025-11-25" || st.Latency.P50 < 0 || st.Breaker != "closed" {
		t.Errorf("got %+v", st)
	}
	s.cut()
	mcptest.Eventually(t, "the loss is seen", func() bool {
		st := m.Status()["a"]
		return st.Status == downstream.StateDisconnected && st.Sessions == 0
	})
}

// A server is connected from the moment that its session is open, also before the session can be used.
func TestStatusOfNewSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		well := away(s)
		o := pipes([]string{"a"}, s)
		var m *downstream.Manager
		var seen atomic.Value
		o.OnReturn = func(string) { seen.Store(m.Status()["a"].Status) } // while it connects
		m = downstream.New(o)
		m.Start()
		synctest.Wait()
		catalogOf(t, m) // is answered without the server
		well.Store(true)
		time.Sleep(time.Minute)
		if got := seen.Load(); got != downstream.StateConnected {
			t.Errorf("got state %v while the session was opened, want connected", got)
		}
		m.Stop()
	})
}

// away has nobody find the server until well is set.
func away(s *server) (well *atomic.Bool) {
	well = new(atomic.Bool)
	s.dial = func(context.Context) error {
		if well.Load() {
			return nil
		}
		return errors.New("nobody there")
	}
	return well
}

// What clients ask of a server that hangs, lists among it, is answered at once, and sets the rate of neither
// attempts to connect nor warnings. Once it is back those who had to do without it are told.
func TestDeadServerIsTriedInItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var well atomic.Bool
		s.dial = func(ctx context.Context) error {
			if well.Load() {
				return nil
			}
			<-ctx.Done() // an attempt that is under way is not waited for either
			return ctx.Err()
		}
		var log mcptest.Log
		var returns atomic.Int64
		o := pipes([]string{"a"}, s)
		o.Servers[0].Session = downstream.SessionPerClient
		o.Logger = logger(&log)
		o.OnReturn = func(string) { returns.Add(1) }
		m := start(t, o)
		mcptest.Eventually(t, "the first attempt fails", func() bool { return m.Status()["a"].Status == downstream.StateDisconnected })
		synctest.Wait()
		since := m.Status()["a"].Since
		for i := range 1200 {
			client := "c" + strconv.Itoa(i)
			m.Sessions().Enter(client, hello(client))
			began := time.Now()
			_, hello := m.Sessions().Initialized(t.Context(), "a", client)
			_, list := m.Sessions().List(t.Context(), "a", client, "prompts/list")
			notify := m.Sessions().Notify(t.Context(), "a", client, "notifications/roots/list_changed", nil)
			catalogOf(t, m)
			for what, err := range map[string]error{"initialize": hello, "a list": list, "a notification": notify} {
				if got := failureOf(err).Reason; got != reason.Timeout {
					t.Fatalf("%s: got %v, want why the server cannot be reached", what, err)
				}
				m.Sessions().LeftOut("a", what, err)
			}
			if took := time.Since(began); took > 0 {
				t.Fatalf("got answers after %v, want them at once", took)
			}
			m.Sessions().Leave(client)
			time.Sleep(100 * time.Millisecond)
		}
		if n := s.connections(); n < 3 || n > 20 {
			t.Errorf("got %d connections in two minutes, want attempts with backoff", n)
		}
		if n := len(log.Lines("level=WARN", `"server is left out"`, "server=a")); n < 1 || n > 5 {
			t.Errorf("got %d warnings in two minutes, want one now and then", n)
		}
		if st := m.Status()["a"]; st.Status != downstream.StateDisconnected || !st.Since.Equal(since) {
			t.Errorf("got %s since %v, want it disconnected since %v", st.Status, st.Since, since)
		}
		well.Store(true)
		time.Sleep(time.Minute)
		if got := names(catalogOf(t, m).See(nil)); got != "echo@a" || returns.Load() != 1 {
			t.Errorf("got tools %q and %d times told that the server is back, want its tool and once", got, returns.Load())
		}
		m.Stop()
	})
}

// Lists look for a server that refuses connections more often than supervision does, but not at the rate of
// those who ask.
func TestListsFindAServerThatIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		well := away(s)
		m := start(t, pipes([]string{"a"}, s))
		time.Sleep(10 * time.Minute)
		before := s.connections()
		for range 1200 {
			catalogOf(t, m)
			time.Sleep(100 * time.Millisecond)
		}
		if n := s.connections() - before; n < 30 || n > 80 {
			t.Errorf("got %d connections in two minutes, want about one in two seconds", n)
		}
		well.Store(true)
		time.Sleep(2 * time.Second)
		if got := names(catalogOf(t, m).See(nil)); got != "echo@a" {
			t.Errorf("got tools %q after 2 s, want its tool", got)
		}
		m.Stop()
	})
}

// Sessions that clients wait on are not all opened again and again while their server cannot be reached.
func TestDeadServerIsNotTriedForEachClient(t *testing.T) {
	const clients = 50
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		well := away(s)
		well.Store(true)
		o := pipes([]string{"a"}, s)
		o.Servers[0].Session = downstream.SessionPerClient
		m := start(t, o)
		for i := range clients {
			client := "c" + strconv.Itoa(i)
			m.Sessions().Enter(client, hello(client))
			if _, err := m.Call(t.Context(), &downstream.Request{
				Server: "a", Method: "resources/subscribe", Params: []byte(`{"uri":"x:y"}`), Client: client, Proxied: true,
			}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		before := s.connections()
		well.Store(false)
		s.cut()
		time.Sleep(10 * time.Minute)
		if n := s.connections() - before; n > 3*clients {
			t.Errorf("got %d connections for %d clients in 10 minutes, want hardly more than one attempt each", n, clients)
		}
		well.Store(true)
		time.Sleep(2 * time.Minute)
		if got := s.open(); got != clients+1 {
			t.Errorf("got %d sessions once it is back, want one for each client and the router's own", got)
		}
		m.Stop()
	})
}

// A connection that fails on a client's session, or for a call on the router's own, counts for the server as a whole: no
// health check has to find out. Any success brings it back.
func TestClosedPortIsNoticed(t *testing.T) {
	for _, proxied := range []bool{true, false} {
		t.Run(fmt.Sprintf("proxied=%t", proxied), func(t *testing.T) {
			w := serveHTTP(t, newServer())
			m := start(t, downstream.Options{
				Servers:   []downstream.ServerConfig{w.config("a")},
				Execution: downstream.ExecutionConfig{RetryDelay: time.Millisecond},
				Health:    downstream.HealthConfig{Interval: time.Hour},
			})
			defer m.Stop()
			m.Sessions().Enter("c", hello("c"))
			r := request("a", "echo")
			r.Client, r.Proxied = "c", proxied
			if _, err := m.Call(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			mcptest.Eventually(t, "it is connected", func() bool { return m.Status()["a"].Status == downstream.StateConnected })
			w.shut()
			if _, err := m.Call(t.Context(), r); failureOf(err).Reason != reason.Unavailable {
				t.Fatalf("got %v, want unavailable", err)
			}
			if st := m.Status()["a"]; st.Status != downstream.StateDisconnected || st.LastError == nil {
				t.Errorf("got %s and the last error %v, want it disconnected and why", st.Status, st.LastError)
			}
			l, err := net.Listen("tcp", strings.TrimSuffix(strings.TrimPrefix(w.url, "http://"), "/mcp"))
			if err != nil {
				t.Skip(err) // somebody else has the port now
			}
			back := &http.Server{Handler: w}
			go back.Serve(l)
			defer back.Close()
			if _, err := m.Call(t.Context(), r); err != nil {
				t.Errorf("got %v once it is back, want an answer", err)
			}
			mcptest.Eventually(t, "it is connected again", func() bool { return m.Status()["a"].Status == downstream.StateConnected })
		})
	}
}

// A server that lets no client in any more, but answers pings in the router's own session, is soon known to be there.
func TestPingAfterFailedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		well := away(s)
		well.Store(true)
		o := pipes([]string{"a"}, s)
		o.Servers[0].Session = downstream.SessionPerClient
		m := start(t, o)
		defer m.Stop()
		time.Sleep(time.Second)
		well.Store(false)
		began := time.Now()
		for i := range 50 {
			client := "c" + strconv.Itoa(i)
			m.Sessions().Enter(client, hello(client))
			r := request("a", "echo")
			r.Client, r.Proxied = client, true
			go m.Call(t.Context(), r)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		if st := m.Status()["a"]; st.Status != downstream.StateConnected {
			t.Errorf("got %s, want it connected", st.Status)
		}
		if n, most := s.count("ping"), int(time.Since(began)/time.Second)+1; n == 0 || n > most {
			t.Errorf("got %d pings in %v, want one a second at most", n, time.Since(began))
		}
	})
}

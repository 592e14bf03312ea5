package edge_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/cluster"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/internal/shared"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
	"github.com/agenticnexus/agenticnexus/router/edge/sessionid"
	"github.com/agenticnexus/agenticnexus/tests/cuts"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// replica is an edge in a cluster, behind a real HTTP server.
type replica struct {
	edge   *edge.Edge
	member *cluster.Replica
	store  *cuts.State
	addr   string
	server *http.Server
	ended  sync.WaitGroup
}

// replicas are the replicas of a router with one handler. The wire is a client that sends each request on a new
// connection to the next replica that lives.
type replicas struct {
	*wire
	all    []*replica
	state  *state
	next   atomic.Int64
	silent atomic.Bool  // replicas cannot connect to each other
	only   atomic.Int64 // index of the only replica to send to; -1 = each in turn
}

// state is a shared state that runs a function once before the next entry of a session is read.
type state struct {
	shared.State
	before atomic.Pointer[func()]
}

func (s *state) Get(ctx context.Context, key string) (shared.Entry, error) {
	if strings.HasPrefix(key, "session/") {
		if before := s.before.Swap(nil); before != nil {
			(*before)()
		}
	}
	return s.State.Get(ctx, key)
}

type oneKey struct{}

func (oneKey) Newest(string) (uint32, []byte)         { return 1, slices.Repeat([]byte{7}, 32) }
func (oneKey) Key(_ string, id uint32) ([]byte, bool) { return slices.Repeat([]byte{7}, 32), id == 1 }

func newReplicas(t testing.TB, n int, o edge.Options) *replicas {
	t.Helper()
	rs := &replicas{state: &state{State: shared.NewMemory()}, wire: &wire{t: t, srv: newServer(), http: &httptest.Server{URL: "http://127.0.0.1"}}}
	rs.only.Store(-1)
	for i := range n {
		rs.all = append(rs.all, rs.join(t, fmt.Sprint("r", i), rs.state, o))
	}
	rs.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: rs.dial}}
	return rs
}

// dial connects to the next replica, as a balancer does.
func (rs *replicas) dial(ctx context.Context, network, _ string) (c net.Conn, err error) {
	for range rs.all {
		i := rs.only.Load()
		if i < 0 {
			i = rs.next.Add(1)
		}
		if c, err = (&net.Dialer{}).DialContext(ctx, network, rs.all[i%int64(len(rs.all))].addr); err == nil {
			return c, nil
		}
	}
	return nil, err
}

func (rs *replicas) join(t testing.TB, name string, state shared.State, o edge.Options) *replica {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{addr: listener.Addr().String(), store: cuts.NewState(state)}
	r.member = cluster.New(cluster.Config{
		Leases: r.store, Sessions: r.store, Name: name, Address: "http://" + r.addr,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if rs.silent.Load() {
				return nil, context.DeadlineExceeded
			}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
		Keys:   func() [][]byte { return [][]byte{slices.Repeat([]byte{9}, 32)} },
		Digest: func() string { return "" },
		Count:  func() int { return r.edge.Sessions() },
		Ended:  func(uint64) { edge.Fenced(r.edge) }, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	o.Directory, o.IDKeys = r.member.Directory(), oneKey{}
	r.edge = edge.New(o)
	mux := http.NewServeMux()
	mux.Handle("/mcp", r.edge.Streamable(rs.srv, nil))
	stream, messages := r.edge.SSE("/messages", rs.srv)
	mux.Handle("/sse", stream)
	mux.Handle("/messages/", messages)
	r.server = &http.Server{Handler: r.member.Receive(mux)}
	served := output.CoalesceWrites(r.server, listener)
	r.ended.Go(func() { _ = r.server.Serve(served) })
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := r.member.Start(ctx); err != nil {
		t.Fatalf("Start: got %v, want nil", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		equal(t, "Stop", r.edge.Stop(ctx), nil)
		r.kill()
		mcptest.Eventually(t, "nothing is charged to a caller any more", func() bool { return r.edge.Held() == 0 })
	})
	return r
}

// kill ends the connections and the lease of a replica without a word.
func (r *replica) kill() {
	r.server.Close()
	r.ended.Wait()
	r.member.Stop()
}

// saved waits until the state of the only session is stored, with a part.
func (rs *replicas) saved(h header, part string) {
	rs.t.Helper()
	ids := sessionid.New()
	ids.Share(oneKey{})
	record, _ := ids.Open(h["Mcp-Session-Id"], "/mcp")
	mcptest.Eventually(rs.t, "the state is stored", func() bool {
		e, _ := rs.state.Get(rs.t.Context(), "session/"+strconv.FormatUint(record.Tag, 16))
		var stored struct{ State []byte }
		return json.Unmarshal(e.Value, &stored) == nil && strings.Contains(string(stored.State), part)
	})
}

// home returns the replica that serves the only session.
func (rs *replicas) home() *replica {
	rs.t.Helper()
	at := slices.IndexFunc(rs.all, func(r *replica) bool { return r.edge.Sessions() == 1 })
	if at < 0 {
		rs.t.Fatal("no replica has the session")
	}
	return rs.all[at]
}

// through sends all requests to one replica from now on: the home of the only session, or another one.
func (rs *replicas) through(home bool) {
	rs.t.Helper()
	at := rs.home()
	rs.only.Store(int64(slices.IndexFunc(rs.all, func(r *replica) bool { return (r == at) == home })))
}

var handshakeEras = []string{"2025-03-26", "2025-06-18", "2025-11-25"}

// Every replica serves every session as its home does.
func TestAnyReplicaServesASession(t *testing.T) {
	rs := newReplicas(t, 3, edge.Options{})
	for _, version := range handshakeEras {
		h := rs.open(version)
		rs.want("initialized", initialized, h, 202)
		for i := range 6 {
			id := fmt.Sprint(i)
			rs.want("call", call(id, "echo", `{"n":`+id+`}`), h, 200, `"id":`+id+`,"result":{"echo":{"n":`+id+`}}`)
			rs.want("progress", call(id, "burst", `{"n":3}`), h, 200, `"progress":2`, `"id":`+id+`,"result":{"done":true}`)
		}
		sessions := 0
		for _, r := range rs.all {
			sessions += r.edge.Sessions()
		}
		equal(t, "sessions at all replicas", sessions, 1)
		rs.status("DELETE", "DELETE", "/mcp", "", h, 204)
		for range 3 {
			rs.want("after DELETE", call("1", "echo", `{}`), h, 404)
		}
	}
}

// Progress, requests to the client and cancellations belong to a call that another replica passed on.
func TestCallsThroughAnotherReplica(t *testing.T) {
	rs := newReplicas(t, 3, edge.Options{})
	for _, version := range handshakeEras {
		h := rs.open(version)
		rs.through(false)
		resp := rs.do(t.Context(), "POST", "/mcp", call("1", "ask", "{}"), h)
		ev := readEvents(t, resp.Body)
		asked := jsonrpc.Get([]byte(ev.message()), "id")
		rs.only.Store(-1)
		rs.want("answer", `{"jsonrpc":"2.0","id":`+string(asked)+`,"result":{"a":1}}`, h, 202)
		contains(t, "after the answer", ev.message(), `"id":1,"result":{"answer":{"a":1}}`)

		before := rs.srv.causeCount()
		cancelled := rs.start(call("2", "sleep", "{}"), h)
		rs.served(len(rs.srv.log()))
		mcptest.Eventually(t, "the call is cancelled", func() bool {
			rs.want("cancel", cancelOf("2", `"why"`), h, 202)
			return rs.srv.causeCount() > before
		})
		checkCause(t, rs.srv, `"why"`)
		if got := <-cancelled; strings.Contains(got, `"id":2`) {
			t.Errorf("a cancelled call: got %s, want no response", got)
		}
		rs.status("DELETE", "DELETE", "/mcp", "", h, 204)
	}
}

func TestLargeResultsThroughAnotherReplica(t *testing.T) {
	rs := newReplicas(t, 2, edge.Options{})
	h := rs.open("2025-11-25")
	rs.through(false)
	close(rs.srv.gate)
	for _, tool := range []string{"big", "notify-big"} {
		_, _, body := rs.post(call("1", tool, "{}"), h)
		if got := last(body); !json.Valid(got) || len(got) < 1<<20 {
			t.Errorf("%s: got %d bytes that end in %.20q, want a whole result", tool, len(got), got[max(0, len(got)-20):])
		}
	}
}

func TestBatchThroughAnotherReplica(t *testing.T) {
	rs := newReplicas(t, 2, edge.Options{})
	h := rs.open("2025-03-26")
	for range 4 {
		rs.want("batch", "["+call("1", "echo", "{}")+","+call("2", "burst", `{"n":1}`)+"]", h, 200, `"id":1`, `"id":2`)
	}
}

// A stream of a session may be read and resumed through any replica.
func TestStreamsThroughAnotherReplica(t *testing.T) {
	rs := newReplicas(t, 3, edge.Options{})
	h := rs.open("2025-11-25")
	home := rs.home()
	rs.through(false)
	last := ""
	for i := range 3 {
		ctx, hangUp := context.WithCancel(t.Context())
		more := header{"Mcp-Session-Id": h["Mcp-Session-Id"], "Last-Event-ID": last}
		resp := rs.do(ctx, "GET", "/mcp", "", more)
		equal(t, "GET", resp.StatusCode, 200)
		equal(t, "Send", home.edge.Send(h["Mcp-Session-Id"], logMessage(i, 10_000)), true)
		ev := readEvents(t, resp.Body)
		f, _ := ev.next()
		if f.comment != "" {
			f, _ = ev.next()
		}
		if last = f.id; f.data != string(logMessage(i, 10_000)) || last == "" {
			t.Errorf("event %d: got %.100q and id %q, want the message and an id", i, f.data, f.id)
		}
		hangUp()
		rs.only.Store(int64(i))
	}
	rs.only.Store(-1)
	rs.edge = home.edge
	began := rs.resumable(h, "7")
	close(rs.srv.release)
	mcptest.Eventually(t, "the call is over", func() bool { return home.edge.Tracked() == 0 })
	_, ev := rs.resume(h, began)
	contains(t, "resumed", ev.message()+ev.message(), `"progress":1`, `"held":true`)
}

// The streams of one caller leave room for those of others on their way to other replicas.
func TestStreamsOfOneCallerThroughAnotherReplica(t *testing.T) {
	const most = 4 // sessions at a replica, and streams through it of one caller
	rs := newReplicas(t, 3, edge.Options{Limits: limit.Config{Sessions: most},
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	opened := func(by string, at int64) header {
		from := header{"X-Forwarded-For": by}
		rs.only.Store(at)
		_, got, _ := rs.post(initialize("2025-11-25"), from)
		return with(from, "Mcp-Session-Id", got.Get("Mcp-Session-Id"))
	}
	stream := func(h header) int {
		rs.only.Store(2)
		resp := rs.do(t.Context(), "GET", "/mcp", "", h)
		t.Cleanup(func() { resp.Body.Close() })
		return resp.StatusCode
	}
	var sessions []header
	for i := range int64(most + 1) {
		sessions = append(sessions, opened("10.0.0.1", i/most))
	}
	other := opened("10.0.0.2", 1)
	for _, h := range sessions[:most] {
		equal(t, "a stream", stream(h), 200)
	}
	equal(t, "a stream too many", stream(sessions[most]), 429)
	equal(t, "a stream of another caller", stream(other), 200)
}

func TestSSEThroughAnotherReplica(t *testing.T) {
	rs := newReplicas(t, 3, edge.Options{})
	c := rs.sse(nil)
	c.want("initialize", initialize("2024-11-05"), nil, 202)
	contains(t, "initialize", c.events.message(), `"id":"init"`)
	for i := range 6 {
		c.want("call", call(fmt.Sprint(i), "echo", "{}"), nil, 202)
		contains(t, "call", c.events.message(), fmt.Sprintf(`"id":%d,"result"`, i))
	}
	rs.through(false)
	rs.home().kill()
	mcptest.Eventually(t, "the session ends with its home", func() bool {
		status, _ := c.post(call("9", "echo", "{}"), nil)
		return status == 404
	})
}

func TestRoundTripsAtAnotherReplica(t *testing.T) {
	rs := newReplicas(t, 3, edge.Options{})
	h := modernHeader("tools/call", "ask-twice")
	rs.only.Store(0)
	_, _, body := rs.post(roundTripOf("1", "ask-twice", asks, `"t1"`, ""), h)
	for i := range 2 {
		rs.only.Store(int64(i + 1))
		_, more := required(t, body, `{"a":1}`)
		_, _, body = rs.post(roundTripOf(fmt.Sprint(i+2), "ask-twice", asks, `"t2"`, more), h)
	}
	contains(t, "the last round trip", body, `"id":3`, `"resultType":"complete"`)

	rs.only.Store(0)
	_, _, body = rs.post(roundTripOf("1", "ask-twice", asks, `"t1"`, ""), h)
	_, more := required(t, body, `{"a":1}`)
	rs.only.Store(1)
	rs.all[0].kill()
	mcptest.Eventually(t, "the outcome is unknown", func() bool {
		_, _, body = rs.post(roundTripOf("2", "ask-twice", asks, `"t1"`, more), h)
		return strings.Contains(body, `"reason":"outcome_unknown","retryable":false`)
	})
	checkError(t, string(last(body)), "2", jsonrpc.CodeInternal)
}

// What a session takes along does not keep the bodies of its requests in memory.
func TestAdoption_Memory(t *testing.T) {
	rs := newReplicas(t, 1, edge.Options{})
	h := rs.open("2025-11-25")
	before := heap()
	for i := range 20 {
		rs.want("subscribe", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"u%d"},"more":"%s"}`,
			i, strings.Repeat("x", 1<<20)), h, 200)
	}
	if grown := heap() - before; grown > 30<<20 { // the test itself keeps what it sends
		t.Errorf("20 subscriptions of 1 MiB take %.0f bytes, want less than 30 MiB", grown)
	}
}

// A session takes along what there is room for, and the log tells once that there is more.
func TestAdoption_Bound(t *testing.T) {
	var log bytes.Buffer // written by the only client's requests
	rs := newReplicas(t, 2, edge.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	h := rs.open("2025-11-25")
	uri := strings.Repeat("u", 10_000)
	for i := range 12 {
		rs.want("subscribe", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"%d%s"}}`, i, uri), h, 200)
	}
	rs.saved(h, `"0u`)
	home := rs.home()
	rs.through(false)
	home.kill()
	before := len(rs.srv.all())
	rs.want("call", call("1", "echo", `{}`), h, 200, `"id":1,"result":{"echo":{}}`)
	got := strings.Join(rs.srv.all()[before:], " ")
	if n := strings.Count(got, "subscribe:"); n < 1 || n > 3 || !strings.Contains(got, "subscribe:0u") {
		t.Errorf("served after adoption: got %d subscriptions, want the first few", n)
	}
	if n := strings.Count(log.String(), "is lost if it moves"); n != 1 {
		t.Errorf("got %d warnings, want 1: %.500s", n, log.String())
	}
}

// The replica that gets a request of a session whose home is gone becomes its home, with the session's state.
func TestAdoption(t *testing.T) {
	for _, version := range handshakeEras {
		t.Run(version, func(t *testing.T) {
			rs := newReplicas(t, 3, edge.Options{})
			h := rs.open(version)
			rs.want("level", `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}`, h, 200)
			for _, m := range []string{"subscribe a", "subscribe b", "unsubscribe a"} {
				method, uri, _ := strings.Cut(m, " ")
				rs.want(m, `{"jsonrpc":"2.0","id":1,"method":"resources/`+method+`","params":{"uri":"`+uri+`"}}`, h, 200)
			}
			rs.want("save", call("1", "save", `{"kept":1}`), h, 200)
			rs.saved(h, `"kept":1`)
			home := rs.home()
			rs.through(false)
			unread := rs.do(t.Context(), "GET", "/mcp", "", h)
			held := []<-chan string{rs.start(call("1", "hold", "{}"), h), rs.start(call("2", "notify-hold", "{}"), h)}
			mcptest.Eventually(t, "the calls are in flight", func() bool {
				return home.edge.Tracked() == 2 && slices.Contains(rs.srv.all(), "notified")
			})
			home.kill()
			for i, answer := range held {
				body := <-answer
				contains(t, "in flight", body, `"reason":"outcome_unknown","retryable":false`)
				checkError(t, string(last(body)), fmt.Sprint(i+1), jsonrpc.CodeServer)
			}
			if _, err := io.Copy(io.Discard, unread.Body); err != nil {
				t.Errorf("the stream of a session whose home is gone: got %v, want its end", err)
			}
			before := len(rs.srv.all())
			began := time.Now()
			rs.want("call", call("1", "echo", `{}`), h, 200, `"id":1,"result":{"echo":{}}`)
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("adoption took %v, want at most 2s", took)
			}
			got := strings.Join(rs.srv.all()[before:], " ")
			if !strings.HasPrefix(got, "initialize:"+version+" notifications/initialized restored:") ||
				!strings.HasSuffix(got, " tools/call:echo") {
				t.Errorf("served after adoption: got %s, want the handshake and the state before the call", got)
			}
			contains(t, "served after adoption", got, `restored:{"kept":1}`, "level:info", "subscribe:b")
			if strings.Contains(got, "subscribe:a") {
				t.Errorf("served after adoption: got %s, want no subscription that has ended", got)
			}
			rs.only.Store(-1)
			for range 4 {
				rs.want("call", call("1", "echo", `{}`), h, 200, `"id":1,"result":{"echo":{}}`)
			}
		})
	}
}

// Only replicas make others believe that a request comes from a replica, and no request is passed on twice.
func TestHopsAreNotForged(t *testing.T) {
	rs := newReplicas(t, 3, edge.Options{})
	h := rs.open("2025-11-25")
	for _, forged := range []string{"v1 1 1 n bWFj", "v1", "x"} {
		rs.status("forged hop", "POST", "/mcp", call("1", "echo", "{}"), with(h, "Nexus-Hop", forged), 403)
	}
	rs.want("address alone", call("1", "echo", "{}"), with(h, "Nexus-Client", "10.0.0.1:1"), 200, `"id":1`)
}

// Callers are who they are at each replica.
func TestKeysThroughAnotherReplica(t *testing.T) {
	rs := newReplicas(t, 2, edge.Options{Keys: keys(t)})
	ann := header{"Authorization": "Bearer key-ann"}
	_, opened, _ := rs.post(initialize("2025-11-25"), ann)
	id := opened.Get("Mcp-Session-Id")
	for range 2 {
		rs.want("ann", `{"jsonrpc":"2.0","id":1,"method":"seen"}`, with(ann, "Mcp-Session-Id", id), 200, `"Caller":"key:ann"`)
		rs.want("ann by _meta", request("1", "seen", `"api_key":"key-ann"`), header{"Mcp-Session-Id": id}, 200, `"Caller":"key:ann"`)
		rs.want("bob", call("1", "echo", "{}"), header{"X-Api-Key": "key-bob", "Mcp-Session-Id": id}, 404)
		rs.want("nobody", call("1", "echo", "{}"), header{"Mcp-Session-Id": id}, 401)
	}
	rs.through(false)
	_, got, _ := rs.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, with(with(ann, "Mcp-Session-Id", id), "Origin", "http://localhost"))
	equal(t, "Access-Control-Allow-Origin", strings.Join(got["Access-Control-Allow-Origin"], "|"), "http://localhost")
}

// A replica that drains hands its sessions over and begins nothing.
func TestDrain(t *testing.T) {
	rs := newReplicas(t, 3, edge.Options{})
	h := rs.open("2025-11-25")
	home := rs.home()
	rs.through(true)
	busy := rs.start(call("1", "hold", "{}"), h)
	mcptest.Eventually(t, "the call is in flight", func() bool { return home.edge.Tracked() == 1 })
	stream := rs.do(t.Context(), "GET", "/mcp", "", h)
	home.member.Drain()
	rs.want("a notification while it is busy", `{"jsonrpc":"2.0","method":"notifications/x"}`, h, 202)
	equal(t, "sessions while busy", home.edge.Sessions(), 1)
	next := rs.start(call("2", "echo", "{}"), h)
	close(rs.srv.release)
	contains(t, "the call", <-busy, `"held":true`)
	contains(t, "the next call", <-next, `"echo"`)
	equal(t, "sessions of a drained replica", home.edge.Sessions(), 0)
	if _, err := io.Copy(io.Discard, stream.Body); err != nil {
		t.Errorf("the stream of a session that moves: got %v, want its end", err)
	}
	other := rs.open("2025-11-25")
	rs.want("modern", modernCall("echo"), modernHeader("tools/call", "echo"), 200, `"id":1`)
	equal(t, "sessions begun while draining", home.edge.Sessions(), 0)
	rs.only.Store(-1)
	for range 6 {
		rs.want("moved", call("1", "echo", "{}"), h, 200, `"id":1`)
		rs.want("begun elsewhere", call("1", "echo", "{}"), other, 200, `"id":1`)
	}
}

// A replica that drains serves what belongs to no session if it reaches no other.
func TestDrainOutOfReach(t *testing.T) {
	rs := newReplicas(t, 2, edge.Options{})
	rs.only.Store(0)
	rs.all[0].member.Drain()
	rs.silent.Store(true)
	rs.want("modern", modernCall("echo"), modernHeader("tools/call", "echo"), 200, `"id":1`)
}

// A session stays while its client may be about to resume the response to a call.
func TestDrainKeepsWhatIsUnread(t *testing.T) {
	rs := newReplicas(t, 2, edge.Options{})
	h := rs.open("2025-11-25")
	home := rs.home()
	rs.edge = home.edge
	began := rs.hangUp(h, "7", "notify-lost")
	mcptest.Eventually(t, "the call is over", func() bool { return home.edge.Tracked() == 0 })
	home.member.Drain()
	_, ev := rs.resume(h, began)
	contains(t, "resumed", ev.message(), `"kept":true`)
	mcptest.Eventually(t, "the session is handed over", func() bool { return home.edge.Sessions() == 0 })
}

// Drain does not wait for what other replicas serve, since more of that may always come; Stop does.
func TestDrainWhilePassingOn(t *testing.T) {
	rs := newReplicas(t, 2, edge.Options{})
	rs.only.Store(1)
	h := rs.open("2025-11-25")
	rs.only.Store(0)
	rs.all[0].member.Drain()
	passed := []<-chan string{rs.start(call("1", "hold", "{}"), h),
		rs.start(modernCall("hold"), modernHeader("tools/call", "hold"))}
	listens := rs.start(strings.Replace(modernCall(""), "tools/call", "subscriptions/listen", 1), modernHeader("subscriptions/listen", ""))
	mcptest.Eventually(t, "the requests are in flight", func() bool { return rs.all[1].edge.Tracked() == 3 })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	edge.Drain(ctx, rs.all[0].edge)
	equal(t, "end of the time for Drain", ctx.Err(), nil)
	stopped := make(chan error, 1)
	go func() { stopped <- rs.all[0].edge.Stop(ctx) }()
	select {
	case err := <-stopped:
		t.Errorf("Stop: got %v before the end of a call, want it afterwards", err)
	case <-time.After(1500 * time.Millisecond): // longer than requests go on that Stop does not wait for
	}
	close(rs.srv.release)
	for _, answer := range passed {
		contains(t, "a call that is passed on", <-answer, `"held":true`)
	}
	equal(t, "Stop", <-stopped, nil)
	<-listens
	equal(t, "end of the time for Stop", ctx.Err(), nil)
}

// A request that is read when all others of its replica have ended is passed on.
func TestRequestThatArrivesAtTheEnd(t *testing.T) {
	rs := newReplicas(t, 2, edge.Options{})
	rs.only.Store(0)
	h := rs.open("2025-11-25")
	body := call("1", "echo", "{}")
	conn, err := net.Dial("tcp", rs.all[0].addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"+
		"Mcp-Session-Id: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", h["Mcp-Session-Id"], len(body), body[:9])
	rs.all[0].member.Drain()
	mcptest.Eventually(t, "the session is handed over", func() bool { return rs.all[0].edge.Sessions() == 0 })
	var stopped sync.WaitGroup
	defer stopped.Wait()
	stopped.Go(func() { _ = rs.all[0].edge.Stop(t.Context()) })
	mcptest.Eventually(t, "the edge is closed", func() bool {
		return rs.all[0].edge.ServeStdio(t.Context(), reader(""), &mcptest.Log{}, rs.srv) == edge.ErrStopped
	})
	fmt.Fprint(conn, body[9:])
	got, err := io.ReadAll(conn)
	if err != nil || !strings.Contains(string(got), `"id":1,"result"`) {
		t.Errorf("got %s (%v), want a result", got, err)
	}
}

// Sessions whose home has just ended all its requests are served, wherever requests arrive, and so are their streams.
func TestSessionsAfterDrain(t *testing.T) {
	rs := newReplicas(t, 2, edge.Options{})
	rs.only.Store(0)
	one, two := rs.open("2025-11-25"), rs.open("2025-11-25")
	mcptest.Eventually(t, "the other can take sessions", func() bool {
		_, ok := rs.all[0].member.Directory().Elsewhere()
		return ok
	})
	rs.all[0].member.Drain()
	edge.Drain(t.Context(), rs.all[0].edge)
	rs.want("at the drained home", call("1", "echo", "{}"), one, 200, `"id":1`)
	stream := rs.do(t.Context(), "GET", "/mcp", "", one)
	defer stream.Body.Close()
	equal(t, "stream through the drained home", stream.StatusCode, 200)
	rs.only.Store(1)
	rs.want("elsewhere", call("1", "echo", "{}"), two, 200, `"id":1`)
}

// A call of a session that nobody takes over is not cut if it begins while Drain waits for a client to read.
func TestCallDuringDrain(t *testing.T) {
	rs := newReplicas(t, 1, edge.Options{})
	h := rs.open("2025-11-25")
	home := rs.home()
	conn, err := net.Dial("tcp", home.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /sse HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first, _ := readEvents(t, resp.Body).next()
	rs.status("the call whose response is not read", "POST", first.data, call("1", "big", `{"n":8000000}`), nil, 202)
	mcptest.Eventually(t, "it is served", func() bool { return home.edge.Tracked() == 0 })
	home.member.Drain()
	drained := make(chan struct{})
	go func() {
		edge.Drain(t.Context(), home.edge)
		close(drained)
	}()
	mcptest.Eventually(t, "calls without a session are refused", func() bool {
		status, _, _ := rs.post(modernCall("echo"), modernHeader("tools/call", "echo"))
		return status == 503
	})
	late := rs.start(call("2", "hold", "{}"), h)
	mcptest.Eventually(t, "the late call is served", func() bool { return home.edge.Tracked() == 1 })
	conn.Close()
	select {
	case <-drained:
		t.Error("Drain has returned, want it to wait for the late call")
	case <-time.After(300 * time.Millisecond):
	}
	close(rs.srv.release)
	contains(t, "the late call", <-late, `"held":true`)
	<-drained
}

// A session that moves, or whose replica leaves, while its client ends it, has ended everywhere.
func TestDeleteOfAMovingSession(t *testing.T) {
	for name, leaves := range map[string]bool{"moves": false, "its replica leaves": true} {
		t.Run(name, func(t *testing.T) {
			rs := newReplicas(t, 2, edge.Options{})
			rs.only.Store(0)
			h := rs.open("2025-11-25")
			home := rs.home()
			moves := func() {
				home.member.Drain()
				mcptest.Eventually(t, "the session is handed over", func() bool { return home.edge.Sessions() == 0 })
				rs.only.Store(1)
				rs.want("at its new home", call("1", "echo", "{}"), h, 200, `"id":1`)
				rs.only.Store(0)
				if leaves {
					equal(t, "Leave", home.member.Leave(t.Context()), nil)
				}
			}
			rs.state.before.Store(&moves)
			rs.status("DELETE", "DELETE", "/mcp", "", h, 204)
			rs.only.Store(1)
			rs.want("after DELETE", call("1", "echo", "{}"), h, 404)
		})
	}
}

// endSlowly ends the sessions of the only replica, and checks that nothing is served before its handler knows that.
func (rs *replicas) endSlowly() {
	begun := len(rs.srv.all())
	rs.srv.leaves = func() {
		for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if served := rs.srv.all(); len(served) > begun {
				rs.t.Errorf("served before Ended has returned: got %v, want nothing", served[begun:])
				return
			}
		}
		rs.srv.leaves = nil
	}
	edge.Fenced(rs.all[0].edge)
}

// A handler does not take the late end of a session for the end of the same one that has come back.
func TestRevivalAfterTheEnd(t *testing.T) {
	rs := newReplicas(t, 1, edge.Options{})
	h := rs.open("2025-11-25")
	rs.endSlowly()
	rs.want("call", call("1", "echo", `{}`), h, 200, `"id":1,"result"`)
}

// A session that is revived does not begin before another revival of it has ended.
func TestRevivalDuringAnother(t *testing.T) {
	rs := newReplicas(t, 1, edge.Options{})
	h := rs.open("2025-11-25")
	edge.Fenced(rs.all[0].edge)
	mcptest.Eventually(t, "the session has ended", func() bool { return rs.srv.ends() == 1 })
	another := func() {
		rs.want("another call", call("1", "echo", `{}`), h, 200, `"id":1,"result"`)
		rs.endSlowly()
	}
	rs.state.before.Store(&another)
	rs.want("call", call("2", "echo", `{}`), h, 200, `"id":2,"result"`)
}

// What comes after the end of a replica is read within its limits, and passed on only for callers that it admits.
func TestRequestsAfterTheEnd(t *testing.T) {
	oauth := auth.Config{OAuth: &auth.OAuthConfig{Issuer: "https://auth.example.com", Audience: "https://r.example"}}
	tokens, err := auth.New(oauth, auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ended := func(k *auth.Keys) (*replicas, header, header) {
		rs := newReplicas(t, 3, edge.Options{Keys: k, Limits: limit.Config{BodyBytes: 1000}})
		rs.only.Store(1)
		ann := header{"Authorization": "Bearer key-ann"}
		_, opened, _ := rs.post(initialize("2025-11-25"), ann)
		rs.only.Store(0)
		rs.all[0].member.Drain()
		equal(t, "Leave", rs.all[0].member.Leave(t.Context()), nil)
		h := with(ann, "Mcp-Session-Id", opened.Get("Mcp-Session-Id"))
		if k != tokens {
			rs.want("a call after the lease", call("1", "echo", "{}"), h, 200, `"id":1,"result"`)
		}
		equal(t, "Stop", rs.all[0].edge.Stop(t.Context()), nil)
		return rs, ann, h
	}
	rs, ann, h := ended(keys(t))
	for range 6 { // the home is not the first that is asked each time
		rs.want("a call of a session", call("1", "echo", "{}"), h, 200, `"id":1,"result"`)
	}
	rs.want("a call without a session", modernCall("echo"), with(modernHeader("tools/call", "echo"), "Authorization", "Bearer key-ann"), 200, `"id":1`)
	rs.want("a batch", "["+call("1", "echo", "{}")+"]", ann, 200, `"id":1`)
	rs.want("a wrong key", call("1", "echo", "{}"), header{"Authorization": "Bearer x"}, 401)
	rs.want("a large body", call("1", "echo", `{"x":"`+strings.Repeat("x", 1000)+`"}`), h, 413)
	rs.status("DELETE without a key", "DELETE", "/mcp", "", header{"Mcp-Session-Id": h["Mcp-Session-Id"]}, 401)
	rs.status("a stream", "GET", "/mcp", "", h, 200)
	rs.status("DELETE", "DELETE", "/mcp", "", h, 204)
	rs.want("after DELETE", call("1", "echo", "{}"), h, 404)

	rs, _, _ = ended(tokens)
	conn, err := net.Dial("tcp", rs.all[0].addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 900\r\n\r\n")
	if got, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(got, " 401 ") {
		t.Errorf("without a token: got %q (%v), want 401 before the body", got, err)
	}
}

// A replica whose sessions others may adopt ends them; they go on elsewhere.
func TestFencedReplica(t *testing.T) {
	rs := newReplicas(t, 2, edge.Options{})
	h := rs.open("2025-11-25")
	home := rs.home()
	rs.through(true)
	held := rs.start(call("1", "hold", "{}"), h)
	mcptest.Eventually(t, "the call is in flight", func() bool { return home.edge.Tracked() == 1 })
	lease, err := rs.state.Get(t.Context(), "replica/"+fmt.Sprintf("%016x", home.member.Directory().Self()))
	if err != nil || lease.Value == nil {
		t.Fatalf("the lease: got %v, %v", lease, err)
	}
	if _, err := rs.state.Put(t.Context(), lease.Key, []byte(`{"ended":true}`), lease.Revision, time.Hour); err != nil {
		t.Fatal(err)
	}
	contains(t, "in flight", <-held, `"reason":"outcome_unknown","retryable":false`)
	mcptest.Eventually(t, "a fenced replica has no session", func() bool { return home.edge.Sessions() == 0 })
	rs.only.Store(-1)
	mcptest.Eventually(t, "the session goes on", func() bool {
		_, _, body := rs.post(call("1", "echo", "{}"), h)
		return strings.Contains(body, `"id":1,"result"`)
	})
	mcptest.Eventually(t, "the replica is back", func() bool { return home.member.Directory().Self() != 0 })
	for range 4 {
		rs.want("call", call("1", "echo", "{}"), h, 200, `"id":1,"result"`)
	}
}

// While nobody can tell whether the home of a session lives, nobody else serves the session.
func TestSilentHome(t *testing.T) {
	rs := newReplicas(t, 2, edge.Options{})
	h := rs.open("2025-11-25")
	rs.through(false)
	rs.silent.Store(true)
	status, got, body := rs.post(call("1", "echo", "{}"), h)
	equal(t, "status", status, 503)
	equal(t, "Retry-After", got.Get("Retry-After"), "1")
	checkError(t, body, "1", jsonrpc.CodeServer)
	contains(t, "call", body, `"reason":"unavailable","retryable":true`)
	status, got, _ = rs.post(`{"jsonrpc":"2.0","method":"notifications/x"}`, h)
	equal(t, "status of a notification", status, 503)
	equal(t, "Retry-After", got.Get("Retry-After"), "1")
	rs.silent.Store(false)
	rs.want("call", call("1", "echo", "{}"), h, 200, `"id":1,"result"`)
}

// The requests of a batch whose home is gone are answered one by one, in the form that the response has.
func TestBatchOfALostHome(t *testing.T) {
	rs := newReplicas(t, 2, edge.Options{})
	h := rs.open("2025-03-26")
	home := rs.home()
	rs.through(false)
	whole := rs.start("["+call("1", "hold", "{}")+","+call("2", "hold", "{}")+","+initialized+"]", h)
	resp := rs.do(t.Context(), "POST", "/mcp", "["+call("3", "notify-hold", "{}")+","+call("4", "hold", "{}")+"]", h)
	begun := readEvents(t, resp.Body)
	contains(t, "before its home is lost", begun.message(), `"progress":0`)
	mcptest.Eventually(t, "the calls are in flight", func() bool { return home.edge.Tracked() == 4 })
	home.kill()
	const unknown = `"error":{"code":-32000`
	for _, answers := range []struct {
		body  string
		parts []string
	}{
		{<-whole, []string{`[{"jsonrpc":"2.0","id":1,` + unknown, `{"jsonrpc":"2.0","id":2,` + unknown}},
		{begun.message() + begun.message(), []string{`{"jsonrpc":"2.0","id":3,` + unknown, `{"jsonrpc":"2.0","id":4,` + unknown}},
	} {
		contains(t, "batch", answers.body, answers.parts...)
		equal(t, "unknown outcomes", strings.Count(answers.body, `"reason":"outcome_unknown","retryable":false`), 2)
	}
}

// A request that has begun when the lease of its replica ends is served by another, also by one that has not yet read
// that the lease has ended.
func TestRequestAcrossTheEnd(t *testing.T) {
	for _, test := range []struct {
		name  string
		home  int64 // the replica where the session begins; the first one leaves
		blind bool  // the others do not see the end
	}{
		{"of another's session", 1, false},
		{"of another's session, unseen", 1, true},
		{"of a session here", 0, false},
		{"of a session here, unseen", 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			rs := newReplicas(t, 3, edge.Options{})
			rs.only.Store(test.home)
			h := rs.open("2025-11-25")
			conn, err := net.Dial("tcp", rs.all[0].addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			body := call("1", "echo", "{}")
			fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"+
				"Accept: application/json, text/event-stream\r\nMcp-Session-Id: %s\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n",
				h["Mcp-Session-Id"], len(body))
			read := bufio.NewReader(conn)
			if got, err := read.ReadString('\n'); err != nil || !strings.Contains(got, " 100 ") {
				t.Fatalf("got %q (%v), want 100: the replica reads the body", got, err)
			}
			for _, r := range rs.all[1:] {
				r.store.SetBlind(test.blind)
			}
			equal(t, "Leave", rs.all[0].member.Leave(t.Context()), nil)
			rs.all[0].member.Drain() // after Leave, so that the session is not handed over
			fmt.Fprint(conn, body)
			_, _ = read.ReadString('\n') // the end of 100 Continue
			if got, err := read.ReadString('\n'); err != nil || !strings.Contains(got, " 200 ") {
				t.Errorf("got %q (%v), want 200 and no other 100", got, err)
			}
		})
	}
}

func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

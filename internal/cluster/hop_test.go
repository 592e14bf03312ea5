package cluster_test

import (
	"bufio"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/agenticnexus/agenticnexus/internal/cluster"
)

// pair is two replicas with TCP connections; requests to front are forwarded to the home of a session at home.
type pair struct {
	home, front *node
	session     cluster.Session
	errors      chan error // of Forward
}

func newPair(t *testing.T) *pair {
	w := newWorld(t)
	p := &pair{home: w.onLoopback("home"), front: w.onLoopback("front"), errors: make(chan error, 100)}
	p.session = p.home.session("s")
	p.front.serve(func(w http.ResponseWriter, r *http.Request) {
		place, err := p.front.dir.Find(r.Context(), p.session)
		if err != nil || place.Here() {
			t.Errorf("finding the session: %v, here %t", err, place.Here())
			return
		}
		p.errors <- place.Forward(w, r)
	})
	return p
}

// send sends a request to the front.
func (p *pair) send(t *testing.T, ctx context.Context, method, uri, body string, header ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+p.front.host+uri, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "nexus.example:8443"
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

func TestForward_PassesRequestsAsTheyCame(t *testing.T) {
	p := newPair(t)
	p.home.serve(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Mcp-Session-Id", "x")
		w.WriteHeader(http.StatusAccepted)
		client, _, _ := net.SplitHostPort(r.RemoteAddr)
		fmt.Fprintln(w, cluster.Forwarded(r.Context()), r.Method, r.RequestURI, r.Host, client, string(body),
			r.Header.Get("Authorization"), r.Header.Get("X-Forwarded-For"), r.Header.Get("Origin"),
			len(r.Header["Nexus-Hop"])+len(r.Header["Nexus-Client"]), r.Header.Get("Accept-Encoding"), r.UserAgent())
	})
	response := p.send(t, t.Context(), http.MethodPost, "/a%2Fb/mcp?x=1;y=%zz", `{"id":1}`, "Authorization", "Bearer k",
		"X-Forwarded-For", "203.0.113.9", "Origin", "https://o.example", "Accept-Encoding", "br", "User-Agent", "client/1")
	got, _ := io.ReadAll(response.Body)
	want := `true POST /a%2Fb/mcp?x=1;y=%zz nexus.example:8443 127.0.0.1 {"id":1} Bearer k 203.0.113.9 https://o.example 0 br client/1`
	if strings.TrimSpace(string(got)) != want {
		t.Errorf("got the request\n%swant\n%s", got, want)
	}
	if response.StatusCode != http.StatusAccepted || response.Header.Get("Mcp-Session-Id") != "x" || response.Header["Nexus-Answer"] != nil {
		t.Errorf("got the response %d with %v", response.StatusCode, response.Header)
	}
	if err := <-p.errors; err != nil {
		t.Errorf("got the error %v", err)
	}
}

func TestForward_StreamsAndCancels(t *testing.T) {
	p := newPair(t)
	cancelled := make(chan struct{})
	p.home.serve(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: 1\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(cancelled)
	})
	ctx, cancel := context.WithCancel(t.Context())
	response := p.send(t, ctx, http.MethodGet, "/mcp", "")
	if line, err := bufio.NewReader(response.Body).ReadString('\n'); line != "data: 1\n" || err != nil {
		t.Errorf("got %q (%v), want the first event at once", line, err)
	}
	cancel()
	select {
	case <-cancelled:
	case <-time.After(10 * time.Second):
		t.Error("the home does not learn that the client is gone")
	}
	if err := <-p.errors; !errors.Is(err, context.Canceled) {
		t.Errorf("got the error %v, want that of the request", err)
	}
}

func TestForward_Errors(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(p *pair, began <-chan struct{}) // while the request is served
		home http.HandlerFunc                     // before it waits
		want error
	}{
		{"home crashes before the response", func(p *pair, began <-chan struct{}) { <-began; p.home.crash() }, func(http.ResponseWriter, *http.Request) {}, cluster.ErrLost},
		{"home crashes in the response", func(p *pair, began <-chan struct{}) { <-began; p.home.crash() }, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "data: 1\n\n")
			w.(http.Flusher).Flush()
		}, cluster.ErrCut},
		{"home has ended", func(p *pair, began <-chan struct{}) { <-began; _ = p.home.Leave(context.Background()) }, func(http.ResponseWriter, *http.Request) {}, cluster.ErrLost},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPair(t)
			began := make(chan struct{})
			p.home.serve(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that its client is gone
				test.home(w, r)
				close(began)
				<-r.Context().Done()
			})
			place, err := p.front.dir.Find(t.Context(), p.session)
			if err != nil {
				t.Fatal(err)
			}
			go test.do(p, began)
			if err := place.Forward(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader("{}"))); !errors.Is(err, test.want) {
				t.Errorf("got the error %v, want %v", err, test.want)
			}
		})
	}
	t.Run("not here", func(t *testing.T) {
		p := newPair(t)
		p.home.serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMisdirectedRequest) })
		place, _ := p.front.dir.Find(t.Context(), p.session)
		w := httptest.NewRecorder()
		if err := place.Forward(w, httptest.NewRequest(http.MethodPost, "/mcp", nil)); !errors.Is(err, cluster.ErrMoved) || w.Body.Len() > 0 {
			t.Errorf("got the error %v and the response %q, want ErrMoved alone", err, w.Body)
		}
	})
	t.Run("gone", func(t *testing.T) {
		p := newPair(t)
		place, _ := p.front.dir.Find(t.Context(), p.session)
		p.home.crash()
		err := cluster.ErrLost
		for n := 0; n < 100 && errors.Is(err, cluster.ErrLost); n++ { // on idle connections whose end is not noticed yet
			err = place.Forward(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/mcp", nil))
		}
		if !errors.Is(err, cluster.ErrRefused) {
			t.Errorf("got the error %v, want ErrRefused", err)
		}
	})
	t.Run("something else at its address", func(t *testing.T) {
		p := newPair(t)
		place, _ := p.front.dir.Find(t.Context(), p.session)
		p.home.crash()
		l, err := net.Listen("tcp", p.home.host)
		if err != nil {
			t.Skip(err)
		}
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })}
		go s.Serve(l)
		defer s.Close()
		w := httptest.NewRecorder()
		if err := place.Forward(w, httptest.NewRequest(http.MethodPost, "/mcp", nil)); !errors.Is(err, cluster.ErrLost) || w.Body.Len() > 0 {
			t.Errorf("got the error %v and the response %q, want ErrLost alone", err, w.Body)
		}
	})
	t.Run("unreachable", func(t *testing.T) {
		inBubble(t, func(w *world) {
			a, b := w.node("a"), w.node("b")
			place, err := b.dir.Find(w.t.Context(), a.session("s"))
			if err != nil {
				w.t.Fatal(err)
			}
			w.net.Isolate("a:80", true)
			if err := place.Forward(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/mcp", nil)); !errors.Is(err, cluster.ErrUnavailable) {
				w.t.Errorf("got the error %v, want ErrUnavailable", err)
			}
		})
	})
}

// agingConn fails to write when the age has changed, as if its peer had closed it. It counts what it writes.
type agingConn struct {
	*net.TCPConn
	since       int64
	age, writes *atomic.Int64
}

// Write implements net.Conn.
func (c agingConn) Write(b []byte) (int, error) {
	if c.age.Load() != c.since {
		return 0, net.ErrClosed
	}
	c.writes.Add(1)
	return c.TCPConn.Write(b)
}

// A request that finds its idle connection closed by the peer takes another one. A short one is sent in one piece.
func TestForward_ClosedIdleConnection(t *testing.T) {
	w := newWorld(t)
	home := w.onLoopback("home")
	var age, writes atomic.Int64
	front := w.node("front", func(c *cluster.Config) {
		inProcess := c.Dial
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if address != home.host {
				return inProcess(ctx, network, address)
			}
			since := age.Load()
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return agingConn{conn.(*net.TCPConn), since, &age, &writes}, nil
		}
	})
	home.serve(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	})
	for _, size := range []int{4, 4, 100 << 10, 100 << 10, 0, 0} {
		place, err := front.dir.Find(t.Context(), home.session("s"))
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Repeat("x", size)
		rec, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodDelete, "/mcp", nil)
		if size > 0 {
			r = httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(want))
			r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(want)), nil }
		}
		writes.Store(0)
		if err := place.Forward(rec, r); err != nil || rec.Body.String() != want {
			t.Errorf("%d bytes: got %d (%v), want them back", size, rec.Body.Len(), err)
		}
		if n := writes.Load(); size < 64<<10 && n != 1 {
			t.Errorf("%d bytes: got %d writes, want 1", size, n)
		}
		age.Add(1)
	}
	if log := front.log.String(); strings.Contains(log, "does not answer") {
		t.Errorf("log %s, want nothing about a replica that does not answer", log)
	}
}

// tappedConn calls a function before each write, and fails with its error.
type tappedConn struct {
	*net.TCPConn
	before func(b []byte) error
}

// Write implements net.Conn.
func (c tappedConn) Write(b []byte) (int, error) {
	if err := c.before(b); err != nil {
		return 0, err
	}
	return c.TCPConn.Write(b)
}

// tapped starts a replica that calls a function before each write to another one.
func (w *world) tapped(before func(b []byte) error) *node {
	return w.node("front", func(c *cluster.Config) {
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return tappedConn{conn.(*net.TCPConn), before}, nil
		}
	})
}

// A call that the home has received is not sent again, even if the client says that this does no harm.
func TestForward_SendsOnce(t *testing.T) {
	w := newWorld(t)
	home := w.onLoopback("home")
	var sent atomic.Int64
	front := w.tapped(func(b []byte) error {
		sent.Add(int64(strings.Count(string(b), "Idempotency-Key: 1")))
		return nil
	})
	for _, size := range []int{4, 100 << 10} {
		post := func() error {
			place, err := front.dir.Find(t.Context(), home.session("s"))
			if err != nil {
				t.Fatal(err)
			}
			body := strings.Repeat("x", size)
			r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
			r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil }
			r.Header.Set("Idempotency-Key", "1")
			return place.Forward(httptest.NewRecorder(), r)
		}
		home.serve(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
		if err := post(); err != nil {
			t.Fatal(err)
		}
		home.serve(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			panic(http.ErrAbortHandler)
		})
		sent.Store(0)
		if err := post(); !errors.Is(err, cluster.ErrLost) || sent.Load() != 1 {
			t.Errorf("%d bytes: sent %d times with the error %v, want once and ErrLost", size, sent.Load(), err)
		}
	}
}

// A GET that was received and not answered is lost, also if the transport repeats it where nobody or another
// incarnation is by then.
func TestForward_LostAndRepeated(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		w := newWorld(t)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		host := l.Addr().String()
		home := w.prepareAt("home", host, l)
		front := w.tapped(func([]byte) error { return nil })
		if err := home.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		place, err := front.dir.Find(t.Context(), home.session("s"))
		if err != nil {
			t.Fatal(err)
		}
		get := func() error {
			return place.Forward(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/mcp", nil))
		}
		if err := get(); err != nil {
			t.Fatal(err)
		}
		home.serve(func(http.ResponseWriter, *http.Request) {
			l.Close()
			if restarted {
				again, err := net.Listen("tcp", host)
				if err != nil {
					t.Error(err)
				} else {
					w.prepareAt("home", host, again)
				}
			}
			panic(http.ErrAbortHandler)
		})
		if err := get(); !errors.Is(err, cluster.ErrLost) {
			t.Errorf("restarted %t: got the error %v, want ErrLost", restarted, err)
		}
	}
}

// A request that ends before it is sent on an idle connection is not tried again.
func TestForward_CancelledBeforeItIsSent(t *testing.T) {
	w := newWorld(t)
	home := w.onLoopback("home")
	ctx, cancel := context.WithCancel(t.Context())
	armed := atomic.Bool{}
	front := w.tapped(func([]byte) error {
		if armed.Load() {
			cancel()
		}
		return ctx.Err()
	})
	place, err := front.dir.Find(t.Context(), home.session("s"))
	if err != nil {
		t.Fatal(err)
	}
	rewound := 0
	post := func() error {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/mcp", strings.NewReader("{}"))
		r.GetBody = func() (io.ReadCloser, error) {
			if rewound++; rewound > 9 {
				return nil, errors.New("tried again and again")
			}
			return io.NopCloser(strings.NewReader("{}")), nil
		}
		return place.Forward(httptest.NewRecorder(), r)
	}
	if err := post(); err != nil {
		t.Fatal(err)
	}
	armed.Store(true)
	if err := post(); !errors.Is(err, context.Canceled) || rewound > 0 {
		t.Errorf("got the error %v and %d more attempts, want that of the request and none", err, rewound)
	}
}

// The home reads what the first replica has read: headers that the client calls those of its connection, and of trace
// contexts the replica's own alone.
func TestForward_Headers(t *testing.T) {
	w := newWorld(t)
	home, front := w.onLoopback("home"), w.onLoopback("front")
	var seen atomic.Pointer[http.Header]
	var believed atomic.Bool
	home.serve(func(_ http.ResponseWriter, r *http.Request) {
		seen.Store(&r.Header)
		believed.Store(cluster.Traced(r.Context()))
	})
	place, err := front.dir.Find(t.Context(), home.session("s"))
	if err != nil {
		t.Fatal(err)
	}
	own := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	for _, traced := range []bool{false, true} {
		names := []string{"X-Forwarded-For", "X-Forwarded-Host", "Forwarded", "Authorization", "X-Api-Key", "Mcp-Session-Id"}
		r := httptest.NewRequest(http.MethodDelete, "/mcp", nil)
		r.Header.Set("Connection", "close, "+strings.Join(names, ", "))
		for _, name := range names {
			r.Header.Set(name, "given")
		}
		r.Header.Set("Traceparent", "client")
		r.Header.Set("Tracestate", "client=1")
		r.Header.Set("Nexus-Traced", "v1")
		want := "client=1"
		if traced {
			r, want = r.WithContext(trace.ContextWithSpanContext(r.Context(), own)), ""
		}
		if err := place.Forward(httptest.NewRecorder(), r); err != nil {
			t.Fatal(err)
		}
		got := *seen.Load()
		for _, name := range names {
			if got.Get(name) != "given" {
				t.Errorf("got %s %q, want it as given", name, got.Get(name))
			}
		}
		if got.Get("Tracestate") != want || (got.Get("Traceparent") == "client") == traced || got["Connection"] != nil {
			t.Errorf("traced %t: got %v", traced, got)
		}
		if got["Nexus-Traced"] != nil || believed.Load() != traced {
			t.Errorf("traced %t: got that the trace context is a replica's: %t, headers %v", traced, believed.Load(), got)
		}
	}
}

// What a client says of its trace context is not believed behind a replica of an earlier version, which passes it on.
func TestForward_TracedByClient(t *testing.T) {
	w := newWorld(t)
	gate := httptest.NewUnstartedServer(nil)
	home := w.prepareAt("home", gate.Listener.Addr().String(), w.net.Listen("unused:80"), func(c *cluster.Config) { c.Dial = nil })
	var mark atomic.Pointer[string]
	receive := home.Receive(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, cluster.Traced(r.Context())) }))
	gate.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m := mark.Load(); m != nil { // as it came from the client
			r.Header.Set("Nexus-Traced", *m)
		}
		receive.ServeHTTP(w, r)
	})
	gate.Start()
	defer gate.Close()
	if err := home.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	front := w.onLoopback("front")
	place, err := front.dir.Find(t.Context(), home.session("s"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []string{"", "v1", "v1 ", "v1 mac"} {
		mark.Store(&m)
		rec := httptest.NewRecorder()
		if err := place.Forward(rec, httptest.NewRequest(http.MethodDelete, "/mcp", nil)); err != nil || rec.Body.String() != "false" {
			t.Errorf("%q: got %s (%v), want false", m, rec.Body, err)
		}
	}
}

// Whether a request was sent is known over TLS, too.
func TestForward_LostOverTLS(t *testing.T) {
	began := make(chan struct{})
	gate := httptest.NewTLSServer(nil)
	defer gate.Close()
	roots := filepath.Join(t.TempDir(), "roots.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: gate.Certificate().Raw})
	if err := os.WriteFile(roots, cert, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", roots)
	w := newWorld(t)
	home := w.prepareAt("home", gate.Listener.Addr().String(), w.net.Listen("unused:80"), func(c *cluster.Config) {
		c.Address, c.Dial = gate.URL, nil
	})
	gate.Config.Handler = home.Receive(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(began)
		<-r.Context().Done()
	}))
	if err := home.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	front := w.onLoopback("front")
	place, err := front.dir.Find(t.Context(), home.session("s"))
	if err != nil {
		t.Fatal(err)
	}
	go func() { <-began; gate.CloseClientConnections() }()
	err = place.Forward(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader("{}")))
	if !errors.Is(err, cluster.ErrLost) {
		t.Errorf("got the error %v, want ErrLost", err)
	}
}

// A recorded request for a promise counts no more when its receiver has started again: it tells nothing about others.
func TestReceive_RecordedHold(t *testing.T) {
	w := newWorld(t)
	var at atomic.Pointer[string]
	var recorded atomic.Pointer[http.Request]
	spy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		if r.In.URL.Path == "/cluster/hold" && !strings.HasPrefix(r.In.Header.Get("Nexus-Hop"), "v1 0 ") {
			recorded.Store(r.In.Clone(t.Context()))
		}
		r.Out.URL.Scheme, r.Out.URL.Host = "http", *at.Load()
	}})
	defer spy.Close()
	start := func() *node {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		host := l.Addr().String()
		at.Store(&host)
		n := w.prepareAt("home", host, l, func(c *cluster.Config) { c.Address, c.Dial = spy.URL, nil })
		if err := n.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		return n
	}
	home := start()
	w.onLoopback("front")
	old := recorded.Load()
	_ = home.Leave(t.Context())
	home.crash()
	home = start()
	for deadline := time.Now().Add(10 * time.Second); len(home.Members()) < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the replica does not know the other one")
		}
	}
	old.URL.Scheme, old.URL.Host, old.RequestURI, old.Body = "http", home.host, "", nil
	response, err := http.DefaultTransport.RoundTrip(old)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	if strings.Contains(string(body), "front") || strings.Contains(string(body), `"granted":true`) {
		t.Errorf("got %d and %s, want nothing about others", response.StatusCode, body)
	}
}

// slowRecorder is a client that does not read before it is released.
type slowRecorder struct {
	*httptest.ResponseRecorder
	reads chan struct{}
}

// Write implements http.ResponseWriter.
func (s slowRecorder) Write(b []byte) (int, error) {
	<-s.reads
	return s.ResponseRecorder.Write(b)
}

// A slow client gets the whole response of a home that has left since, and what there was of one that is lost.
func TestForward_SlowClientOfAnEndedHome(t *testing.T) {
	for _, left := range []bool{true, false} {
		inBubble(t, func(w *world) {
			home, front := w.node("home"), w.node("front")
			home.serve(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) })
			place, err := front.dir.Find(w.t.Context(), home.session("s"))
			if err != nil {
				w.t.Fatal(err)
			}
			client := slowRecorder{httptest.NewRecorder(), make(chan struct{})}
			forwarded := make(chan error)
			go func() { forwarded <- place.Forward(client, httptest.NewRequest(http.MethodPost, "/mcp", nil)) }()
			synctest.Wait()
			if left {
				err = home.Leave(w.t.Context())
			} else {
				key := fmt.Sprintf("replica/%016x", home.dir.Self())
				lease, _ := w.store.Get(w.t.Context(), key)
				_, err = w.store.Put(w.t.Context(), key, []byte(`{"ended":true}`), lease.Revision, 0)
			}
			if err != nil {
				w.t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			close(client.reads)
			err = <-forwarded
			if whole := client.Body.Len() == 1<<20; whole != left || errors.Is(err, cluster.ErrCut) == left {
				w.t.Errorf("left %t: got %d bytes (%v)", left, client.Body.Len(), err)
			}
		})
	}
}

// A replica whose lease has lapsed has served nothing, also while it still ends its sessions.
func TestForward_ToALapsedReplica(t *testing.T) {
	inBubble(t, func(w *world) {
		ending := make(chan struct{})
		a := w.node("a", func(c *cluster.Config) { c.Ended = func(uint64) { <-ending } })
		defer close(ending)
		b := w.node("b")
		w.node("c")
		s := a.session("s")
		w.net.Cut("a:80", "c:80", true)
		a.leases.SetCut(true)
		time.Sleep(5500 * time.Millisecond)
		place, err := b.dir.Find(w.t.Context(), s)
		if err != nil || place.Here() || a.dir.Self() != 0 {
			w.t.Fatalf("got %v, here %t, and %x at the home, want a place there, and its lease to have lapsed", err, place.Here(), a.dir.Self())
		}
		if err := place.Forward(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/mcp", nil)); !errors.Is(err, cluster.ErrMoved) {
			w.t.Errorf("got the error %v, want ErrMoved", err)
		}
	})
}

func TestReceive_RefusesForgeries(t *testing.T) {
	w := newWorld(t)
	n := w.onLoopback("a")
	served := func(header ...string) (int, string, string) {
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		if header[0] == "hold" {
			r = httptest.NewRequest(http.MethodPost, "/cluster/hold", nil)
			header = header[1:]
		}
		for i := 0; i < len(header); i += 2 {
			r.Header.Add(header[i], header[i+1])
		}
		rec := httptest.NewRecorder()
		n.Receive(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.RemoteAddr, cluster.Forwarded(r.Context()), len(r.Header))
		})).ServeHTTP(rec, r)
		return rec.Code, rec.Body.String(), rec.Header().Get("Nexus-Answer")
	}
	for _, test := range []struct {
		header []string
		code   int
	}{
		{[]string{"Nexus-Client", "10.0.0.1:1", "Nexus-Traced", "v1"}, 200},
		{[]string{"Nexus-Hop", ""}, 403},
		{[]string{"Nexus-Hop", "v1 1 2 nonce mac"}, 403},
		{[]string{"Nexus-Hop", "v2 1 2 nonce mac"}, 403},
		{[]string{"Nexus-Hop", "v1 1 2 nonce mac", "Nexus-Hop", "v1 1 2 nonce mac"}, 403},
		{[]string{"hold"}, 403},
		{[]string{"hold", "Nexus-Hop", "v1 1 0 nonce mac", "Nexus-Client", ""}, 403},
	} {
		code, body, answer := served(test.header...)
		if code != test.code || answer != "" {
			t.Errorf("%v: got %d with the answer %q, want %d", test.header, code, answer, test.code)
		}
		if code == 200 && body != "192.0.2.1:1234false 0" {
			t.Errorf("%v: got %s, want a request without headers of a hop", test.header, body)
		}
	}
}

func TestForward_KeysChange(t *testing.T) {
	w := newWorld(t)
	newest := func(c *cluster.Config) {
		c.Keys = func() [][]byte { return [][]byte{[]byte("a newer key that the others know"), clusterKey} }
	}
	older := func(c *cluster.Config) {
		c.Keys = func() [][]byte { return [][]byte{clusterKey, []byte("a newer key that the others know")} }
	}
	a, b := w.onLoopback("a", newest), w.onLoopback("b", older)
	for _, n := range [][2]*node{{a, b}, {b, a}} {
		s := n[0].session("s")
		expect(t, n[1], s, n[0].name)
	}
}

func TestForward_OtherKey(t *testing.T) {
	w := newWorld(t)
	a := w.onLoopback("a")
	b := w.onLoopback("b", func(c *cluster.Config) { c.Keys = func() [][]byte { return [][]byte{[]byte("another")} } })
	if got, err := b.get(a.session("s")); err == nil {
		t.Errorf("got %q, want an error", got)
	}
}

func BenchmarkForward(b *testing.B) {
	w := newWorld(b)
	home, front := w.onLoopback("home"), w.onLoopback("front")
	s := home.session("s")
	body := strings.Repeat("x", 1000)
	home.serve(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
	b.ReportAllocs()
	for b.Loop() {
		place, err := front.dir.Find(b.Context(), s)
		if err == nil {
			err = place.Forward(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body)))
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

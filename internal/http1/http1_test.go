//go:build unix

package http1_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agenticnexus/agenticnexus/internal/http1"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// client is an http1.Transport that counts the connections it opens, and those of them that it has closed.
type client struct {
	*http1.Transport
	opened, closed atomic.Int64
	last           atomic.Pointer[net.TCPConn]
	broken         atomic.Bool  // the next write fails
	written        atomic.Int64 // bytes handed to connections
}

type counted struct {
	*net.TCPConn
	once sync.Once
	c    *client
}

var errBroken = errors.New("the connection is broken")

func (c *counted) Write(b []byte) (int, error) {
	if c.c.broken.Swap(false) {
		return 0, errBroken
	}
	c.c.written.Add(int64(len(b)))
	return c.TCPConn.Write(b)
}

func (c *counted) Close() error {
	c.once.Do(func() { c.c.closed.Add(1) })
	return c.TCPConn.Close()
}

func newClient(t *testing.T, change func(*http.Transport)) *client {
	c := &client{}
	rest := &http.Transport{MaxIdleConnsPerHost: 100, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		c.opened.Add(1)
		c.last.Store(nc.(*net.TCPConn))
		return &counted{TCPConn: nc.(*net.TCPConn), c: c}, nil
	}}
	if change != nil {
		change(rest)
	}
	c.Transport = http1.New(rest)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// arrived waits until something has come on the last connection, its end included, and leaves it there.
func (c *client) arrived(t *testing.T) {
	t.Helper()
	raw, err := c.last.Load().SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	mcptest.Eventually(t, "something comes on the idle connection", func() bool {
		var err error
		_ = raw.Read(func(fd uintptr) bool {
			_, _, err = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK)
			return true
		})
		return !errors.Is(err, syscall.EAGAIN)
	})
}

// raw is a server that plays a script on each connection it accepts, the first of which is number 1.
func raw(t *testing.T, script func(n int64, c net.Conn, requests *bufio.Reader)) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var n atomic.Int64
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				defer context.AfterFunc(t.Context(), func() { c.Close() })()
				script(n.Add(1), c, bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return "http://" + l.Addr().String()
}

// take reads a request and its body; it fails when the client has closed the connection.
func take(requests *bufio.Reader) bool {
	req, err := http.ReadRequest(requests)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err == nil
}

func request(ctx context.Context, method, url, body string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	return req
}

// read sends a request and returns the status and the whole body.
func read(rt http.RoundTripper, req *http.Request) (string, error) {
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return fmt.Sprintf("%d %s", resp.StatusCode, body), err
}

func wantRead(t *testing.T, rt http.RoundTripper, req *http.Request, want string) {
	t.Helper()
	if got, err := read(rt, req); err != nil || got != want {
		t.Errorf("%s %.40s: got %q, %v; want %q", req.Method, req.URL, got, err, want)
	}
}

const plain = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// What a server answers is understood as net/http understands it, and a second request goes over the same
// connection exactly where it does there.
func TestLikeNetHTTP(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for name, answer := range map[string]string{
		"with a length":               plain,
		"in chunks":                   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n3\r\n, 2\r\n0\r\n\r\n",
		"in chunks with a trailer":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n2\r\nok\r\n0\r\nA: b\r\n\r\n",
		"long":                        "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + long,
		"empty":                       "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
		"without content":             "HTTP/1.1 204 No Content\r\n\r\n",
		"not modified":                "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
		"after others":                "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + plain,
		"a redirect":                  "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
		"an error":                    "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\nwell",
		"the last":                    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
		"without a length":            "HTTP/1.1 200 OK\r\n\r\nok",
		"of HTTP/1.0":                 "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"of HTTP/1.0, kept":           "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
		"of another protocol":         "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
		"cut in the header":           "HTTP/1.1 200 OK\r\nContent-Le",
		"cut in the body":             "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok",
		"cut in a chunk":              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok",
		"cut behind a chunk":          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
		"nothing":                     "",
		"no HTTP":                     "SSH-2.0-OpenSSH_9.6\r\n\r\n",
		"with a bad chunk":            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok",
		"with two lengths":            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok.",
		"with an unknown coding":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok",
		"with a header too long":      "HTTP/1.1 200 OK\r\nA: " + strings.Repeat(long, 110) + "\r\n\r\n",
		"with too much before itself": strings.Repeat("HTTP/1.1 102 Processing\r\nA: "+long+"\r\n\r\n", 110) + plain,
	} {
		t.Run(name, func(t *testing.T) {
			ends := strings.HasPrefix(name, "cut") || answer == "" || name == "without a length" || name == "of another protocol"
			try := func(rt http.RoundTripper) (got [2]string, connections int64) {
				var last atomic.Int64
				address := raw(t, func(n int64, c net.Conn, requests *bufio.Reader) {
					last.Store(n)
					for take(requests) {
						if _, err := io.WriteString(c, answer); err != nil || ends {
							return
						}
					}
				})
				for i := range got {
					body, err := read(rt, request(t.Context(), http.MethodPost, address, "{}"))
					got[i] = body
					if err != nil {
						got[i] += ", an error"
					}
				}
				return got, last.Load()
			}
			theirs := &http.Transport{}
			defer theirs.CloseIdleConnections()
			got, connections := try(newClient(t, nil))
			want, wanted := try(theirs)
			if got != want || connections != wanted {
				t.Errorf("got %.80q over %d connections, net/http %.80q over %d", got, connections, want, wanted)
			}
		})
	}
}

// A connection on which something has happened while it was idle is not used again, nothing is sent twice, and
// what came on it is no answer to the next request.
func TestDisturbedWhileIdle(t *testing.T) {
	for name, disturb := range map[string]string{"closed": "", "spoken on": "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"} {
		t.Run(name, func(t *testing.T) {
			idle := make(chan struct{})
			var requests atomic.Int64
			address := raw(t, func(n int64, c net.Conn, r *bufio.Reader) {
				for take(r) {
					requests.Add(1)
					_, _ = io.WriteString(c, plain)
					if n == 1 {
						<-idle
						if disturb == "" {
							return
						}
						_, _ = io.WriteString(c, disturb)
					}
				}
			})
			c := newClient(t, nil)
			wantRead(t, c, request(t.Context(), http.MethodPost, address, "{}"), "200 ok")
			close(idle)
			c.arrived(t)
			for range 3 {
				wantRead(t, c, request(t.Context(), http.MethodPost, address, "{}"), "200 ok")
			}
			if got := requests.Load(); got != 4 || c.opened.Load() != 2 {
				t.Errorf("got %d requests over %d connections, want 4 over 2", got, c.opened.Load())
			}
		})
	}
}

// More than a response on a connection is its end: it is no answer to the next request.
func TestTooMuch(t *testing.T) {
	address := raw(t, func(n int64, c net.Conn, r *bufio.Reader) {
		for take(r) {
			answer := plain
			if n == 1 {
				answer += strings.Replace(plain, "ok", "no", 1)
			}
			_, _ = io.WriteString(c, answer)
		}
	})
	c := newClient(t, nil)
	for range 3 {
		wantRead(t, c, request(t.Context(), http.MethodPost, address, "{}"), "200 ok")
	}
}

// A request that the server has taken from a connection used before, and not answered, is sent again only if
// that does no harm.
func TestTakenAndDropped(t *testing.T) {
	for _, tc := range []struct {
		method, key string
		oneBody     bool // it can be read once
		repeated    bool
	}{
		{http.MethodPost, "", false, false}, {http.MethodDelete, "", false, false}, {http.MethodGet, "", false, true},
		{http.MethodDelete, "X-Idempotency-Key", false, true}, {http.MethodPost, "Idempotency-Key", true, false},
	} {
		t.Run(tc.method+tc.key, func(t *testing.T) {
			var requests atomic.Int64
			address := raw(t, func(n int64, c net.Conn, r *bufio.Reader) {
				for i := 0; take(r); i++ {
					requests.Add(1)
					if n == 1 && i == 1 {
						return
					}
					_, _ = io.WriteString(c, plain)
				}
			})
			c := newClient(t, nil)
			send := func() error {
				req, err := http.NewRequestWithContext(t.Context(), tc.method, address, nil)
				if err != nil {
					t.Fatal(err)
				}
				if tc.oneBody {
					req.Body, req.ContentLength = io.NopCloser(strings.NewReader("{}")), 2
				}
				if tc.key != "" {
					req.Header[tc.key] = []string{}
				}
				_, err = read(c, req)
				return err
			}
			if err := send(); err != nil {
				t.Fatal(err)
			}
			err := send()
			if want := int64(2); tc.repeated {
				if want = 3; err != nil || requests.Load() != want {
					t.Errorf("got %v after %d requests, want an answer after %d", err, requests.Load(), want)
				}
			} else if err == nil || requests.Load() != want {
				t.Errorf("got %v after %d requests, want an error after %d", err, requests.Load(), want)
			}
		})
	}
}

// A request of which nothing could be written goes over another connection, unless the connection was a new one.
func TestNothingWritten(t *testing.T) {
	address := raw(t, func(_ int64, c net.Conn, r *bufio.Reader) {
		for take(r) {
			_, _ = io.WriteString(c, plain)
		}
	})
	c := newClient(t, nil)
	c.broken.Store(true)
	if _, err := read(c, request(t.Context(), http.MethodPost, address, "{}")); !errors.Is(err, errBroken) {
		t.Errorf("on a new connection: got %v, want %v", err, errBroken)
	}
	wantRead(t, c, request(t.Context(), http.MethodPost, address, "{}"), "200 ok")
	c.broken.Store(true)
	wantRead(t, c, request(t.Context(), http.MethodPost, address, "{}"), "200 ok")
	if got, closed := c.opened.Load(), c.closed.Load(); got != 3 || closed != 2 {
		t.Errorf("got %d connections and %d closed, want 3 and 2", got, closed)
	}
}

// What the settings do not say is as net/http has it.
func TestDefaults(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	rt := http1.New(&http.Transport{})
	defer rt.CloseIdleConnections()
	wantRead(t, rt, request(t.Context(), http.MethodHead, srv.URL, ""), "404 ")
	wantRead(t, rt, request(t.Context(), http.MethodGet, srv.URL, ""), "404 404 page not found\n")
}

// The end of its context ends a request wherever it is, and its connection with it.
func TestCancel(t *testing.T) {
	why := errors.New("nobody waits")
	for name, answer := range map[string]string{
		"before the header": "", "in the header": "HTTP/1.1 200 OK\r\nA", "before the body": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
		"in the body": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			address := raw(t, func(_ int64, c net.Conn, r *bufio.Reader) {
				take(r)
				_, _ = io.WriteString(c, answer)
				time.AfterFunc(10*time.Millisecond, func() { cancel(why) })
				_, _ = io.Copy(io.Discard, r) // until the client closes
			})
			c := newClient(t, nil)
			if _, err := read(c, request(ctx, http.MethodPost, address, "{}")); !errors.Is(err, why) {
				t.Errorf("got %v, want %v", err, why)
			}
			if _, err := read(c, request(ctx, http.MethodPost, address, "{}")); !errors.Is(err, why) {
				t.Errorf("afterwards: got %v, want %v", err, why)
			}
			mcptest.Eventually(t, "the only connection is closed", func() bool { return c.opened.Load() == 1 && c.closed.Load() == 1 })
		})
	}
}

// Whoever closes a body that has not ended closes the connection; what is read later is an error.
func TestCloseEarly(t *testing.T) {
	gone := make(chan struct{})
	address := raw(t, func(_ int64, c net.Conn, r *bufio.Reader) {
		take(r)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
		_, _ = io.Copy(io.Discard, r)
		close(gone)
	})
	resp, err := newClient(t, nil).RoundTrip(request(t.Context(), http.MethodPost, address, "{}"))
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	if line != "data: 1\n" {
		t.Errorf("got %q, %v, want the first event while the stream is open", line, err)
	}
	resp.Body.Close()
	<-gone
	if n, err := resp.Body.Read(make([]byte, 10)); n > 0 || err == nil {
		t.Errorf("after Close: got %d bytes, %v, want an error", n, err)
	}
}

// What is not for plain HTTP/1.1 without a proxy, or not valid, is left to net/http.
func TestLeftToNetHTTP(t *testing.T) {
	t.Run("TLS and HTTP/2", func(t *testing.T) {
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
		srv.EnableHTTP2 = true
		srv.StartTLS()
		defer srv.Close()
		c := newClient(t, func(rest *http.Transport) {
			rest.TLSClientConfig = srv.Client().Transport.(*http.Transport).TLSClientConfig
			rest.ForceAttemptHTTP2 = true
		})
		defer c.CloseIdleConnections()
		wantRead(t, c, request(t.Context(), http.MethodPost, srv.URL, "{}"), "200 HTTP/2.0")
	})
	t.Run("a proxy", func(t *testing.T) {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RequestURI) }))
		defer srv.Close()
		c := newClient(t, func(rest *http.Transport) {
			rest.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(srv.URL) }
		})
		defer c.CloseIdleConnections()
		wantRead(t, c, request(t.Context(), http.MethodPost, "http://elsewhere.invalid/mcp", "{}"), "200 http://elsewhere.invalid/mcp")
	})
	t.Run("a body of unknown length", func(t *testing.T) {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
		defer srv.Close()
		c := newClient(t, nil)
		defer c.CloseIdleConnections()
		req := request(t.Context(), http.MethodPost, srv.URL, "")
		req.Body, req.GetBody, req.ContentLength = io.NopCloser(bytes.NewBufferString("{}")), nil, -1
		wantRead(t, c, req, "200 {}")
	})
	t.Run("headers and URLs that are none", func(t *testing.T) {
		c := newClient(t, nil)
		for _, header := range []http.Header{{"A": {"b", "c\r\nD: e"}}, {"A\nB": {"c"}}, {"A": {"\x00"}}} {
			req := request(t.Context(), http.MethodPost, "http://127.0.0.1:1", "{}")
			req.Header = header
			if _, err := c.RoundTrip(req); err == nil || !strings.Contains(err.Error(), "invalid header") {
				t.Errorf("%v: got %v, want that the header is invalid", header, err)
			}
		}
		for _, address := range []string{"ftp://127.0.0.1", "http:///mcp", ""} {
			if _, err := c.RoundTrip(request(t.Context(), http.MethodPost, address, "{}")); err == nil {
				t.Errorf("%q: got no error", address)
			}
		}
		if c.opened.Load() > 0 {
			t.Errorf("got %d connections, want none", c.opened.Load())
		}
	})
}

// traced returns a context whose httptrace passes the names of events to told.
func traced(ctx context.Context, told func(event string)) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { told("get") },
		GotConn:      func(httptrace.GotConnInfo) { told("got") },
		WroteRequest: func(httptrace.WroteRequestInfo) { told("wrote") },
	})
}

// The trace learns for each attempt whether the request has left.
func TestTrace(t *testing.T) {
	address := raw(t, func(n int64, c net.Conn, r *bufio.Reader) {
		for i := 0; take(r) && (n > 1 || i == 0); i++ {
			_, _ = io.WriteString(c, plain)
		}
	})
	c := newClient(t, nil)
	var got []string
	for range 2 { // the second is made on the first one's connection, and again on another
		req := request(traced(t.Context(), func(event string) { got = append(got, event) }), http.MethodPost, address, "{}")
		req.Header["Idempotency-Key"] = []string{"1"}
		wantRead(t, c, req, "200 ok")
	}
	want := []string{"get", "got", "wrote", "get", "got", "wrote", "get", "got", "wrote"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A server that cannot be reached is an error of the dialer.
func TestUnreachable(t *testing.T) {
	var failed *net.OpError
	_, err := newClient(t, nil).RoundTrip(request(t.Context(), http.MethodPost, "http://127.0.0.1:1", "{}"))
	if !errors.As(err, &failed) || failed.Op != "dial" {
		t.Errorf("got %v, want an error of the dialer", err)
	}
}

// Idle connections are closed when there are too many, after their time, when the server has closed them, and on
// request.
func TestIdle(t *testing.T) {
	defer http1.SetSweep(5 * time.Millisecond)()
	together := func(t *testing.T, c *client, srv *httptest.Server, n int) {
		var ready, all sync.WaitGroup
		ready.Add(n)
		for range n {
			all.Go(func() {
				resp, err := c.RoundTrip(request(t.Context(), http.MethodGet, srv.URL, ""))
				ready.Done()
				if err != nil {
					t.Error(err)
					return
				}
				ready.Wait() // all have a connection
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			})
		}
		all.Wait()
		if int(c.opened.Load()) != n {
			t.Errorf("got %d connections, want %d", c.opened.Load(), n)
		}
	}
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok") })
	for name, tc := range map[string]struct {
		change func(*http.Transport)
		end    func(*client, *httptest.Server)
		want   int64 // of 10 connections that are closed in the end
	}{
		"too many":             {func(rest *http.Transport) { rest.MaxIdleConnsPerHost = 3 }, func(*client, *httptest.Server) {}, 7},
		"too old":              {func(rest *http.Transport) { rest.IdleConnTimeout = 30 * time.Millisecond }, func(*client, *httptest.Server) {}, 10},
		"closed by the server": {nil, func(_ *client, srv *httptest.Server) { srv.CloseClientConnections() }, 10},
		"closed on request":    {nil, func(c *client, _ *httptest.Server) { c.CloseIdleConnections() }, 10},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(answer)
			defer srv.Close()
			c := newClient(t, tc.change)
			together(t, c, srv, 10)
			tc.end(c, srv)
			mcptest.Eventually(t, "all that should are closed", func() bool { return c.closed.Load() >= tc.want })
			wantRead(t, c, request(t.Context(), http.MethodGet, srv.URL, ""), "200 ok")
			c.CloseIdleConnections()
			if c.closed.Load() != c.opened.Load() {
				t.Errorf("in the end: got %d of %d connections closed", c.closed.Load(), c.opened.Load())
			}
		})
	}
}

// Whatever is cut off beside it, each request gets its own answer.
func TestNoMixing(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for i := range len(body) { // in chunks, so that some are cut off in the middle
			_, _ = w.Write(body[i : i+1])
			_ = http.NewResponseController(w).Flush()
		}
	}))
	defer srv.Close()
	c := newClient(t, nil)
	var wg sync.WaitGroup
	var whole atomic.Int64
	for worker := range 16 {
		wg.Go(func() {
			for i := range 100 {
				text := strconv.Itoa(1_000_000*worker + i)
				ctx, cancel := context.WithCancel(t.Context())
				if i%3 == 0 {
					time.AfterFunc(time.Duration(i)*10*time.Microsecond, cancel)
				}
				got, err := read(c, request(ctx, http.MethodPost, srv.URL, text))
				switch {
				case err == nil && got == "200 "+text:
					whole.Add(1)
				case i%3 != 0 || err == nil:
					t.Errorf("got %q, %v, want %q", got, err, "200 "+text)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if whole.Load() < 16*66 {
		t.Errorf("got %d whole answers, want at least the %d that were not cut off", whole.Load(), 16*66)
	}
}

package faults

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// clientFaults are those of clients. The world's own client, and the neighbour's, do nothing wrong.
func clientFaults() []fault {
	refused := func(raw string) func(w *world) string {
		return func(w *world) string {
			w.start(nil, w.serve(subject, &mcptest.Server{}))
			w.ready()
			got := w.within(ample, func(ctx context.Context) mcptest.Reply {
				resp, err := w.client.Post(ctx, raw)
				if err != nil {
					return mcptest.Reply{Err: err}
				}
				defer resp.Body.Close()
				return w.client.Read(ctx, resp)
			})
			return got.Outcome() + ", then " + w.write("write", 0).Outcome()
		}
	}
	const call = `"method":"tools/call","params":{"name":"subject__write","arguments":{"key":"never"}}`
	const bad, unparsable = "HTTP 400 -32600, then result", "HTTP 400 -32700, then result"
	return []fault{
		{name: "a request with a member twice", outcome: bad, run: refused(`{"jsonrpc":"2.0","id":1,"id":2,` + call + `}`)},
		{name: "a request with a member in two cases", outcome: bad, run: refused(`{"jsonrpc":"2.0","id":1,"Method":"ping",` + call + `}`)},
		{name: "a request with invalid UTF-8", outcome: bad, run: refused(`{"jsonrpc":"2.0","id":"` + "\xff" + `",` + call + `}`)},
		{name: "a request nested a million deep", outcome: unparsable,
			run: refused(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + `}}`)},
		{name: "a request of 8 MiB", outcome: "HTTP 413 -32600, then result",
			run: refused(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 8<<20) + `"}}`)},
		{name: "a request with the id of another that runs", outcome: "HTTP 400 -32600, the first: result", run: repeated},
		{name: "a client that is gone while its tool writes", outcome: "it runs to its end, then result", run: func(w *world) string {
			w.start(nil, w.serve(subject, &mcptest.Server{}))
			w.ready()
			w.leave(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"subject__slow","arguments":{"key":%q,"ms":200}}}`, nil)
			return "it runs to its end, then " + w.write("write", 0).Outcome()
		}},
		{name: "a client of 2026-07-28 that is gone while its tool writes", outcome: "the call is cancelled, then result", run: func(w *world) string {
			ended := make(chan struct{}, 1)
			s := &mcptest.Server{}
			s.OnHTTP = func(_ http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
				if m.Call().Name != "slow" {
					return false
				}
				if err := w.ledger.Add(m.Key()); err != nil {
					w.t.Error(err)
				}
				<-r.Context().Done()
				ended <- struct{}{}
				return true
			}
			w.start(nil, w.serve(subject, s))
			w.ready()
			w.leave(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"subject__slow","arguments":{"key":%q},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}}}`,
				http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"subject__slow"}})
			select {
			case <-ended:
			case <-time.After(ample):
				return "the call runs on"
			}
			return "the call is cancelled, then " + w.write("write", 0).Outcome()
		}},
		{name: "a client that does not read its answer", outcome: "it is cut, then result", waits: true, run: unread},
		{name: "slowloris: a client that sends its header byte by byte", outcome: "it is cut, then result", waits: true,
			run: slowly("POST /proxy/mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")},
	}
}

// repeated has a client use the id of a call that runs for another.
func repeated(w *world) string {
	w.start(nil, w.serve(subject, &mcptest.Server{}))
	w.ready()
	first := make(chan mcptest.Reply, 1)
	key := w.key()
	do := func(arguments string) mcptest.Reply {
		return w.within(ample, func(ctx context.Context) mcptest.Reply {
			return w.client.DoAs(ctx, `"same"`, "tools/call", `{"name":"subject__slow","arguments":`+arguments+`}`)
		})
	}
	go func() { first <- do(fmt.Sprintf(`{"key":%q,"ms":%d}`, key, ample.Milliseconds()/10)) }()
	w.wait("the first call", w.begun(key))
	second := do(`{"key":"never"}`).Outcome()
	r := <-first
	w.done(key, r)
	return second + ", the first: " + r.Outcome()
}

// leave sends a call that writes a key, %q in raw, and closes the connection once it has begun.
func (w *world) leave(raw string, header http.Header) {
	w.t.Helper()
	key := w.key()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.base+"/proxy/mcp", strings.NewReader(fmt.Sprintf(raw, key)))
	if err != nil {
		w.t.Fatal(err)
	}
	if header != nil {
		req.Header = header
	} else {
		req.Header.Set("Mcp-Session-Id", w.client.Session)
	}
	req.Header.Set("Content-Type", "application/json")
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if resp, err := w.http.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body) // it is cut
			resp.Body.Close()
		}
	}()
	w.wait("the call", w.begun(key))
	cancel()
	<-gone
}

// conn opens a raw connection to the router.
func (w *world) conn() net.Conn {
	w.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(w.base, "http://"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	return c
}

// patience bounds how long the router may let a client take: the longest of its own limits is a minute.
const patience = time.Minute + slack

// unread asks for a large result and never reads it.
func unread(w *world) string {
	s := &mcptest.Server{}
	s.OnHTTP = func(rw http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
		if m.Call().Name != "echo" || !w.broken.Load() {
			return false
		}
		rw.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(rw, m.Response(`{"content":[{"type":"text","text":"`+strings.Repeat("x", 7<<20)+`"}]}`))
		return true
	}
	w.start(nil, w.serve(subject, s))
	w.ready()
	w.broken.Store(true)
	c := w.conn()
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"subject__echo","arguments":{}}}`
	fmt.Fprintf(c, "POST /proxy/mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	return w.cut(c)
}

// slowly sends the beginning of a request, and then a byte now and again.
func slowly(beginning string) func(w *world) string {
	return func(w *world) string {
		w.start(nil, w.serve(subject, &mcptest.Server{}))
		w.ready()
		c := w.conn()
		_, _ = io.WriteString(c, beginning) // whether it is cut shows below
		return w.cut(c)
	}
}

// cut waits until the router has closed the connection, which shows when it takes no more bytes, and then
// calls a tool.
func (w *world) cut(c net.Conn) string {
	began := time.Now()
	for {
		if _, err := c.Write([]byte("x")); err != nil {
			break
		}
		if time.Since(began) > patience {
			return "it is not cut"
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.slowest = time.Since(began)
	w.broken.Store(false)
	return "it is cut, then " + w.write("write", 0).Outcome()
}

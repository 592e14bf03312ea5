package faults

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// attackerProcess is the process of the caller who attacks, and of the tools that it calls. Where attacks have their
// full sizes, it takes the processor time that others leave, as a caller on another machine does.
type attackerProcess struct {
	t     *testing.T
	tools string // URL
	in    io.WriteCloser
	out   *bufio.Reader
	begun chan struct{} // closed once a request got through
	ended chan string   // its last line
	once  sync.Once
	last  string
}

// through is the line that an attacker prints once a request got through.
const through = "through"

// startAttacker starts the process of an attacker, who waits for begin.
func startAttacker(t *testing.T, at attack) *attackerProcess {
	t.Helper()
	command := []string{os.Args[0]}
	if *full {
		command = []string{"nice", "-n", "19", os.Args[0]}
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), asAttacker+"="+at.name, sizeVar+"="+strconv.FormatBool(*full))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &attackerProcess{t: t, in: in, out: bufio.NewReader(out), begun: make(chan struct{}), ended: make(chan string, 1)}
	t.Cleanup(func() {
		kill := time.AfterFunc(slack, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		p.end()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the attacker ended with %v", err)
		}
	})
	p.tools = p.line()
	go func() { // ends with the process
		line := p.line()
		if line == through {
			close(p.begun)
			line = p.line()
		}
		p.ended <- line
	}()
	return p
}

func (p *attackerProcess) line() string {
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Errorf("reading from the attacker: %v", err)
	}
	return strings.TrimSpace(line)
}

// begin starts the attack on the router at base.
func (p *attackerProcess) begin(base string) {
	if _, err := fmt.Fprintln(p.in, base); err != nil {
		p.t.Error(err)
	}
}

// end ends the attack and returns how many requests got through to the router, and how many of them it refused.
func (p *attackerProcess) end() (sent, refused int) {
	p.once.Do(func() {
		p.in.Close()
		p.last = <-p.ended
	})
	_, _ = fmt.Sscan(p.last, &sent, &refused)
	return sent, refused
}

// attackAs is what the process of an attacker does: it prints the URL of its tools, reads that of the router,
// attacks until its input ends, and prints how many requests it sent and how many were refused. Once the first got
// through, it prints that.
func attackAs(name string) {
	*full = os.Getenv(sizeVar) == "true"
	i := slices.IndexFunc(attacks, func(at attack) bool { return at.name == name })
	tools := httptest.NewServer(&mcptest.Server{OnHTTP: loud})
	fmt.Println(tools.URL)
	a := &attacker{http: clientOf(0)}
	if _, err := fmt.Scan(&a.base); err == nil {
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() { attacks[i].run(ctx, a) })
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
		a.http.CloseIdleConnections()
		tools.CloseClientConnections()
		wg.Wait()
	}
	fmt.Println(a.sent.Load(), a.refused.Load())
}

// failed reports an error of the attacker. The test sees that nothing was sent.
func (a *attacker) failed(err error) { fmt.Fprintln(os.Stderr, "attacker:", err) }

// attacker is the caller who attacks. It is a process of its own.
type attacker struct {
	base          string // of the router, http://127.0.0.1:PORT
	http          *http.Client
	sent, refused atomic.Int64
}

// size returns how large an attack is.
func (a *attacker) size(short, long int) int {
	if *full {
		return long
	}
	return short
}

// flood does something in several goroutines again and again until ctx ends.
func (a *attacker) flood(ctx context.Context, at int, do func()) {
	var wg sync.WaitGroup
	for range at {
		wg.Go(func() {
			for ctx.Err() == nil {
				do()
				time.Sleep(20 * time.Millisecond) // it is to load the router, not the machine
			}
		})
	}
	wg.Wait()
}

func (a *attacker) call(tool string, ms int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"loud__%s","arguments":{"ms":%d}}}`, tool, ms)
}

// open begins a session of a client of that name and returns the headers of its requests.
func (a *attacker) open(ctx context.Context, name string) http.Header {
	return a.openAt(ctx, a.base+"/proxy/mcp", name)
}

func (a *attacker) openAt(ctx context.Context, url, name string) http.Header {
	h := a.postTo(ctx, url, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"`+name+`","version":"1"}}}`, nil)
	return http.Header{"Mcp-Session-Id": {h.Get("Mcp-Session-Id")}}
}

// post sends a message to the proxy surface, waits for the answer and drops it.
func (a *attacker) post(ctx context.Context, message string, h http.Header) http.Header {
	return a.postTo(ctx, a.base+"/proxy/mcp", message, h)
}

func (a *attacker) postTo(ctx context.Context, url, message string, h http.Header) http.Header {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(message))
	if err != nil {
		a.failed(err)
		return nil
	}
	for name, values := range h {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.http.Do(req)
	if err != nil {
		return nil // it is cut, or the attack is over
	}
	defer resp.Body.Close()
	a.count(resp.StatusCode)
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.Header
}

func (a *attacker) count(status int) {
	a.countSent()
	if status >= 300 {
		a.refused.Add(1)
	}
}

func (a *attacker) countSent() {
	if a.sent.Add(1) == 1 {
		fmt.Println(through)
	}
}

// send sends a request on a connection of its own and reads the head of the answer, for as long as the router bears
// it.
func (a *attacker) send(ctx context.Context, body string, h http.Header) {
	a.raw(ctx, body, len(body), h)
}

// upload announces a body, sends a part of it and stalls.
func (a *attacker) upload(ctx context.Context, announced, part int) {
	a.raw(ctx, strings.Repeat(" ", part), announced, nil)
}

func (a *attacker) raw(ctx context.Context, body string, length int, h http.Header) {
	ctx, cancel := context.WithTimeout(ctx, time.Second) // then it begins again
	defer cancel()
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.base, "http://"))
	if err != nil {
		return
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	fmt.Fprintf(conn, "POST /proxy/mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: %s\r\nContent-Type: application/json\r\nAccept: application/json\r\nContent-Length: %d\r\n", key(0), length)
	for name, values := range h {
		fmt.Fprintf(conn, "%s: %s\r\n", name, values[0])
	}
	if _, err := io.WriteString(conn, "\r\n"+body); err != nil {
		return
	}
	a.countSent()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return
	}
	if resp.StatusCode >= 300 {
		a.refused.Add(1)
		return
	}
	<-ctx.Done()
}

// unreadSSE opens an SSE stream and never reads what it asks for on it.
func unreadSSE(ctx context.Context, a *attacker) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.base, "http://"))
	if err != nil {
		a.failed(err)
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /proxy/sse HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: %s\r\n\r\n", key(0))
	r := bufio.NewReader(conn)
	path := ""
	for path == "" {
		line, err := r.ReadString('\n')
		if err != nil {
			a.failed(err)
			return
		}
		path, _ = strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !strings.HasPrefix(path, "/") {
			path = ""
		}
	}
	var id atomic.Int64
	a.flood(ctx, 8, func() {
		n := id.Add(1)
		tool, size := "noise", 8*mib
		if n%3 == 0 {
			tool, size = "big", 16*mib
		}
		a.postTo(ctx, a.base+path, strings.Replace(a.call(tool, size), `"id":1`, fmt.Sprintf(`"id":%d`, n), 1), nil)
	})
}

// unreadGET opens the streams of sessions and never reads what calls cause on them.
func unreadGET(ctx context.Context, a *attacker) {
	sessions := make([]http.Header, a.size(20, 200))
	for i := range sessions {
		sessions[i] = a.open(ctx, "x")
		conn, err := net.Dial("tcp", strings.TrimPrefix(a.base, "http://"))
		if err != nil {
			a.failed(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET /proxy/mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: %s\r\nAccept: text/event-stream\r\nMcp-Session-Id: %s\r\n\r\n", key(0), sessions[i].Get("Mcp-Session-Id"))
	}
	var id atomic.Int64
	a.flood(ctx, 8, func() {
		n := id.Add(1)
		h := sessions[n%int64(len(sessions))].Clone()
		h.Set("Accept", "application/json")
		a.post(ctx, strings.Replace(a.call("noise", 8*mib), `"id":1`, fmt.Sprintf(`"id":%d`, n), 1), h)
	})
}

package edge_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/router/edge"
)

// frame is one server-sent event.
type frame struct{ event, data, id, retry, comment string }

// events reads server-sent events until the stream ends.
type events struct {
	t testing.TB
	r *bufio.Reader
}

func readEvents(t testing.TB, r io.Reader) *events { return &events{t, bufio.NewReader(r)} }

// next returns the next event; false at the end of the stream.
func (e *events) next() (frame, bool) {
	var f frame
	for {
		line, err := e.r.ReadString('\n')
		if err != nil {
			return f, false
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			return f, true
		case name == "":
			f.comment = value
		case name == "event":
			f.event = value
		case name == "data":
			f.data += value
		case name == "id":
			f.id = value
		case name == "retry":
			f.retry = value
		default:
			e.t.Errorf("got line %q in an event stream, want a field", line)
		}
	}
}

// message returns the next event that is a message.
func (e *events) message() string {
	e.t.Helper()
	for {
		f, ok := e.next()
		if !ok {
			e.t.Fatal("the stream ended, want a message")
		}
		if f.event == "message" {
			if !json.Valid([]byte(f.data)) {
				e.t.Fatalf("got data %q, want JSON", f.data)
			}
			return f.data
		}
	}
}

// resumable starts a call that has sent one notification and hangs up. It returns the id of that event.
func (w *wire) resumable(h header, id string) string {
	w.t.Helper()
	ctx, hangUp := context.WithCancel(context.Background())
	defer hangUp()
	before := w.edge.Tracked()
	resp := w.do(ctx, "POST", "/mcp", call(id, "notify-hold", "{}"), h)
	f, _ := readEvents(w.t, resp.Body).next()
	if f.id == "" || f.retry != "1000" || f.data != string(progress([]byte(id), 0)) {
		w.t.Fatalf("first event: got %+v, want progress with id and retry", f)
	}
	if got := w.edge.Tracked(); got != before+1 {
		w.t.Fatalf("in flight: got %d, want %d", got, before+1)
	}
	return f.id
}

func (w *wire) resume(h header, last string) (*http.Response, *events) {
	w.t.Helper()
	resp := w.do(context.Background(), "GET", "/mcp", "", header{"Mcp-Session-Id": h["Mcp-Session-Id"],
		"Last-Event-ID": last})
	return resp, readEvents(w.t, resp.Body)
}

// sseClient is a client of the HTTP+SSE transport.
type sseClient struct {
	w        *wire
	events   *events
	endpoint string
	close    func()
}

func (w *wire) sse(h header) *sseClient {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w.t.Cleanup(cancel)
	resp := w.do(ctx, http.MethodGet, "/sse", "", h)
	if resp.StatusCode != 200 {
		w.t.Fatalf("GET /sse: got %d, want 200", resp.StatusCode)
	}
	ev := readEvents(w.t, resp.Body)
	f, _ := ev.next()
	if f.event != "endpoint" || !strings.HasPrefix(f.data, "/messages/?session_id=") {
		w.t.Fatalf("first event: got %+v, want the endpoint", f)
	}
	return &sseClient{w: w, events: ev, endpoint: f.data, close: cancel}
}

func (c *sseClient) post(body string, h header) (int, string) {
	c.w.t.Helper()
	resp := c.w.do(context.Background(), http.MethodPost, c.endpoint, body, h)
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// stdioClient is a client at the other end of two pipes.
type stdioClient struct {
	t    testing.TB
	in   *io.PipeWriter
	out  *bufio.Reader
	done chan error
}

func newStdio(t testing.TB, e *edge.Edge, s edge.Handler) *stdioClient {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &stdioClient{t: t, in: inW, out: bufio.NewReaderSize(outR, 64<<10), done: make(chan error, 1)}
	go func() {
		c.done <- e.ServeStdio(context.Background(), inR, outW, s)
		outW.Close()
	}()
	t.Cleanup(func() { inW.Close(); outR.Close() })
	return c
}

func (c *stdioClient) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *stdioClient) line() string {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Fatalf("reading stdout: %v", err)
	}
	if !json.Valid([]byte(line)) {
		c.t.Fatalf("got line %q, want JSON", line)
	}
	return strings.TrimSuffix(line, "\n")
}

// finish closes stdin and waits for a good end.
func (c *stdioClient) finish() {
	c.t.Helper()
	c.in.Close()
	select {
	case err := <-c.done:
		if err != nil {
			c.t.Errorf("ServeStdio: got %v, want nil", err)
		}
	case <-time.After(20 * time.Second):
		c.t.Error("ServeStdio did not return within 5 s of EOF")
	}
}

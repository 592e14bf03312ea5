package edge_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// Everything read before EOF is answered, also if it is pipelined.
func TestStdioDrains(t *testing.T) {
	e := edge.New(edge.Options{})
	defer e.Stop(context.Background())
	var in, out bytes.Buffer
	for i := range 200 {
		fmt.Fprintln(&in, call(fmt.Sprint(i), "burst", `{"n":5}`))
	}
	in.WriteString(call("200", "echo", "{}")) // no newline at the end
	if err := e.ServeStdio(context.Background(), &in, &out, newServer()); err != nil {
		t.Fatalf("ServeStdio: got %v, want nil", err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if want := 200*6 + 1; len(lines) != want {
		t.Errorf("got %d lines, want %d", len(lines), want)
	}
	results := strings.Count(out.String(), `"result"`)
	if results != 201 {
		t.Errorf("got %d responses, want 201", results)
	}
	if e.Sessions() != 0 || e.Tracked() != 0 {
		t.Errorf("got %d sessions and %d requests, want none", e.Sessions(), e.Tracked())
	}
}

// Input that ends before anything is written is answered too.
func TestStdioShortInput(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the goroutine started last runs first
	for range 20 {
		e := edge.New(edge.Options{})
		var out bytes.Buffer
		if err := e.ServeStdio(t.Context(), strings.NewReader("not JSON\n"), &out, newServer()); err != nil {
			t.Fatalf("ServeStdio: got %v, want nil", err)
		}
		if got := strings.Count(out.String(), "-32700"); got != 1 {
			t.Fatalf("got %q, want one parse error", &out)
		}
		if err := e.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStdioRefusals(t *testing.T) {
	w := newWire(t, edge.Options{Limits: limit.Config{BodyBytes: 1000}})
	p := newStdio(t, w.edge, w.srv)
	long := strings.Repeat("a", 200_000)
	rows := []struct {
		line, id string
		code     int
	}{
		{"{bad", "null", -32700},
		{`"x"`, "null", -32600},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, "null", -32600},
		{`{"jsonrpc":"2.0","id":7,"method":5}`, "7", -32600},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"` + long + `"}}`, "null", -32600},
		{"[]", "null", -32600},
		{"[" + call("1", "echo", "{}") + "]", "null", -32600},
	}
	for _, row := range rows {
		p.send(row.line)
		checkError(t, p.line(), row.id, row.code)
	}
	p.send("  \r")
	p.send(call("1", "hold", "{}"))
	mcptest.Eventually(t, "the call is served", func() bool { return len(w.srv.log()) == 1 })
	p.send(call("1", "echo", "{}"))
	checkError(t, p.line(), "1", -32600)
	close(w.srv.release)
	equal(t, "the first of the two", p.line(), `{"jsonrpc":"2.0","id":1,"result":{"held":true}}`)
	p.finish()
}

// Without initialize the session has the newest version with sessions; with it, the negotiated one.
func TestStdioSession(t *testing.T) {
	w := newWire(t, edge.Options{})
	p := newStdio(t, w.edge, w.srv)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"seen"}`)
	if got := p.line(); !strings.Contains(got, `"Version":"2025-11-25"`) || strings.Contains(got, `"Session":""`) {
		t.Errorf("without initialize: got %s, want a session of version 2025-11-25", got)
	}
	p.send(initialize("2025-03-26"))
	p.line()
	p.send(`{"jsonrpc":"2.0","id":1,"method":"seen"}`)
	if got := p.line(); !strings.Contains(got, `"Version":"2025-03-26"`) || !strings.Contains(got,
		`"Info":{"name":"c","version":"1"}`) {
		t.Errorf("after initialize: got %s, want version 2025-03-26 and the client", got)
	}
	p.finish()
	equal(t, "Ended", w.srv.ends(), 1)
}

func TestStdioEndsWithItsContext(t *testing.T) {
	e := edge.New(edge.Options{})
	defer e.Stop(context.Background())
	srv := newServer()
	inR, inW := io.Pipe()
	defer inW.Close()
	outR, outW := io.Pipe()
	defer outR.Close()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.ServeStdio(ctx, inR, outW, srv) }()
	go func() { _, _ = io.Copy(io.Discard, outR) }()
	fmt.Fprintln(inW, call("1", "sleep", "{}"))
	mcptest.Eventually(t, "the call is served", func() bool { return len(srv.log()) == 1 })
	cancel(cause)
	equal(t, "ServeStdio", <-done, cause)
	equal(t, "cause of the call", srv.lastCause(), edge.ErrSessionEnded)
	if _, err := inW.Write([]byte("x")); err == nil {
		t.Error("stdin is open, want it closed")
	}
}

func TestStdioBrokenOutput(t *testing.T) {
	e := edge.New(edge.Options{})
	defer e.Stop(context.Background())
	srv := newServer()
	inR, inW := io.Pipe()
	defer inW.Close()
	outR, outW := io.Pipe()
	outR.Close()
	done := make(chan error, 1)
	go func() { done <- e.ServeStdio(context.Background(), inR, outW, srv) }()
	fmt.Fprintln(inW, call("1", "sleep", "{}"))
	fmt.Fprintln(inW, call("2", "echo", "{}"))
	if err := <-done; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("ServeStdio: got %v, want io.ErrClosedPipe", err)
	}
	equal(t, "cause of the call in flight", srv.lastCause(), edge.ErrSessionEnded)
}

func TestStdioBrokenInput(t *testing.T) {
	e := edge.New(edge.Options{})
	defer e.Stop(context.Background())
	broken := errors.New("broken")
	in := io.MultiReader(strings.NewReader(call("1", "echo", "{}")+"\n"), errReader{broken})
	var out bytes.Buffer
	if err := e.ServeStdio(context.Background(), in, &out, newServer()); !errors.Is(err, broken) {
		t.Errorf("ServeStdio: got %v, want the error of the reader", err)
	}
	equal(t, "answer", out.String(), `{"jsonrpc":"2.0","id":1,"result":{"echo":{}}}`+"\n")
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// After the end of input the client gets its responses, but Stop waits no longer than the grace period.
func TestStopAfterTheEndOfInput(t *testing.T) {
	w := newWire(t, edge.Options{})
	p := newStdio(t, w.edge, w.srv)
	p.send(call("1", "sleep", "{}"))
	mcptest.Eventually(t, "the call is served", func() bool { return len(w.srv.log()) == 1 })
	p.in.Close()
	mcptest.Eventually(t, "the session takes nothing more", func() bool { return w.edge.Sessions() == 0 })
	answer := make(chan string, 1)
	go func() { answer <- p.line() }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	equal(t, "Stop", w.edge.Stop(ctx), nil)
	contains(t, "answer", <-answer, `"id":1,`)
	equal(t, "ServeStdio", <-p.done, nil)
}

// Written messages are not charged any more: more may pass through a session than may wait in it.
func TestStdioPassesMoreThanItHolds(t *testing.T) {
	const size, total = 1 << 20, 80 << 20 // 64 MiB may wait
	w := newWire(t, edge.Options{})
	p := newStdio(t, w.edge, w.srv)
	lines := bufio.NewReaderSize(p.out, size)
	line := func() (err error) {
		for err = bufio.ErrBufferFull; errors.Is(err, bufio.ErrBufferFull); {
			_, err = lines.ReadSlice('\n')
		}
		return err
	}
	for passed := 0; passed < total; passed += size {
		p.send(call("1", "big", fmt.Sprintf(`{"n":%d}`, size)))
		read := make(chan error, 1)
		go func() { read <- line() }()
		select {
		case err := <-read:
			if err != nil {
				t.Fatalf("after %d bytes: %v", passed, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("after %d bytes the answers do not come any more", passed)
		}
	}
	p.finish()
}

package tests

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// piped runs `nexus stdio --demo` with the given lines as its whole input and returns what it wrote to
// standard output, line by line, once it has ended well.
func piped(t *testing.T, lines ...string) []message {
	t.Helper()
	dir := t.TempDir()
	cmd := command(dir, "stdio", "--demo")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	cmd.WaitDelay = patience
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("nexus stdio ended with %v, want exit status 0\n%s", err, &log)
	}
	var messages []message
	for line := range bytes.Lines(out.Bytes()) {
		if line[len(line)-1] != '\n' {
			t.Errorf("got a last line without its end: %q", line)
		}
		messages = append(messages, decode[message](t, line))
	}
	for _, p := range processes(t, "TMPDIR="+dir) {
		t.Errorf("process %d is left behind: %s", p.pid, p.line)
	}
	return messages
}

// Requests that are all there at once, without a handshake, are all answered after the end of the input.
func TestStdioPipelined(t *testing.T) {
	t.Parallel()
	var lines []string
	want := map[string]string{}
	for i := range 50 {
		id := fmt.Sprint(i)
		if i%2 == 1 {
			id = fmt.Sprintf("%q", id) // 1 and "1" are different requests
		}
		lines = append(lines, fmt.Sprintf(
			`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"run","arguments":{"tool":"calculate","parameters":{"expression":"%d * 3"}}}}`, id, i))
		want[id] = fmt.Sprint(i * 3)
	}
	for _, m := range piped(t, lines...) {
		text, asked := want[string(m.ID)]
		if !asked || m.Error != nil {
			t.Errorf("got an answer to %s with error %+v, want results of what was asked, once", m.ID, m.Error)
			continue
		}
		delete(want, string(m.ID))
		if got := decode[toolResult](t, m.Result).text(); got != text {
			t.Errorf("request %s: got %q, want %s", m.ID, got, text)
		}
	}
	if len(want) > 0 {
		t.Errorf("%d requests were not answered: %v", len(want), want)
	}
}

// A whole session of a desktop client, its query cut off by the end of the input.
func TestStdioSession(t *testing.T) {
	t.Parallel()
	messages := piped(t,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":"list","method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":"ask","method":"tools/call","params":{"_meta":{"progressToken":7},"name":"process_query","arguments":{"query":"latest AI news"}}}`,
	)
	answers := map[string]int{}
	reports := 0
	for _, m := range messages {
		switch {
		case m.Method == "notifications/progress" && answers[`"ask"`] > 0:
			t.Errorf("got progress %s after the answer", m.Params)
		case m.Method == "notifications/progress":
			reports++
		case m.Method == "":
			answers[string(m.ID)]++
		}
		if string(m.ID) != "1" {
			continue
		}
		hello := decode[struct {
			ProtocolVersion string
			ServerInfo      struct{ Name string }
		}](t, m.Result)
		if hello.ProtocolVersion != "2025-06-18" || hello.ServerInfo.Name != "agenticnexus-router" {
			t.Errorf("initialize: got %+v, want version 2025-06-18 of agenticnexus-router", hello)
		}
	}
	if want := map[string]int{"1": 1, `"list"`: 1, `"ask"`: 1}; !maps.Equal(answers, want) {
		t.Errorf("got answers to %v, want %v", answers, want)
	}
	if reports < 5 {
		t.Errorf("got %d progress notifications, want at least the five fixed ones", reports)
	}
}

func TestStdioBadInput(t *testing.T) {
	t.Parallel()
	messages := piped(t,
		`{"jsonrpc":"2.0","id":1,"method":"ping"`,
		`not JSON`,
		``,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":2,"id":3,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":"ok","method":"ping"}`,
	)
	codes := map[int]int{}
	for _, m := range messages {
		if m.Error != nil {
			codes[m.Error.Code]++
		} else if string(m.ID) != `"ok"` {
			t.Errorf("got a result for %s, want one for \"ok\" only", m.ID)
		}
	}
	if codes[-32700] != 2 || codes[-32600] != 2 || len(messages) != 5 {
		t.Errorf("got error codes %v in %d messages, want two of -32700, two of -32600 and one result", codes, len(messages))
	}
}

// SIGTERM ends it although its input is still open.
func TestStdioTerminated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := command(dir, "stdio", "--demo")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, log := &mcptest.Log{}, &mcptest.Log{}
	cmd.Stdout, cmd.Stderr = out, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer cmd.Process.Kill()
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	mcptest.Eventually(t, "the answer to ping", func() bool { return strings.HasSuffix(out.String(), "\n") })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Errorf("got %v after SIGTERM, want exit status 0\n%s", err, log)
		}
	case <-time.After(patience):
		t.Errorf("nexus stdio has not ended %v after SIGTERM", patience)
	}
	if got := strings.Count(out.String(), "\n"); got != 1 {
		t.Errorf("got %d lines on standard output, want the one answer:\n%s", got, out)
	}
}

package faults

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// longLine is the length of a line that nobody wants.
const longLine = 128 << 20

func stdioFaults() []fault {
	killed := func(tool string) func(w *world) string {
		return func(w *world) string {
			w.start(nil, w.child(""))
			w.ready()
			return w.meanwhile(tool, w.kill, func() {})
		}
	}
	after := func(manner string) func(w *world) string {
		return func(w *world) string {
			w.start(nil, w.child(manner))
			w.ready()
			return w.write("write", 0).Outcome() + ", then " + w.write("write", 0).Outcome()
		}
	}
	return []fault{
		{name: "kill -9 of a stdio server, idle", outcome: "result", run: func(w *world) string {
			w.start(nil, w.child(""))
			w.ready()
			pid := w.pid()
			w.signal(pid, syscall.SIGKILL)
			w.wait("the process to be gone", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
			return w.write("write", 0).Outcome()
		}},
		{name: "kill -9 of a stdio server, while it writes", outcome: "-32000 outcome_unknown, then result", run: killed("slow")},
		{name: "kill -9 of a stdio server, while it reads", outcome: "result, then result", run: killed("wait")},
		{name: "a stdio server prints noise", outcome: "result, then result", run: after("noise")},
		{name: "a stdio server floods its error output", outcome: "result, then result", run: after("stderr")},
		{name: "a line of 128 MiB on stdio", outcome: "-32000 too_large, then result", run: after("line")},
		{name: "invalid messages on stdio before the response", outcome: "result, then result", run: after("invalid")},
		{name: "invalid responses on stdio", outcome: "-32000 protocol, then result", run: after("broken")},
		{name: "responses with wrong, unknown and repeated ids", outcome: "result, then result", run: after("ids")},
		{name: "a request of the server with the id of a call", outcome: "result, then result", run: after("question")},
		{name: "progress after the response", outcome: "result, then result", run: after("late")},
		{name: "a stdio server closes its output", outcome: "-32000 outcome_unknown, then result", run: after("close")},
		{name: "a stdio server stops reading and answering", outcome: "-32000 timeout, then result", run: func(w *world) string {
			c := w.child("")
			c.Timeout = short
			w.start(nil, c)
			w.ready()
			pid := w.pid()
			w.pause(pid)
			got := w.write("write", 0).Outcome()
			w.signal(pid, syscall.SIGCONT)
			w.ready()
			return got + ", then " + w.write("write", 0).Outcome()
		}},
	}
}

// misbehave makes a server on stdio fail in one manner at each call of write.
func misbehave(manner string, s *mcptest.Server) {
	s.OnLine = func(m mcptest.Message, write func(string)) bool {
		if m.Call().Name != "write" || manner == "" {
			return false
		}
		if manner == "stderr" {
			_, _ = os.Stderr.Write(bytes.Repeat([]byte(strings.Repeat("an error that nobody reads ", 40)+"\n"), 1<<12))
			return false
		}
		if manner == "noise" {
			write("starting up\n{\"level\":\"info\"}\n\n\x00\xff\n" + strings.Repeat("noise ", 1<<16) + "\n")
			return false
		}
		writes, err := s.Ledger.Writes()
		if err == nil {
			err = s.Ledger.Add(m.Key())
		}
		if err != nil {
			_, _ = io.WriteString(os.Stderr, err.Error()+"\n")
			os.Exit(1)
		}
		if len(writes) > 0 && slices.Contains([]string{"line", "close", "broken"}, manner) {
			write(m.Response("{}") + "\n") // once was enough
			return true
		}
		say(manner, m, write)
		return true
	}
}

// say answers a call in a manner.
func say(manner string, m mcptest.Message, write func(string)) {
	send := func(format string, args ...any) { write(fmt.Sprintf(format, args...) + "\n") }
	id := string(m.ID)
	switch manner {
	case "line":
		block := strings.Repeat("x", 1<<20)
		for range longLine / len(block) {
			write(block)
		}
		write("\n")
		return
	case "close":
		_ = os.Stdout.Close() // it ends with the process at the latest
		return
	case "invalid":
		send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, strings.Repeat("[", 1<<20))
		send(`{"jsonrpc":"2.0","id":%s,"id":%s,"result":{"of":"two ids"}}`, id, id)
		send(`[{"jsonrpc":"2.0","id":%s,"result":{"of":"a batch"}}]`, id)
	case "broken":
		send(`{"jsonrpc":"2.0","id":%s,"result":{"text":"%s"}}`, id, "\xff\xfe")
		send(`{"jsonrpc":"2.0","id":%s,"result":{"of":"one"},"Result":{"of":"another"}}`, id)
		send(`{"jsonrpc":"2.0","id":%s,"result":{},"error":{"code":1,"message":"both"}}`, id)
	case "ids":
		send(`{"jsonrpc":"2.0","id":987654,"result":{"of":"nobody"}}`)
		send(`{"jsonrpc":"2.0","id":%q,"result":{"of":"a string"}}`, id)
		send(`{"jsonrpc":"2.0","id":%s.0,"result":{"of":"a fraction"}}`, id)
		send(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}`)
		defer send(`{"jsonrpc":"2.0","id":%s,"result":{"content":[],"of":"a second time"}}`, id)
	case "question":
		send(`{"jsonrpc":"2.0","id":%s,"method":"ping"}`, id)
		send(`{"jsonrpc":"2.0","id":%s,"method":"roots/list"}`, id)
	case "late":
		token := m.Call().Meta.Token
		defer func() {
			for n := range 100 {
				send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, token, n+1)
			}
		}()
	}
	send("%s", m.Response(`{"content":[]}`))
}

// pid asks the subject for the process that serves it.
func (w *world) pid() int {
	w.t.Helper()
	r := w.call("pid", "{}")
	pid, err := strconv.Atoi(r.Text())
	if err != nil {
		w.t.Fatalf("asking for the process: got %s (%s), want its ID", r.Text(), r.Outcome())
	}
	return pid
}

func (w *world) signal(pid int, sig syscall.Signal) {
	w.t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		w.t.Fatalf("sending %v to process %d: %v", sig, pid, err)
	}
}

// pause stops a process and waits until it has stopped.
func (w *world) pause(pid int) {
	w.t.Helper()
	w.signal(pid, syscall.SIGSTOP)
	w.wait("the process to stop", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || bytes.Contains(stat, []byte(") T ")) // only Linux has /proc
	})
}

// kill kills the process of the subject.
func (w *world) kill() { w.t.Helper(); w.signal(w.pid(), syscall.SIGKILL) }

// meanwhile calls a tool that takes time, has something happen while it does, and returns what came of the
// call and, after the healing, of another.
func (w *world) meanwhile(tool string, happen, heal func()) string {
	w.t.Helper()
	key, ms := w.key(), 500
	if tool == "slow" {
		ms = int(ample / time.Millisecond) // longer than it will get
	}
	got := make(chan mcptest.Reply, 1)
	go func() { got <- w.call(tool, fmt.Sprintf(`{"key":%q,"ms":%d}`, key, ms)) }()
	w.wait("the call to begin", w.begun(key))
	happen()
	r := <-got
	if tool == "slow" {
		w.done(key, r)
	}
	heal()
	w.ready()
	return r.Outcome() + ", then " + w.write("write", 0).Outcome()
}

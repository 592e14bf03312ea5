package faults

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
	"github.com/agenticnexus/agenticnexus/tests/nexustest"
)

// processFaults are those of the process of the router itself.
func processFaults() []fault {
	return []fault{
		{name: "a full disk for the log", outcome: "result, exit status 0", run: func(w *world) string {
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil {
				w.t.Skip("there is no /dev/full") // only Linux has it
			}
			defer full.Close()
			p := w.program(full, "", w.remote(&mcptest.Server{}))
			w.ready()
			got := w.write("write", 0).Outcome()
			w.unvisit()
			return got + ", " + p.end(syscall.SIGTERM)
		}},
		{name: "SIGTERM under load", outcome: "calls that reached their tool: result; the others: refused; exit status 0", run: terminated},
		{name: "reloads under load, some of a bad file", outcome: "every call: result, exit status 0", run: reloaded},
		{name: "kill -9 of the router", outcome: "its servers end", run: func(w *world) string {
			p := w.program(&w.log, "", w.local())
			w.ready()
			pid := w.pid()
			w.unvisit()
			p.end(syscall.SIGKILL)
			w.wait("the server to end", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
			return "its servers end"
		}},
		{name: "a pause of the whole router: its clocks jump ahead", outcome: "result, then result, exit status 0", waits: true, run: func(w *world) string {
			p := w.program(&w.log, "health: {interval: 500ms, timeout: 200ms}", w.local())
			w.ready()
			return w.meanwhile("wait", func() {
				w.pause(p.cmd.Process.Pid)
				time.Sleep(3 * time.Second) // many intervals of the health check, and its limit
				w.signal(p.cmd.Process.Pid, syscall.SIGCONT)
			}, w.unvisit) + ", " + p.end(syscall.SIGTERM)
		}},
	}
}

// terminated ends the router while clients call. A client may find its connection closed, as clients of any
// HTTP server may; then its call has not begun.
func terminated(w *world) string {
	p := w.program(&w.log, "", w.remote(&mcptest.Server{}))
	w.ready()
	var results, others atomic.Int64
	stop := w.load(func(r mcptest.Reply) {
		if r.Outcome() == "result" {
			results.Add(1)
		} else {
			others.Add(1)
		}
	})
	w.wait("results", func() bool { return results.Load() > 10*callers })
	w.unvisit()
	end := p.end(syscall.SIGTERM)
	w.wait("refusals", func() bool { return others.Load() > callers })
	stop()
	writes, err := w.ledger.Writes()
	if err != nil {
		w.t.Error(err)
	}
	for key, outcome := range w.keys {
		switch {
		case outcome == "result":
		case writes[key] > 0:
			return "a call that reached its tool: " + outcome
		case outcome != "no answer" && outcome != "HTTP 503 -32000 unavailable" && outcome != "-32000 unavailable":
			return "another call: " + outcome
		}
	}
	return "calls that reached their tool: result; the others: refused; " + end
}

// reloaded changes the subject again and again while clients call it, and has a file in between that is no good.
func reloaded(w *world) string {
	url := w.serve(subject, &mcptest.Server{}).URL
	p := w.program(&w.log, "", fmt.Sprintf("{url: %q}", url))
	w.ready()
	var results atomic.Int64
	var wrong atomic.Value
	stop := w.load(func(r mcptest.Reply) {
		if r.Outcome() == "result" {
			results.Add(1)
		} else {
			wrong.Store(fmt.Sprintf("a call: %s %s (%v), ", r.Outcome(), r.Error, r.Err))
		}
	})
	for n := range 10 {
		before := results.Load()
		w.wait("results", func() bool { return results.Load() >= before+callers || wrong.Load() != nil })
		config, said := fmt.Sprintf("{url: %q, timeout: %ds}", url, 20+n), "configuration reloaded"
		if n%5 == 4 {
			config, said = "{url: 7}", "Configuration not reloaded"
		}
		count := strings.Count(w.log.String(), said)
		p.w.configure(p.file, config, p.rest)
		w.signal(p.cmd.Process.Pid, syscall.SIGHUP)
		w.wait(said, func() bool { return strings.Count(w.log.String(), said) > count })
	}
	stop()
	if got := wrong.Load(); got != nil {
		return got.(string) + p.end(syscall.SIGTERM)
	}
	w.unvisit()
	return "every call: result, " + p.end(syscall.SIGTERM)
}

// process is a running nexus program.
type process struct {
	w    *world
	cmd  *exec.Cmd
	file string        // its configuration
	rest string        // of it, behind the subject
	done chan struct{} // closed when it has exited
}

// configure writes a configuration in one step.
func (w *world) configure(file, subjectConfig, rest string) {
	w.t.Helper()
	err := os.WriteFile(file+".new", []byte("mcpServers:\n  "+subject+": "+subjectConfig+"\n"+rest), 0o600)
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// remote and local configure the subject as a server over HTTP, or as a process.
func (w *world) remote(s *mcptest.Server) string {
	return fmt.Sprintf("{url: %q}", w.serve(subject, s).URL)
}

func (w *world) local() string {
	c := w.child("")
	var env []string
	for name, value := range c.Env {
		env = append(env, fmt.Sprintf("%s: %q", name, value.Reveal()))
	}
	return fmt.Sprintf("{command: %q, env: {%s}}", c.Command, strings.Join(env, ", "))
}

// program starts the nexus program with a subject and a neighbour.
func (w *world) program(log interface{ Write([]byte) (int, error) }, settings, subjectConfig string) *process {
	w.t.Helper()
	dir := w.t.TempDir()
	file := filepath.Join(dir, "nexus.yaml")
	rest := fmt.Sprintf("  %s: {url: %q}\nexecution: {retry_delay: 10ms}\n%s\n", neighbour, w.serve(neighbour, &mcptest.Server{}).URL, settings)
	w.configure(file, subjectConfig, rest)
	for {
		address := w.freeAddress()
		p := &process{w: w, file: file, rest: rest, cmd: exec.Command(os.Getenv(binaryVar), "serve", "--config", file, "--listen", address), done: make(chan struct{})}
		p.cmd.Env = nexustest.Env(dir)
		p.cmd.Stdout, p.cmd.Stderr = log, log
		if err := p.cmd.Start(); err != nil {
			w.t.Fatalf("starting nexus serve: %v", err)
		}
		go func() {
			_ = p.cmd.Wait() // end reads the state
			close(p.done)
		}()
		w.wait("the router to listen", func() bool { return p.exited() || w.alive(address) })
		if !p.exited() { // else the address was taken in between
			w.t.Cleanup(func() { p.end(syscall.SIGKILL) })
			w.reach("http://" + address)
			return p
		}
	}
}

// ports counts the routers that this process has started.
var ports atomic.Int64

// freeAddress returns an address that nothing listens on. The log cannot tell it, which may be lost. On Linux all
// of 127.0.0.0/8 is this machine, and each process has an address there of its own.
func (w *world) freeAddress() string {
	w.t.Helper()
	if pid := os.Getpid(); runtime.GOOS == "linux" {
		return fmt.Sprintf("127.%d.%d.%d:%d", 64+pid>>16, pid>>8&0xff, pid&0xff, 20_000+ports.Add(1))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func (w *world) alive(address string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), slack)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/livez", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := w.http.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func (p *process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// end sends a signal, waits for the end and says how it ended.
func (p *process) end(sig syscall.Signal) string {
	p.w.t.Helper()
	_ = p.cmd.Process.Signal(sig) // it may have ended
	select {
	case <-p.done:
	case <-time.After(ample + slack):
		_ = p.cmd.Process.Kill()
		<-p.done
		p.w.t.Errorf("the router has not ended after %v", sig)
	}
	return p.cmd.ProcessState.String()
}

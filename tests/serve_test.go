package tests

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
	"github.com/agenticnexus/agenticnexus/tests/nexustest"
)

// patience bounds every wait for something that should happen soon.
const patience = 25 * time.Second

// router is a running `nexus serve`.
type router struct {
	t    *testing.T
	url  string // of its base, without a slash at the end
	dir  string // its working directory, and TMPDIR of it and its children
	cmd  *exec.Cmd
	log  *mcptest.Log
	end  chan struct{} // closed when it has exited
	code int           // that it is to exit with
	once sync.Once
}

// serve starts `nexus serve` with a configuration, empty for none, on a free port of the loopback. The end
// of the test stops it and checks that it ended well.
func serve(t *testing.T, config string, args ...string) *router {
	t.Helper()
	r := &router{t: t, dir: t.TempDir(), log: &mcptest.Log{}, end: make(chan struct{})}
	args = append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)
	if config != "" {
		file := filepath.Join(r.dir, "nexus.yaml")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", file)
	}
	r.cmd = command(r.dir, args...)
	r.cmd.Stdout, r.cmd.Stderr = r.log, r.log
	if err := r.cmd.Start(); err != nil {
		t.Fatalf("starting nexus serve: %v", err)
	}
	go func() {
		_ = r.cmd.Wait() // stop reads the exit code
		close(r.end)
	}()
	t.Cleanup(r.stop)
	r.url = "http://" + r.waitLog(`msg=listening address=(\S+)`)[1]
	return r
}

// A port that is taken is one line that says what to do, and nothing else.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cmd := command(t.TempDir(), "serve", "--demo", "--listen", taken.Addr().String())
	out, err := cmd.CombinedOutput()
	want := "nexus: cannot listen on " + taken.Addr().String() + ": bind: address already in use; " +
		"choose another address with --listen, NEXUS_LISTEN or listen in the settings\n"
	if string(out) != want || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("got %q and %v, want %q and exit status 1", out, err, want)
	}
}

// command returns a call of the program in a folder, with an environment that holds no settings.
func command(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = nexustest.Env(dir)
	return cmd
}

// waitLog waits until the log has a match and returns it with its groups.
func (r *router) waitLog(pattern string) []string {
	r.t.Helper()
	re := regexp.MustCompile(pattern)
	var found []string
	mcptest.Eventually(r.t, "a log line like "+pattern, func() bool {
		found = re.FindStringSubmatch(r.log.String())
		return found != nil || r.exited()
	})
	if found == nil {
		r.t.Fatalf("nexus serve ended (%v) before its log had %s", r.cmd.ProcessState, pattern)
	}
	return found
}

func (r *router) exited() bool {
	select {
	case <-r.end:
		return true
	default:
		return false
	}
}

// stop ends the router with SIGTERM and checks its exit code, its last words and that no child is left.
func (r *router) stop() {
	r.once.Do(func() {
		t := r.t
		t.Helper()
		if !r.exited() {
			_ = r.cmd.Process.Signal(syscall.SIGTERM) // an exit in between shows below
		}
		select {
		case <-r.end:
		case <-time.After(patience):
			t.Errorf("nexus serve has not ended %v after SIGTERM", patience)
			_ = r.cmd.Process.Kill()
			<-r.end
		}
		if code := r.cmd.ProcessState.ExitCode(); code != r.code {
			t.Errorf("nexus serve ended with %v, want exit status %d", r.cmd.ProcessState, r.code)
		}
		for _, text := range []string{"Shutdown signal received", "Starting graceful shutdown..."} {
			if !strings.Contains(r.log.String(), text) {
				t.Errorf("the log lacks %q", text)
			}
		}
		for _, p := range processes(t, "TMPDIR="+r.dir) {
			t.Errorf("process %d is left behind: %s", p.pid, p.line)
		}
		if t.Failed() {
			t.Logf("log of nexus serve:\n%s", r.log)
		}
	})
}

// process is one that runs on this machine.
type process struct {
	pid  int
	line string // its command line
}

// processes returns the processes that have all the given variables; none without /proc, which only Linux
// has.
func processes(t *testing.T, variables ...string) (found []process) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		environ, err := os.ReadFile(file)
		if err != nil || !hasAll(environ, variables) { // it may be gone by now
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		found = append(found, process{
			pid:  atoi(t, filepath.Base(filepath.Dir(file))),
			line: strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " ")),
		})
	}
	return found
}

func hasAll(environ []byte, variables []string) bool {
	environ = append([]byte{0}, environ...)
	for _, v := range variables {
		if !bytes.Contains(environ, []byte("\x00"+v+"\x00")) {
			return false
		}
	}
	return true
}

// A service manager that asks for it is told when the router is ready, and when it begins to stop.
func TestNotify(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	if err := manager.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	cmd := command(t.TempDir(), "serve", "--demo", "--listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+name)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	for _, want := range []string{"READY=1", "STOPPING=1"} {
		told := make([]byte, 100)
		n, err := manager.Read(told)
		if got := string(told[:n]); err != nil || got != want {
			t.Fatalf("got %q, %v, want %s", got, err, want)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("got %v, want a good end", err)
	}
}

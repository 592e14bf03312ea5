package bench

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// program is a running nexus with one downstream server, which the benchmark serves itself.
type program struct {
	b      *testing.B
	pid    int
	url    string
	path   string // of the endpoint; empty is /proxy/mcp
	client *http.Client
}

// start builds the program and runs it before the tools of a server, with a session for each client or a
// shared one.
func start(b *testing.B, session string, tool http.HandlerFunc) *program {
	b.Helper()
	return run(b, build(b), session, "", tool)
}

// build builds the program.
func build(b *testing.B) string {
	b.Helper()
	bin := filepath.Join(b.TempDir(), "nexus")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", bin, "../../cmd/nexus").CombinedOutput(); err != nil {
		b.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// run runs a built program with further settings and variables of the environment.
func run(b *testing.B, bin, session, settings string, tool http.HandlerFunc, env ...string) *program {
	b.Helper()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		b.Skip("memory is read from /proc")
	}
	dir := b.TempDir()
	tools := httptest.NewServer(downstreamServer(`{"tools":[{"name":"tool","inputSchema":{"type":"object"}}]}`, tool))
	b.Cleanup(tools.CloseClientConnections)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	config := filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf("listen: %s\nmcpServers: {srv: {url: %q, session: %s}}\nlog: {level: error}\n%s", addr, tools.URL+"/mcp", session, settings)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(bin, "serve", "--config", config)
	cmd.Stderr = os.Stderr
	cmd.Env = append(append(os.Environ(), "NEXUS_STATE="+filepath.Join(dir, "state")), env...)
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	p := &program{b: b, pid: cmd.Process.Pid, url: "http://" + addr, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4096}}}
	b.Cleanup(func() {
		p.client.CloseIdleConnections()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		tools.CloseClientConnections()
	})
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if resp, err := p.client.Get(p.url + "/readyz"); err == nil {
			resp.Body.Close()
			return p
		}
		if time.Now().After(deadline) {
			b.Fatal("nexus does not get ready")
		}
	}
}

// clientOf is a client of an endpoint of a router in this process.
func clientOf(b *testing.B, a *app.App, path string) *program {
	p := &program{b: b, url: "http://" + a.Addr(), path: path, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4096}}}
	b.Cleanup(p.client.CloseIdleConnections)
	return p
}

// downstreamServer speaks the handshake, answers tools/list with the list and leaves calls to call.
func downstreamServer(list string, call http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, _ := io.ReadAll(r.Body)
		m, _ := jsonrpc.Parse(body)
		var result string
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"srv","version":"1"}}`
		case "tools/list":
			result = list
		case "tools/call", "notifications/cancelled":
			r.Body = io.NopCloser(bytes.NewReader(body))
			call(w, r)
			return
		default:
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(jsonrpc.Result(m.ID, []byte(result)))
	})
}

// post sends a message and returns the answer, whose body the caller closes.
func (p *program) post(session, message string) *http.Response {
	req, err := http.NewRequest(http.MethodPost, p.url+cmp.Or(p.path, "/proxy/mcp"), strings.NewReader(message))
	if err != nil {
		p.b.Error(err)
		return nil
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		p.b.Error(err)
		return nil
	}
	return resp
}

// open begins a client session.
func (p *program) open() string {
	resp := p.post("", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
	if resp == nil {
		p.b.FailNow()
	}
	drain(resp)
	return resp.Header.Get("Mcp-Session-Id")
}

// listen opens the stream of a session.
func (p *program) listen(id string) *http.Response {
	req, _ := http.NewRequestWithContext(p.b.Context(), http.MethodGet, p.url+cmp.Or(p.path, "/proxy/mcp"), nil)
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Mcp-Session-Id", id)
	resp, err := p.client.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		p.b.Fatalf("GET: %v %v", resp, err)
	}
	return resp
}

func drain(resp *http.Response) int64 {
	n, _ := io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return n
}

// call is a tools/call of the one tool, padded by so many bytes.
func call(id, padding int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"srv__tool","arguments":{"text":%q}}}`, id, strings.Repeat("x", padding))
}

// memory returns a figure of /proc/PID/status in bytes: VmRSS, or VmHWM for the peak.
func (p *program) memory(name string) float64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/status")
	if err != nil {
		p.b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), name+":")
	kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		p.b.Fatal(err)
	}
	return kib * 1024
}

// cpu returns the time for which the program has run, by the scheduler's clock.
func (p *program) cpu() time.Duration {
	files, err := filepath.Glob("/proc/" + strconv.Itoa(p.pid) + "/task/*/schedstat")
	if err != nil || len(files) == 0 {
		p.b.Fatal("the time of the program cannot be read: ", err)
	}
	all := 0
	for _, file := range files {
		text, _ := os.ReadFile(file) // a thread may have ended
		before, _, _ := strings.Cut(string(text), " ")
		ns, _ := strconv.Atoi(before)
		all += ns
	}
	return time.Duration(all)
}

// forgetPeak makes VmHWM count from now.
func (p *program) forgetPeak() {
	if err := os.WriteFile("/proc/"+strconv.Itoa(p.pid)+"/clear_refs", []byte("5"), 0); err != nil {
		p.b.Skip("the peak cannot be reset: ", err)
	}
}

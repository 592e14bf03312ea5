package faults

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// reloadFaults damage the configuration of a router whose callers need a key.
func reloadFaults() []fault {
	const notReloaded = "Configuration not reloaded"
	var faults []fault
	for _, damage := range []struct {
		name, said string
		do         func(file string, content []byte) error
	}{
		{"empty", notReloaded, func(file string, _ []byte) error { return os.Truncate(file, 0) }},
		{"missing", notReloaded, func(file string, _ []byte) error { return os.Rename(file, file+".away") }},
		{"partial", notReloaded, func(file string, content []byte) error {
			return os.Truncate(file, int64(strings.Index(string(content), "      tools:")))
		}},
		{"one without keys", "auth.api_keys is not set", func(file string, content []byte) error {
			return os.Truncate(file, int64(strings.Index(string(content), "auth:")))
		}},
	} {
		faults = append(faults, fault{
			name: "a configuration file becomes " + damage.name, outcome: "no key: 401; the key: result, other tools unknown; exit status 0", waits: true,
			run: func(w *world) string {
				const key = "the right one"
				w.http.Transport = mcptest.WithKey(w.http.Transport, key)
				settings := fmt.Sprintf("auth:\n  api_keys:\n    - name: only\n      sha256: %x\n      tools:\n        deny: [%s__write]", sha256.Sum256([]byte(key)), subject)
				p := w.program(&w.log, settings, w.remote(&mcptest.Server{}))
				w.ready()
				content, err := os.ReadFile(p.file)
				if err == nil {
					err = damage.do(p.file, content)
				}
				if err != nil {
					w.t.Fatal(err)
				}
				w.wait(damage.said, func() bool { return strings.Contains(w.log.String(), damage.said) })
				got := fmt.Sprintf("no key: %d", w.stranger())
				got += "; the key: " + w.call("echo", `{}`).Outcome()
				if w.call("write", `{"key":"x"}`).Error != nil {
					got += ", other tools unknown"
				}
				w.unvisit()
				return got + "; " + p.end(syscall.SIGTERM)
			},
		})
	}
	return faults
}

// stranger calls without a key and returns the status of the answer.
func (w *world) stranger() int {
	w.t.Helper()
	resp, err := w.http.Transport.(mcptest.Keyed).RoundTripper.RoundTrip(w.request(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + subject + `__echo","arguments":{}}}`))
	if err != nil {
		w.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func (w *world) request(body string) *http.Request {
	w.t.Helper()
	r, err := http.NewRequest(http.MethodPost, w.base+"/proxy/mcp", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	return r
}

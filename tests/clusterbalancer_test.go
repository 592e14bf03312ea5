package tests

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// The balancers of docs/scaling.md pass on streams as they come, and fail no call while replicas restart.
func TestCluster_Balancers(t *testing.T) {
	guide := read(t, "docs/scaling.md")
	for _, test := range []struct {
		program string
		port    [2]string // in the guide, and with an address
		hashing string    // lines to remove
		args    []string  // before the configuration
	}{
		{"nginx", [2]string{"listen 80;", "listen ADDRESS;"}, `(?m)^ *(map|hash) .*\n`, []string{"-e", "stderr", "-g", "daemon off; master_process off; pid nginx.pid;", "-p", ".", "-c"}},
		{"haproxy", [2]string{"bind :80", "bind ADDRESS"}, `(?m)^.*without hashing: remove this line\n`, []string{"-q", "-db", "-f"}},
	} {
		for _, name := range []string{test.program, test.program + " without hashing"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				path, err := exec.LookPath(test.program)
				if err != nil {
					t.Skip(test.program + " is not installed")
				}
				_, text, _ := strings.Cut(guide, "```"+test.program+"\n")
				text, _, _ = strings.Cut(text, "```\n")
				if name != test.program {
					text = regexp.MustCompile(test.hashing).ReplaceAllString(text, "")
				}
				c := cluster(t, 2)
				address := freeAddress(t)
				text = strings.ReplaceAll(strings.ReplaceAll(text, test.port[0], test.port[1]), "ADDRESS", address)
				text = strings.NewReplacer("10.0.0.1:8002", c.replicas[0].Address, "10.0.0.2:8002", c.replicas[1].Address, "http {",
					"http { client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t; uwsgi_temp_path t; scgi_temp_path t;").Replace(text)
				log := &mcptest.Log{}
				balancer := exec.CommandContext(t.Context(), path, append(test.args, filepath.Join(c.dir, "balancer"))...)
				balancer.Dir, balancer.Stdout, balancer.Stderr = c.dir, log, log
				if err := os.WriteFile(filepath.Join(c.dir, "balancer"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := balancer.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					_ = balancer.Wait() // the end of the test has killed it
					if t.Failed() {
						t.Logf("%s\n%s", log, text)
					}
				})
				c.front = "http://" + address
				mcptest.Eventually(t, "the balancer to pass on", func() bool {
					response, err := c.http.Get(c.front + "/readyz")
					if err == nil {
						response.Body.Close()
					}
					return err == nil && response.StatusCode == http.StatusOK
				})
				for _, key := range []string{"a", "b"} { // at home and elsewhere, unless hashed
					client, err := mcptest.Dial(t.Context(), c.http, c.front+"/proxy/mcp")
					if err != nil {
						t.Fatal(err)
					}
					c.streams(client, key)
				}
				load := c.load(3, 10*time.Millisecond)
				for _, r := range c.replicas {
					if code := r.Stop(); code != 0 {
						t.Errorf("%s ended with %d, want 0", r.Name, code)
					}
					c.start(r)
				}
				load.end("result")
			})
		}
	}
}

// streams checks that events arrive when they are sent.
func (c *replicated) streams(client *mcptest.Client, key string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	response, err := client.Post(ctx, `{"jsonrpc":"2.0","id":"s","method":"tools/call","params":{"name":"work__wait","arguments":{"key":"`+key+
		`","ms":1000},"_meta":{"progressToken":"s"}}}`)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	var came []time.Time
	_ = mcptest.Events(response.Body, func(_, _ string) { came = append(came, time.Now()) }) // until its end
	if len(came) < 3 || came[len(came)-1].Sub(came[0]) < 500*time.Millisecond {
		c.t.Errorf("got events at %v, want them as they are sent, within a second", came)
	}
}

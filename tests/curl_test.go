package tests

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// A session by hand with curl: connect to /sse, then post what a client says to the address it tells.
func TestCurlSSE(t *testing.T) {
	t.Parallel()
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("needs curl")
	}
	r := serve(t, "", "--demo")
	stream := &mcptest.Log{}
	listen := exec.Command(curl, "--silent", "--no-buffer", "--include", "--header", "Accept: text/event-stream", r.url+"/sse")
	listen.Stdout, listen.Stderr = stream, stream
	if err := listen.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = listen.Process.Kill() // the router may have ended the stream already
		_ = listen.Wait()
	})

	endpoint := regexp.MustCompile(`event: endpoint\r?\ndata: (/messages/\?session_id=\S+)\r?\n\r?\n`)
	mcptest.Eventually(t, "the endpoint event", func() bool { return endpoint.MatchString(stream.String()) })
	for _, header := range []string{"HTTP/1.1 200", "Content-Type: text/event-stream", "Cache-Control: no-cache", "X-Accel-Buffering: no"} {
		if !strings.Contains(strings.ToLower(stream.String()), strings.ToLower(header)) {
			t.Errorf("the head of the stream lacks %q:\n%s", header, stream)
		}
	}
	messages := r.url + endpoint.FindStringSubmatch(stream.String())[1]
	say := func(url, body string) string {
		t.Helper()
		out, err := exec.Command(curl, "--silent", "--output", "/dev/null", "--write-out", "%{http_code}",
			"--header", "Content-Type: application/json", "--data", body, url).Output()
		if err != nil {
			t.Fatalf("curl %s: %v", url, err)
		}
		return string(out)
	}
	for _, tt := range []struct{ body, id, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"curl","version":"8"}}}`,
			"1", `"protocolVersion":"2024-11-05"`},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "", ""},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, "2", `"process_query"`},
		{`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"run","arguments":{"tool":"calculate","parameters":{"expression":"2500 * 0.15"}}}}`,
			"3", `"result":375`},
	} {
		if status := say(messages, tt.body); status != "202" {
			t.Errorf("posting %s: got status %s, want 202", tt.body, status)
		}
		if tt.id == "" {
			continue
		}
		event := regexp.MustCompile(fmt.Sprintf(`event: message\r?\ndata: (\{.*"id":%s[,}].*)\r?\n\r?\n`, tt.id))
		mcptest.Eventually(t, "the answer to "+tt.body, func() bool { return event.MatchString(stream.String()) })
		if got := event.FindStringSubmatch(stream.String())[1]; !strings.Contains(got, tt.want) {
			t.Errorf("the answer to %s: got %s, want %s in it", tt.body, got, tt.want)
		}
	}
	for url, want := range map[string]string{
		r.url + "/messages/?session_id=unknown": "404",
		r.url + "/messages/":                    "400",
		messages:                                "400", // for what is no JSON
	} {
		if status := say(url, "{"); status != want {
			t.Errorf("posting { to %s: got status %s, want %s", url, status, want)
		}
	}
}

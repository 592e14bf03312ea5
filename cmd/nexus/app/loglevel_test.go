package app_test

import (
	"fmt"
	"testing"
)

// A log message of a server goes to a request of 2026-07-28 only if that asks for messages of its level.
func TestLogLevelOfModernRequests(t *testing.T) {
	log := peerTool{"log", object, func(c *peerCall) (string, string) {
		for _, level := range []string{"debug", "info", "error"} {
			c.send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"` + level + `","data":"d"}}`)
		}
		return textResult("logged"), ""
	}}
	r, _ := withPeer(t, nil, nil, log)
	for path, call := range map[string][2]string{
		"/proxy/mcp": {"peer__log", `{}`}, "/servers/peer/mcp": {"log", `{}`}, "/mcp": {"run", `{"tool":"log"}`},
	} {
		for level, want := range map[string]int{"": 0, "debug": 3, "info": 2, "critical": 0, "loud": 0} {
			c := r.dialModern(path, `{}`)
			meta := `{}`
			if level != "" {
				meta = fmt.Sprintf(`{"io.modelcontextprotocol/logLevel":%q}`, level)
			}
			reply := c.do("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s,"_meta":%s}`, call[0], call[1], meta))
			if reply.Result == nil || len(reply.notes) != want {
				t.Errorf("%s at level %q: got %d messages and %s %s, want %d", path, level, len(reply.notes), reply.Result, reply.Error, want)
			}
		}
	}
	c := r.dial("", nil)
	if reply := c.call("run", `{"tool":"log"}`, ""); len(reply.notes) != 3 {
		t.Errorf("with a handshake: got %d messages, want 3", len(reply.notes))
	}
}

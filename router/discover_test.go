package router_test

import (
	"strings"
	"testing"
)

// A client of 2026-07-28 has no handshake; it learns who answers from the _meta of server/discover.
func TestDiscover(t *testing.T) {
	s := newKit(t, nil).session()
	lines := s.ask(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}}}`)
	got := lines[len(lines)-1]
	for _, want := range []string{
		`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"agenticnexus-router"`, `"version":"1.2.3"`,
		`"supportedVersions":["2026-07-28"`, `"capabilities":{"tools":{}}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s in it", got, want)
		}
	}
}

// The router's own list never changes without a search, so that there is nothing to subscribe to.
func TestNoSubscriptions(t *testing.T) {
	s := newKit(t, nil).session()
	lines := s.ask(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if got := lines[len(lines)-1]; !strings.Contains(got, `"code":-32601`) {
		t.Errorf("got %s, want the code -32601", got)
	}
}

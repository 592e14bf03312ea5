package edge_test

import (
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/router/edge"
)

// A stranger learns from server/discover who answers, as any client of 2026-07-28 does: in _meta.
func TestDiscoverTellsStrangersWhoAnswers(t *testing.T) {
	w := newWire(t, edge.Options{Keys: keys(t), Name: "router", Version: "1.2.3"})
	_, _, body := w.post(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+modernMeta+`}}`, modernHeader("server/discover", ""))
	const want = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"router","version":"1.2.3"}}}}`
	if !strings.HasSuffix(strings.TrimSpace(body), want) {
		t.Errorf("got %s, want %s at the end", body, want)
	}
}

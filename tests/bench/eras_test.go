package bench

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// BenchmarkEras reports the CPU of a call of 2026-07-28 at a server of 2026-07-28 beside that of a call in a session at a
// server with sessions. One program serves both in turns, for one caller. The figures are those of the first quartile of
// the turns, because other programs disturb the rest.
func BenchmarkEras(b *testing.B) {
	const rounds, calls = 200, 100
	modern := httptest.NewServer(http.HandlerFunc(serveModern))
	b.Cleanup(modern.Close)
	p := run(b, build(b), fmt.Sprintf("shared}, new: {url: %q", modern.URL), "", answer)
	b.Cleanup(modern.CloseClientConnections)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	kinds := []struct {
		name, server, meta string
		header             http.Header
	}{
		{"session", "srv", `"_meta":{}`, http.Header{"Mcp-Session-Id": {p.open()}, "Mcp-Protocol-Version": {"2025-11-25"}}},
		{"modern", "new", meta, http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"new__tool"}}},
	}
	spent := make([][]time.Duration, len(kinds))
	for b.Loop() {
		for range rounds {
			for i, k := range kinds {
				body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s__tool","arguments":{"text":"x"},%s}}`, k.server, k.meta)
				before := p.cpu()
				for range calls {
					p.send(k.header, body)
				}
				spent[i] = append(spent[i], (p.cpu()-before)/calls)
			}
		}
	}
	quartile := func(of []time.Duration) float64 {
		slices.Sort(of)
		return float64(of[len(of)/4]) / 1000
	}
	old, now := quartile(spent[0]), quartile(spent[1])
	b.ReportMetric(old, "session-µs/call")
	b.ReportMetric(now, "modern-µs/call")
	b.ReportMetric(now/old, "modern/session")
}

// send sends a call, and fails unless it is answered with a result.
func (p *program) send(header http.Header, body string) {
	req, err := http.NewRequest(http.MethodPost, p.url+"/proxy/mcp", strings.NewReader(body))
	if err != nil {
		p.b.Fatal(err)
	}
	req.Header = header.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := p.client.Do(req)
	if err != nil {
		p.b.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(text), `"content"`) {
		p.b.Fatalf("got %s %s, %v, want a result", resp.Status, text, err)
	}
}

// serveModern is a server of 2026-07-28 with one tool.
func serveModern(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m, _ := jsonrpc.Parse(body)
	result := `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
	switch m.Method {
	case "tools/list":
		result = `{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"tool","inputSchema":{"type":"object"}}]}`
	case "tools/call":
		result = `{"resultType":"complete","content":[{"type":"text","text":"seen"}]}`
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(jsonrpc.Result(m.ID, []byte(result)))
}

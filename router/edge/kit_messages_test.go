package edge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

func initialize(version string) string {
	return `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"` + version +
		`","capabilities":{"sampling":{}},"clientInfo":{"name":"c","version":"1"}}}`
}

const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

func call(id, tool, args string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args +
		`,"_meta":{"progressToken":` + id + `}}}`
}

func request(id, method, meta string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{"name":"echo","_meta":{` + meta + `}}}`
}

func cancelOf(id, reason string) string {
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":` + reason + `}}`
}

func logMessage(i, bytes int) []byte {
	return jsonrpc.Notification("notifications/message", fmt.Appendf(nil, `{"level":"info","data":"%d %s"}`, i,
		strings.Repeat("x", bytes)))
}

func progress(token []byte, i int) []byte {
	return jsonrpc.Notification("notifications/progress",
		fmt.Appendf(nil, `{"progressToken":%s,"progress":%d}`, orNull(token), i))
}

func modern(id, method, members string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + members + modernMeta + `}}`
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"m","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"x":1}}`

func modernCall(tool string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":{},` +
		modernMeta + `}}`
}

func modernHeader(method, name string) header {
	return header{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name}
}

// roundTripOf is a tools/call of 2026-07-28. more is what a retry adds to its params.
func roundTripOf(id, tool, caps, token, more string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool +
		`","arguments":{},` + more +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":` +
		`"t","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":` + caps + `,"progressToken":` + token + `}}}`
}

const asks = `{"sampling":{},"elicitation":{}}`

// last is the last message of an answer, streamed or not.
func last(body string) []byte {
	body = strings.TrimSpace(body)
	if i := strings.LastIndex(body, "data: "); i >= 0 {
		body = body[i+len("data: "):]
	}
	return []byte(body)
}

// required returns the requests of an input_required result, and what a retry with the same response to each adds.
func required(t *testing.T, body, answer string) (requests, more string) {
	t.Helper()
	result := jsonrpc.Get(last(body), "result")
	if got := jsonrpc.Text(jsonrpc.Get(result, "resultType")); got != "input_required" {
		t.Fatalf("got %s, want input_required", body)
	}
	asked := jsonrpc.Get(result, "inputRequests")
	more = `"requestState":` + string(jsonrpc.Get(result, "requestState")) + `,`
	if answer != "" {
		responses := ""
		jsonrpc.Members(asked, func(name []byte, _ jsonrpc.Span) bool {
			responses += `,"` + string(name) + `":` + answer
			return true
		})
		more += `"inputResponses":{` + responses[1:] + `},`
	}
	return string(asked), more
}

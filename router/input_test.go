package router_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// form speaks 2026-07-28 and has one tool, which needs to know a name.
func form(m mcptest.Message, write func(string)) bool {
	reply := func(result string) { write(m.Response(result) + "\n") }
	switch m.Method {
	case "initialize":
		write(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32602,"message":"no handshake here"}}` + "\n")
	case "server/discover":
		reply(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
	case "tools/call":
		if answer := jsonrpc.Get(m.Params, "inputResponses", "n", "content"); answer != nil {
			reply(`{"resultType":"complete","content":[],"structuredContent":{"given":` + string(answer) + `,"state":` + string(jsonrpc.Get(m.Params, "requestState")) + `}}`)
		} else {
			reply(`{"resultType":"input_required","inputRequests":{"n":{"method":"elicitation/create","params":{"message":"Name?"}}},"requestState":"a\/b"}`)
		}
	default:
		return false
	}
	return true
}

// What a modern server needs in the course of a call comes from the client of the query, or of run.
func TestInput(t *testing.T) {
	k := newKit(t, func(_ *router.Options, o *downstream.Options) {
		s := &mcptest.Server{OnLine: form}
		s.SetTools(`[{"name":"form",` + anything + `}]`)
		o.Servers = append(o.Servers, downstream.ServerConfig{Name: "modern", Type: downstream.TransportStdio})
		o.Embedded["modern"] = func(context.Context) (io.ReadWriteCloser, error) { return dial(s), nil }
	})
	const query = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"process_query","arguments":{"query":"q","plan":[{"tool":"form"}]}}}`
	const run = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"tool":"form"}}}`
	for _, row := range []struct{ request, caps, want string }{
		{query, `{"elicitation":{}}`, `"success":true,"result":{"given":{"name":"Ada"},"state":"a\/b"}`},
		{run, `{"elicitation":{}}`, `"structuredContent":{"given":{"name":"Ada"},"state":"a\/b"}`},
		{query, `{}`, `"result":"Error: server modern needs an answer to elicitation/create: the client cannot be asked"`},
		{run, `{}`, `"message":"server modern needs an answer to elicitation/create: the client cannot be asked"`},
	} {
		s := k.sessionOf(row.caps)
		s.answer = `"result":{"action":"accept","content":{"name":"Ada"}}`
		lines := s.ask(row.request)
		if last := lines[len(lines)-1]; !strings.Contains(last, row.want) {
			t.Errorf("%s: got %s, want %s", row.caps, last, row.want)
		}
	}
}

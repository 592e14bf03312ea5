package downstream_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// Call connects to the server, if that is not done yet, and returns what it answers, byte for byte. What the server
// answers with an error is in the reply; what kept the call from an answer is a Go error.
func ExampleManager_Call() {
	srv := httptest.NewServer(&mcptest.Server{})
	defer srv.Close()
	m := downstream.New(downstream.Options{Servers: []downstream.ServerConfig{{Name: "files", URL: srv.URL}}})
	m.Start()
	defer m.Stop()
	reply, err := m.Call(context.Background(), &downstream.Request{
		Server: "files", Method: "tools/call", Tool: "echo",
		Params: catalog.Params("echo", []byte(`{"id":9007199254740993}`), nil),
	})
	fmt.Println(string(jsonrpc.Get(reply.Result, "content")), err)

	_, err = m.Call(context.Background(), &downstream.Request{Server: "mail", Method: "ping"})
	fmt.Println(err)
	// Output:
	// [{"type":"text","text":"{\"id\":9007199254740993}"}] <nil>
	// Unknown server: mail
}

// Package demo brings the MCP servers behind --demo: a search over a small embedded corpus, a
// calculator, an employee directory and an e-mail server that only records. They need no network, no
// key and no file.
//
// Each is a complete MCP server of every protocol era, spoken as newline-delimited JSON-RPC, so the
// router reaches them as it reaches any stdio server. All state lives in the Server value: two calls
// of Servers share nothing, and a Server may serve any number of connections, one after the other or
// at once.
package demo

import (
	"context"
	"io"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

const version = "1.0.0"

// Server is one demo server.
type Server struct {
	Name string // what the router's configuration would call it

	// Serve answers the requests of one connection until in ends, and returns nil once everything read
	// before is answered. Calls run concurrently; the progress of a call is written before its result;
	// a cancelled call gets no answer. Serve fails when out cannot be written, when a line is longer
	// than 4 MiB or when ctx ends; the last two cancel the calls in flight. If in is an io.Closer it is
	// closed when ctx ends or out fails, so that no read outlives the connection. Serve never closes
	// out: the caller does, after Serve has returned.
	Serve func(ctx context.Context, in io.Reader, out io.Writer) error
}

// Servers returns new demo servers: search, calculator, hr and email.
func Servers() []Server {
	return []Server{
		newServer("search", searchServer()),
		newServer("calculator", calculatorServer()),
		newServer("hr", directoryServer()),
		newServer("email", emailServer()),
	}
}

func newServer(name string, s *server.MCPServer) Server {
	return Server{Name: name, Serve: func(ctx context.Context, in io.Reader, out io.Writer) error {
		return serve(ctx, s, in, out)
	}}
}

// newMCPServer returns a server without tools.
func newMCPServer(name, title, instructions string) *server.MCPServer {
	return server.NewMCPServer("agenticnexus-demo-"+name, version,
		server.WithTitle(title),
		server.WithInstructions(instructions),
		server.WithToolCapabilities(false),
		server.WithStrictInputSchemaDefault(),
		server.WithRecovery(),
		server.WithCacheHints(cacheMillis, "public"),
	)
}

// readOnly annotates a tool that reads data of the demo.
func readOnly(title string) mcp.ToolOption {
	return mcp.WithToolAnnotation(mcp.ToolAnnotation{
		Title: title, ReadOnlyHint: mcp.ToBoolPtr(true), DestructiveHint: mcp.ToBoolPtr(false),
		IdempotentHint: mcp.ToBoolPtr(true), OpenWorldHint: mcp.ToBoolPtr(false),
	})
}

// cacheMillis is how long clients may keep lists, which never change.
const cacheMillis = 3_600_000

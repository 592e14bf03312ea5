// Package demo has the MCP servers of --demo: a search over a small embedded corpus, a calculator, an employee
// directory and an e-mail server that only records. They need no network, no key and no file.
//
// [Servers] returns them. Each is a complete MCP server of all protocol versions over newline-delimited JSON-RPC, so
// the router uses it like any stdio server. All state is in the Server value: two calls of Servers share nothing, and
// a Server may serve any number of connections, also concurrently.
package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

const version = "1.0.0"

// Server is one demo server.
type Server struct {
	Name string // its name in the configuration

	// Serve handles the requests of one connection until in ends, and returns nil when all are complete. Calls run
	// concurrently. The progress of a call precedes its result; a cancelled call gets no response. Serve fails when out
	// cannot be written, when a line is longer than 4 MiB or when ctx ends; the last two cancel the calls in flight. When
	// ctx ends or out fails, Serve closes in if that is an io.Closer. Serve does not close out.
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
		Title: title, ReadOnlyHint: new(true), DestructiveHint: new(false),
		IdempotentHint: new(true), OpenWorldHint: new(false),
	})
}

// cacheMillis is how long clients may keep lists, which never change.
const cacheMillis = 3_600_000

// handler decodes the arguments of a call strictly into T. Invalid arguments and errors of f become error
// results; those about arguments name the argument.
func handler[T any](f func(ctx context.Context, args T) (*mcp.CallToolResult, error)) server.ToolHandlerFunc {
	return func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var args T
		if err := decode(r.GetRawArguments(), &args); err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		result, err := f(ctx, args)
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		return result, nil
	}
}

func decode(arguments, into any) error {
	if arguments == nil {
		return nil
	}
	raw, err := json.Marshal(arguments)
	if err != nil {
		return fmt.Errorf("the arguments are not JSON: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(into)
	mismatch := (*json.UnmarshalTypeError)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &mismatch) && mismatch.Field != "":
		return fmt.Errorf("the argument %s is a %s, want %s",
			mismatch.Field, mismatch.Value, article(mismatch.Type.Kind().String()))
	case errors.As(err, &mismatch):
		return errors.New("the arguments are not a JSON object")
	}
	return fmt.Errorf("the arguments have an %s", strings.TrimPrefix(err.Error(), "json: "))
}

func article(kind string) string {
	if strings.HasPrefix(kind, "int") {
		return "an integer"
	}
	return "a " + kind
}

// required checks that a text argument is not blank.
func required(name, value string, limit int) error {
	if strings.TrimSpace(value) == "" {
		return fmt.Errorf("the argument %s is missing or empty", name)
	}
	return bound(name, value, limit)
}

func bound(name, value string, limit int) error {
	if utf8.RuneCountInString(value) > limit {
		return fmt.Errorf("the argument %s is longer than %d characters", name, limit)
	}
	return nil
}

package tests

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// TestScript runs testdata/script/*.txtar, which show the command line. Besides the commands of testscript
// there is `nexus CODE ARGS…`, which runs the program and wants that exit code. RUDE_URL is a server whose texts
// have control characters in them and that sends pictures, KEYED_URL one that wants a key, OAUTH_URL one that wants
// tokens, and REGISTRY_URL a registry.
func TestScript(t *testing.T) {
	t.Parallel()
	rude, keyed, registry := rudeServer(t), keyedServer(t), registryServer(t)
	oauth := &mcptest.OAuth{}
	t.Cleanup(mcptest.ServeOAuth(oauth, &mcptest.Server{}))
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("RUDE_URL", rude)
			env.Setenv("KEYED_URL", keyed)
			env.Setenv("OAUTH_URL", oauth.URL+"/mcp")
			env.Setenv("REGISTRY_URL", registry)
			env.Setenv("GORACE", os.Getenv("GORACE"))
			env.Setenv("PATH", filepath.Dir(program)+string(os.PathListSeparator)+env.Getenv("PATH"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"nexus": nexusCommand, "terminal": terminalCommand},
	})
}

// rudeServer serves the tools speak and fail, which try to colour the terminal and send a picture.
func rudeServer(t *testing.T) (url string) {
	const red = "\x1b[31mred\u009b0m\r\nsecond\tline\x7f"
	server := mcp.NewServer(&mcp.Implementation{Name: "rude", Version: "1"}, nil)
	for name, isError := range map[string]bool{"speak": false, "fail": true} {
		tool := &mcp.Tool{Name: name, Description: red, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}
		mcp.AddTool(server, tool, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: red}, &mcp.ImageContent{Data: []byte("x"), MIMEType: "image/png"}}, IsError: isError}, nil, nil
		})
	}
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(web.Close)
	return web.URL
}

// keyedServer serves the tool greet to those that have the key.
func keyedServer(t *testing.T) (url string) {
	server := mcp.NewServer(&mcp.Implementation{Name: "keyed", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "greet", Description: "Greets"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello"}}}, nil, nil
		})
	serve := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-API-Key") != "hunter2key" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		serve.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	return web.URL
}

// registryServer serves a registry that has one server.
func registryServer(t *testing.T) (url string) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"servers":[{"server":{"name":"com.example/calculator","version":"1.0.0",
			"description":"Calculates \u001b[31mred","remotes":[{"type":"sse","url":"http://h/sse"}]}}]}`))
	}))
	t.Cleanup(web.Close)
	return web.URL
}

func nexusCommand(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) < 1 {
		ts.Fatalf("usage: nexus CODE ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	if err != nil {
		ts.Fatalf("usage: nexus CODE ARGS…: %v", err)
	}
	err = ts.Exec(program, args[1:]...)
	code := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		ts.Fatalf("running nexus: %v", err)
	}
	if code != want {
		ts.Fatalf("got exit code %d, want %d", code, want)
	}
}

// terminalCommand runs a line of the shell on the terminal of ttyin. The terminal lasts a moment longer than the line,
// because testscript closes it even if it has not read all that was written.
func terminalCommand(ts *testscript.TestScript, negated bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: terminal LINE")
	}
	if err := ts.Exec("sh", "-c", "("+args[0]+"); code=$?; sleep 0.3; exit $code"); (err != nil) != negated {
		ts.Fatalf("the line ended with %v", err)
	}
}

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
)

// TestScript runs testdata/script/*.txtar, which show the command line. Besides the commands of testscript
// there is `nexus CODE ARGS…`, which runs the program and wants that exit code. RUDE_URL is a server whose texts
// have control characters in them and that sends pictures.
func TestScript(t *testing.T) {
	t.Parallel()
	rude := rudeServer(t)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("RUDE_URL", rude)
			env.Setenv("GORACE", os.Getenv("GORACE"))
			env.Setenv("PATH", filepath.Dir(program)+string(os.PathListSeparator)+env.Getenv("PATH"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"nexus": nexusCommand},
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

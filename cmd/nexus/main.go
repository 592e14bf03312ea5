// Command nexus is the AgenticNexus router: one MCP server in front of many.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/cases"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/registry"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/terminal"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/audit"
)

// Exit codes.
const (
	exitFine   = 0
	exitFailed = 1
	exitUsage  = 2 // wrong usage or configuration
	exitPartly = 3 // degraded health or answer, failed tasks or cases of an evaluation or batch, calls that were cut off
)

// exitError makes report return its code. If text is empty, report prints nothing.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

// cli defines the commands and flags.
type cli struct {
	Serve   serveCmd   `cmd:"" help:"Serve MCP over HTTP."`
	Stdio   stdioCmd   `cmd:"" help:"Serve MCP on standard input and output, for desktop clients."`
	Query   queryCmd   `cmd:"" help:"Ask a question."`
	Tools   toolsCmd   `cmd:"" help:"List or search the tools of all servers."`
	Call    callCmd    `cmd:"" help:"Call one tool."`
	Health  healthCmd  `cmd:"" help:"Show the health of the servers and models."`
	Cluster clusterCmd `cmd:"" help:"Show the replicas of a cluster, and empty one."`
	Batch   batchCmd   `cmd:"" help:"Ask the questions in a file, check the answers, report and compare."`
	Server  serverCmd  `cmd:"" help:"Add, list, search, examine and remove servers."`
	Audit   auditCmd   `cmd:"" help:"Check the audit log."`
	Auth    authCmd    `cmd:"" help:"Log in to servers that want OAuth tokens."`
	Policy  policyCmd  `cmd:"" help:"Explain decisions on calls."`
	setup
	Version versionCmd `cmd:"" help:"Print the version."`

	PrintVersion versionFlag `name:"version" help:"Print the version."`
}

// setup defines the commands that set up the router and its clients.
type setup struct {
	Client clientCmd `cmd:"" help:"Make MCP clients use the router."`
	Config configCmd `cmd:"" help:"Check, write and import configurations."`
	Keys   keysCmd   `cmd:"" help:"Make API keys."`

	Completion completionCmd `cmd:"" help:"Print a script that completes commands in a shell."`
}

// world is the environment of a command: context, streams and terminal.
type world struct {
	ctx            context.Context // ends with the first signal
	args           []string        // of the command line
	stdin          io.Reader
	stdout, stderr io.Writer
	terminal       bool // stderr is a terminal
	asks           bool // stdin and stderr are terminals, so the user can be asked
}

func main() {
	if err := protect(); err != nil {
		fmt.Fprintln(os.Stderr, "nexus: child processes can read the memory of this process: "+err.Error())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	w := &world{ctx: ctx, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, terminal: isTerminal(os.Stderr)}
	w.asks = w.terminal && isTerminal(os.Stdin)
	if isTerminal(os.Stdout) {
		w.stdout = screen{os.Stdout}
	}
	code := run(w, os.Args[1:])
	stop()
	os.Exit(code)
}

// run parses and runs the command line, and returns the exit code.
func run(w *world, args []string) int {
	w.args = args
	var c cli
	exited := -1
	bare := len(args) == 0
	if bare || args[0] == "help" {
		args = append(slices.Clone(args[min(1, len(args)):]), "--help")
	}
	parser, err := kong.New(&c,
		kong.Name("nexus"), kong.Description("AgenticNexus: one MCP server in front of many, with a planner."),
		kong.Writers(w.stdout, w.stderr), kong.Exit(func(code int) { exited = code }), kong.UsageOnError(), kong.Bind(w),
		kong.Vars{"registry": registry.Official},
		kong.DynamicCommand("man", "Write manual pages.", "", &manCmd{}, `hidden:""`),
		kong.DynamicCommand("complete", "Complete a command line.", "", &completeCmd{}, `hidden:""`))
	if err != nil {
		fmt.Fprintln(w.stderr, "nexus: "+err.Error())
		return exitFailed
	}
	if slices.ContainsFunc(args, func(arg string) bool { return !utf8.ValidString(arg) }) { // the parser would change it
		fmt.Fprintln(w.stderr, "nexus: a word of the command line is not UTF-8 text")
		return exitUsage
	}
	parsed, err := parser.Parse(args)
	switch {
	case bare:
		return exitUsage
	case exited >= 0:
		return exited // --help, --version
	}
	if err != nil {
		fmt.Fprintf(w.stderr, "nexus: %v; see nexus --help\n", err)
		return exitUsage
	}
	return report(w.stderr, parsed.Run(w))
}

// report prints err and returns its exit code. Each mistake in a file of cases has its own line.
func report(stderr io.Writer, err error) int {
	var exit *exitError
	var wrong *config.Error
	var conflict *catalog.Conflict
	var mistakes *cases.Error
	var unreadable *results.Error
	code := exitFailed
	switch {
	case err == nil:
		return exitFine
	case errors.As(err, &exit):
		code = exit.code
	case errors.As(err, &wrong), errors.As(err, &conflict), errors.As(err, &mistakes), errors.As(err, &unreadable),
		errors.Is(err, audit.ErrUnusable):
		code = exitUsage
	}
	text := err.Error()
	if errors.Is(err, context.Canceled) {
		text = "interrupted"
	}
	for line := range strings.Lines(text) {
		fmt.Fprintln(stderr, "nexus: "+terminal.Harmless(strings.TrimSuffix(line, "\n")))
	}
	return code
}

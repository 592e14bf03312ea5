package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

type serverDoctorCmd struct {
	Name string `arg:"" help:"The server." completes:"server"`
	configFlag
}

// Run connects to the server, lists what it offers and pings it.
func (c *serverDoctorCmd) Run(w *world) error {
	cfg, err := config.Load(c.Config, config.Options{})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(cfg.Servers, func(s downstream.ServerConfig) bool { return s.Name == c.Name })
	if i < 0 {
		var names []string
		for _, s := range cfg.Servers {
			names = append(names, s.Name)
		}
		return &exitError{exitUsage, fmt.Sprintf("unknown server %s; configured: %s", c.Name, strings.Join(names, ", "))}
	}
	server := cfg.Servers[i]
	if server.Unusable != "" {
		return &exitError{exitUsage, server.Unusable}
	}
	if runsOnce(&cfg, &server) {
		return &exitError{exitUsage, fmt.Sprintf("server %s runs at one replica of cluster %s and must not run here, too; "+
			"see the log of the replicas, or their page", c.Name, cfg.Cluster.Name)}
	}
	server.Disabled = false // to look at it changes nothing
	v := newVisit(w, &cfg, server)
	defer v.servers.Stop()
	if err := v.examine(w.ctx); err != nil {
		return v.failed(err)
	}
	if v.works() > 0 {
		return &exitError{code: exitPartly}
	}
	return nil
}

// visit examines one server. It is the slog.Handler that prints what the link logs: each message and each line of error
// output.
type visit struct {
	w       *world
	server  downstream.ServerConfig
	servers *downstream.Manager
	mask    *redact.Masker
	began   time.Time

	silent            bool // prints no messages
	connected, pinged time.Duration
	hello             []byte
	counts            []string
	tools             []json.RawMessage
	invalid           atomic.Bool // it sent what is no message
}

// newVisit prepares a visit. Stop its servers.
func newVisit(w *world, cfg *config.Config, server downstream.ServerConfig) *visit {
	folder, _ := cfg.StateFolder()
	v := &visit{w: w, server: server, mask: redact.NewMasker(cfg.Secrets()), began: time.Now()}
	v.servers = downstream.New(downstream.Options{
		Servers: []downstream.ServerConfig{server}, Health: cfg.Health, ListDeadline: cfg.Proxy.ListDeadline,
		ProxyTimeout: cfg.Health.Timeout, Execution: downstream.ExecutionConfig{Attempts: 1},
		MaxMessage: int(cfg.Limits.ResultBytes), Version: version, Logger: slog.New(v),
		Access: downstream.Access{Tokens: oauth.NewStore(folder), Mask: v.mask}, // no pins: nothing is approved
	})
	return v
}

func (v *visit) examine(ctx context.Context) (err error) {
	name := v.server.Name
	if v.hello, err = v.servers.Sessions().Initialized(ctx, name, ""); err != nil {
		return err
	}
	v.connected = time.Since(v.began)
	for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
		items, err := v.servers.Sessions().List(ctx, name, "", method)
		if err != nil {
			return err
		}
		if method == "tools/list" {
			v.tools = items
		}
		if items != nil {
			v.counts = append(v.counts, fmt.Sprintf("%d %s", len(items), strings.TrimSuffix(method, "/list")))
		}
	}
	asked := time.Now()
	_, err = v.servers.Call(ctx, &downstream.Request{Server: name, Method: "ping"})
	v.pinged = time.Since(asked)
	return err
}

// failed prints what to do about an error of examine, and returns the error to report.
func (v *visit) failed(err error) error {
	if v.w.ctx.Err() != nil {
		return context.Cause(v.w.ctx)
	}
	fmt.Fprintln(v.w.stdout, "what to do: "+v.mask.Text(v.remedy(err)))
	return &exitError{exitFailed, firstLine(err.Error(), 1000)}
}

// works prints that the server works, and problems, whose number it returns.
func (v *visit) works() int {
	st := v.servers.Status()[v.server.Name]
	problems := []string{}
	if v.invalid.Load() {
		problems = append(problems, "it writes to its standard output what is no message; let it write that to its error output")
	}
	for _, q := range st.Quarantined {
		problems = append(problems, "tool "+q.Tool+" cannot be used: "+q.Reason)
	}
	for _, f := range st.Findings {
		problems = append(problems, fmt.Sprintf("tool %s has hidden characters (%s)", f.Tool, f.Kind))
	}
	info := jsonrpc.Get(v.hello, "serverInfo")
	fmt.Fprintln(v.w.stdout, v.mask.Text(fmt.Sprintf("%s works: %s %s, protocol %s; %s; "+
		"connected in %s, ping answered in %s", v.server.Name,
		firstLine(jsonrpc.Text(jsonrpc.Get(info, "name")), 100), firstLine(jsonrpc.Text(jsonrpc.Get(info, "version")), 50),
		jsonrpc.Text(jsonrpc.Get(v.hello, "protocolVersion")), strings.Join(v.counts, ", "),
		v.connected.Round(time.Millisecond), v.pinged.Round(time.Millisecond))))
	for _, p := range problems {
		fmt.Fprintln(v.w.stdout, "but "+firstLine(v.mask.Text(p), 500))
	}
	return len(problems)
}

const environment = "of the environment it gets PATH, HOME, LANG, TMPDIR and its env only"

// remedy says what to do about a failure.
func (v *visit) remedy(err error) string {
	var f *link.Failure
	if !errors.As(err, &f) {
		return "see the messages above"
	}
	says := func(text string) bool { return strings.Contains(f.Message, text) }
	switch {
	case says("executable file not found"), says("not found"), says("no such file"):
		return "install " + v.server.Command + ", or correct command, args and cwd of the server; " + environment
	case says("the process ended"):
		return "repair what its error output names, and try it alone: " +
			strings.Join(append([]string{v.server.Command}, v.server.Args...), " ") +
			"; " + environment
	case v.invalid.Load():
		return "its standard output must carry JSON-RPC messages alone; let it write everything else to its error output"
	case f.Reason == reason.Timeout:
		return "see above what it waits for; if it is only slow, raise its connect_timeout, now " + v.server.ConnectLimit().String()
	case v.server.PerCaller():
		return "nothing is wrong: each caller logs in itself, at /login/" + v.server.Name + " of the router"
	case f.Reason == reason.Unauthorized && v.server.Auth != nil:
		return "nexus auth login " + v.server.Name
	case f.Reason == reason.Unauthorized:
		return "set the key that it wants in headers of the server, or auth for OAuth"
	case says("connection refused"), says("no such host"), says("timeout"):
		return "start the server, or correct its url"
	case says("it answered 4"):
		return "correct the path of its url, which often ends in /mcp, or in /sse for HTTP+SSE"
	}
	return "see the messages above"
}

// Enabled implements slog.Handler.
func (*visit) Enabled(context.Context, slog.Level) bool { return true }

// maxWire bounds what is printed of one message, in bytes.
const maxWire = 64 << 10

// Handle implements slog.Handler.
func (v *visit) Handle(_ context.Context, r slog.Record) error {
	values := map[string]string{}
	r.Attrs(func(a slog.Attr) bool {
		values[a.Key] = a.Value.String()
		return true
	})
	mark, text := "!", r.Message+" "+values["error"]
	switch r.Message {
	case "to server", "from server":
		mark, text = map[string]string{"to server": "->", "from server": "<-"}[r.Message], values["message"]
	case "server wrote to its error output":
		mark, text = "stderr", values["line"]
	case "server sent an invalid message":
		v.invalid.Store(true)
	case "connected to server", "cannot connect to server", "last error output of server":
		return nil // what follows says so
	}
	if v.silent {
		return nil
	}
	if json.Valid([]byte(text)) {
		text = string(v.mask.JSON([]byte(text)))
	} else {
		text = v.mask.Text(text)
	}
	_, err := io.WriteString(v.w.stdout, fmt.Sprintf("%6dms %-6s %s\n", time.Since(v.began).Milliseconds(), mark,
		texts.Reveal(texts.Cut(strings.TrimRight(text, " \n"), maxWire))))
	return err
}

// WithAttrs implements slog.Handler.
func (v *visit) WithAttrs([]slog.Attr) slog.Handler { return v }

// WithGroup implements slog.Handler.
func (v *visit) WithGroup(string) slog.Handler { return v }

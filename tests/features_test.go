package tests

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// offer is what a server of others has for each feature that a client tries.
type offer struct {
	Call, Progress, Slow, Elicit, Sample, Log offered
	Update                                    offered // empty = by itself
	Answer                                    string  // of Call
	Resource                                  string  // changes
}

var none = map[string]any{}

// offered is a tool with its arguments.
type offered struct {
	Tool string
	Args map[string]any // not nil: go-sdk's client sends null for that
}

var (
	everythingOffers = offer{
		Call:     offered{"get-sum", map[string]any{"a": 2, "b": 40}},
		Answer:   "42",
		Progress: offered{"trigger-long-running-operation", map[string]any{"duration": 0.1, "steps": 2}},
		Slow:     offered{"trigger-long-running-operation", map[string]any{"duration": 60, "steps": 600}},
		Elicit:   offered{"trigger-elicitation-request", none},
		Sample:   offered{"trigger-sampling-request", map[string]any{"prompt": "p"}},
		Log:      offered{"toggle-simulated-logging", none},
		Update:   offered{"toggle-subscriber-updates", none},
		Resource: "demo://resource/dynamic/text/1",
	}
	conformanceOffers = offer{
		Call:     offered{"test_simple_text", none},
		Answer:   "simple text",
		Progress: offered{"test_tool_with_progress", none},
		Slow:     offered{"test_tool_with_progress", none},
		Elicit:   offered{"test_elicitation", map[string]any{"message": "Who?"}},
		Sample:   offered{"test_sampling", map[string]any{"prompt": "p"}},
		Log:      offered{"test_tool_with_logging", none},
		Resource: "test://watched-resource",
	}
)

// modernOffers are those of go-sdk's server to clients that it may not ask.
func modernOffers() offer {
	o := conformanceOffers
	o.Elicit = offered{"test_input_required_result_elicitation", none}
	o.Sample = offered{"test_input_required_result_sampling", none}
	return o
}

// TestFeatures lets clients of others do with servers of others what both can: list, call, report progress, cancel, ask
// the user and the model, announce a change of a resource and log.
func TestFeatures(t *testing.T) {
	t.Parallel()
	c := others(t)
	file, err := everythingServer()
	if err != nil {
		t.Fatal(err)
	}
	r := serve(t, fmt.Sprintf("mcpServers: {pipe: {command: %[1]q, args: [%[2]q, stdio]}, pipe-alone: {command: %[1]q, args: [%[2]q, stdio]}, handshake: {url: %[3]q}, modern: {url: %[4]q}}",
		c.node, c.everything(), sdkServer(t, file, true), refusesHandshake(t, sdkServer(t, file, false))))
	for server, offers := range map[string]offer{"pipe": everythingOffers, "pipe-alone": everythingOffers, "handshake": conformanceOffers, "modern": modernOffers()} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			try := func(client, path string, features func(t *testing.T, url string, of offer) (faults []string)) {
				t.Run(client+" at "+path, func(t *testing.T) {
					if !strings.HasPrefix(server, "pipe") { // where tools begin and end something for all clients
						t.Parallel()
					}
					prefix := ""
					if path == "/proxy/mcp" {
						prefix = server + "__"
					}
					for _, fault := range features(t, r.url+path, offers.named(prefix)) {
						t.Error(fault)
					}
				})
			}
			paths := []string{"/proxy/mcp", "/servers/" + server + "/mcp"}
			switch server {
			case "pipe":
				paths = paths[:1]
			case "pipe-alone":
				paths = paths[1:]
			}
			for _, path := range paths {
				for _, era := range []string{"legacy", "modern"} {
					try("Inspector "+era, path, func(_ *testing.T, url string, of offer) []string {
						line := []string{url, "--transport", "http", "--protocol-era", era, "--method", "tools/call", "--tool-name", of.Call.Tool}
						for name, value := range of.Call.Args {
							line = append(line, "--tool-arg", fmt.Sprint(name, "=", value))
						}
						if out, log, code := c.inspector(line...); code != 0 || !strings.Contains(string(out), of.Answer) {
							return []string{fmt.Sprintf("exit code %d, %s%s", code, out, log)}
						}
						return nil
					})
				}
				for _, version := range []string{"2025-11-25", mcptest.Modern} {
					for name, open := range map[string]func(context.Context, string, string, *heard) (foreign, error){"go-sdk": openSDK, "mcp-go": openMCPGo} {
						try(name+" of "+version, path, func(t *testing.T, url string, of offer) []string {
							return of.tryAll(t, func(ctx context.Context, h *heard) (foreign, error) { return open(ctx, url, version, h) })
						})
					}
				}
				for _, kind := range [][2]string{{"@modelcontextprotocol/client", "auto"}, {"@modelcontextprotocol/client", "legacy"}, {"@modelcontextprotocol/sdk", "legacy"}} {
					try(kind[0]+" "+kind[1], path, func(t *testing.T, url string, of offer) []string { return c.features(t, kind[0], kind[1], url, of) })
				}
			}
		})
	}
}

// named returns the offer with a prefix in front of all names.
func (o offer) named(prefix string) offer {
	for _, tool := range []*offered{&o.Call, &o.Progress, &o.Slow, &o.Elicit, &o.Sample, &o.Log, &o.Update} {
		if tool.Tool != "" {
			tool.Tool = prefix + tool.Tool
		}
	}
	o.Resource = prefix + o.Resource
	return o
}

// features lets a client in JavaScript try an offer and returns what failed.
func (c counterparts) features(t *testing.T, name, mode, url string, of offer) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	offers, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, c.node, filepath.Join(c.folder, "features.mjs"), name, mode, url, string(offers))
	out, err := cmd.CombinedOutput()
	if err != nil || len(out) > 0 {
		return []string{fmt.Sprintf("%v %s", err, out)}
	}
	return nil
}

// foreign is a client of others.
type foreign interface {
	list(ctx context.Context) (names []string, err error)
	// call calls a tool. The request asks for progress and, in 2026-07-28, for log messages.
	call(ctx context.Context, c offered) (text string, err error)
	subscribe(ctx context.Context, uri string) (end func(), err error)
	setLevel(ctx context.Context) error // does nothing in 2026-07-28
	close()
}

// heard counts what a client has heard besides its results.
type heard struct {
	progress, updates, logs atomic.Int64
	asked                   atomic.Pointer[context.CancelFunc] // instead of an answer of the user; nil = the user answers
}

// elicit answers for the user.
func (h *heard) elicit(ctx context.Context) map[string]any {
	if asked := h.asked.Load(); asked != nil {
		(*asked)()
		<-ctx.Done()
	}
	return map[string]any{"name": "Ann", "username": "Ann", "email": "ann@example.com"}
}

// tryAll tries all with a client and returns what failed.
func (o offer) tryAll(t *testing.T, open func(context.Context, *heard) (foreign, error)) (faults []string) {
	t.Helper()
	h := &heard{}
	p, err := open(t.Context(), h)
	if err != nil {
		return []string{err.Error()}
	}
	defer p.close()
	says := func(ctx context.Context, c offered, want string) error {
		text, err := p.call(ctx, c)
		if err == nil && !strings.Contains(text, want) {
			err = fmt.Errorf("got %q, want %s", text, want)
		}
		return err
	}
	awaits := func(ctx context.Context, n *atomic.Int64) error {
		for ; n.Load() == 0; time.Sleep(time.Millisecond) {
			if ctx.Err() != nil {
				return errors.New("nothing heard")
			}
		}
		return nil
	}
	for _, f := range []struct {
		name string
		try  func(ctx context.Context) error
	}{
		{"list", func(ctx context.Context) error {
			names, err := p.list(ctx)
			if err == nil && !slices.Contains(names, o.Call.Tool) {
				err = fmt.Errorf("got %q", names)
			}
			return err
		}},
		{"call", func(ctx context.Context) error { return says(ctx, o.Call, o.Answer) }},
		{"progress", func(ctx context.Context) error { return cmp.Or(says(ctx, o.Progress, ""), awaits(ctx, &h.progress)) }},
		{"elicitation", func(ctx context.Context) error { return says(ctx, o.Elicit, "Ann") }},
		{"sampling", func(ctx context.Context) error { return says(ctx, o.Sample, "sampled") }},
		{"cancel", func(ctx context.Context) error {
			call, stop := context.WithCancel(ctx)
			defer stop()
			h.progress.Store(0)
			done := make(chan error, 1)
			go func() { _, err := p.call(call, o.Slow); done <- err }()
			err := awaits(ctx, &h.progress)
			stop()
			if <-done == nil {
				err = cmp.Or(err, errors.New("got a result"))
			}
			call, stop = context.WithCancel(ctx) // while the user is asked
			defer stop()
			h.asked.Store(&stop)
			if _, called := p.call(call, o.Elicit); called == nil {
				err = cmp.Or(err, errors.New("got a result without the user's answer"))
			}
			h.asked.Store(nil)
			return cmp.Or(err, says(ctx, o.Elicit, "Ann"))
		}},
		{"log", func(ctx context.Context) error {
			err := cmp.Or(p.setLevel(ctx), says(ctx, o.Log, ""), awaits(ctx, &h.logs))
			if o.Update.Tool != "" {
				_ = says(context.WithoutCancel(ctx), o.Log, "") // ends it
			}
			return err
		}},
		{"update", func(ctx context.Context) error {
			end, err := p.subscribe(ctx, o.Resource)
			if err != nil {
				return err
			}
			defer end()
			if o.Update.Tool != "" {
				err = says(ctx, o.Update, "")
				defer func() { _ = says(context.WithoutCancel(ctx), o.Update, "") }()
			}
			return cmp.Or(err, awaits(ctx, &h.updates))
		}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if err := f.try(ctx); err != nil {
			faults = append(faults, fmt.Sprintf("%s: %v", f.name, err))
		}
		cancel()
	}
	return faults
}

// sdkClient is go-sdk's client.
type sdkClient struct {
	*mcp.ClientSession
	http *http.Transport
}

func openSDK(ctx context.Context, url, version string, h *heard) (foreign, error) {
	c := mcp.NewClient(&mcp.Implementation{Name: "features", Version: "1"}, &mcp.ClientOptions{
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "sampled"}}, nil
		},
		ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: h.elicit(ctx)}, nil
		},
		ResourceUpdatedHandler:      func(context.Context, *mcp.ResourceUpdatedNotificationRequest) { h.updates.Add(1) },
		LoggingMessageHandler:       func(context.Context, *mcp.LoggingMessageRequest) { h.logs.Add(1) },
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { h.progress.Add(1) },
	})
	over := &http.Transport{}
	s, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: over}}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	return sdkClient{s, over}, err
}

func (p sdkClient) close() {
	_ = p.Close() // of a session that may have ended
	p.http.CloseIdleConnections()
}

func (p sdkClient) list(ctx context.Context) (names []string, err error) {
	result, err := p.ListTools(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, tool := range result.Tools {
		names = append(names, tool.Name)
	}
	return names, nil
}

func (p sdkClient) call(ctx context.Context, c offered) (string, error) {
	params := &mcp.CallToolParams{Name: c.Tool, Arguments: c.Args, Meta: mcp.Meta{"progressToken": "p"}}
	if p.modern() {
		params.Meta["io.modelcontextprotocol/logLevel"] = "debug"
	}
	result, err := p.CallTool(ctx, params)
	text, _ := json.Marshal(result) // text and images
	return string(text), err
}

func (p sdkClient) subscribe(ctx context.Context, uri string) (func(), error) {
	err := p.Subscribe(ctx, &mcp.SubscribeParams{URI: uri})
	return func() { _ = p.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri}) }, err
}

func (p sdkClient) modern() bool { return p.InitializeResult().ProtocolVersion == mcptest.Modern }

func (p sdkClient) setLevel(ctx context.Context) error {
	if p.modern() {
		return nil
	}
	return p.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "debug"})
}

// mcpGoClient is mcp-go's client.
type mcpGoClient struct {
	*client.Client
	http *http.Transport
}

func openMCPGo(ctx context.Context, url, version string, h *heard) (foreign, error) {
	over := &http.Transport{}
	options := []transport.StreamableHTTPCOption{transport.WithHTTPBasicClient(&http.Client{Transport: over}), transport.WithHTTPLogger(slog.New(slog.DiscardHandler))}
	if version != mcptest.Modern { // whose requests are the streams
		options = append(options, transport.WithContinuousListening())
	}
	t, err := transport.NewStreamableHTTP(url, options...)
	if err != nil {
		return nil, err
	}
	c := client.NewClient(t, client.WithSamplingHandler(answering{h}), client.WithElicitationHandler(answering{h}), client.WithProtocolVersion(version))
	c.OnNotification(func(n mcpgo.JSONRPCNotification) {
		switch n.Method {
		case "notifications/progress":
			h.progress.Add(1)
		case "notifications/resources/updated":
			h.updates.Add(1)
		case "notifications/message":
			h.logs.Add(1)
		}
	})
	p := mcpGoClient{c, over}
	if err := c.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	var hello mcpgo.InitializeRequest
	hello.Params.ProtocolVersion, hello.Params.ClientInfo = version, mcpgo.Implementation{Name: "features", Version: "1"}
	if _, err = c.Initialize(ctx, hello); err == nil && c.ProtocolVersion() != version {
		err = fmt.Errorf("got version %s, want %s", c.ProtocolVersion(), version)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// answering answers requests to mcp-go's client.
type answering struct{ h *heard }

func (a answering) CreateMessage(context.Context, mcpgo.CreateMessageRequest) (*mcpgo.CreateMessageResult, error) {
	r := &mcpgo.CreateMessageResult{Model: "m"}
	r.Role, r.Content = mcpgo.RoleAssistant, mcpgo.NewTextContent("sampled")
	return r, nil
}

func (a answering) Elicit(ctx context.Context, _ mcpgo.ElicitationRequest) (*mcpgo.ElicitationResult, error) {
	r := &mcpgo.ElicitationResult{}
	r.Action, r.Content = mcpgo.ElicitationResponseActionAccept, a.h.elicit(ctx)
	return r, nil
}

func (p mcpGoClient) close() {
	_ = p.Close() // of a session that may have ended
	p.http.CloseIdleConnections()
}

func (p mcpGoClient) list(ctx context.Context) (names []string, err error) {
	result, err := p.ListTools(ctx, mcpgo.ListToolsRequest{})
	if err != nil {
		return nil, err
	}
	for _, tool := range result.Tools {
		names = append(names, tool.Name)
	}
	return names, nil
}

func (p mcpGoClient) call(ctx context.Context, c offered) (string, error) {
	var r mcpgo.CallToolRequest
	r.Params.Name, r.Params.Arguments, r.Params.Meta = c.Tool, c.Args, &mcpgo.Meta{ProgressToken: "p"}
	result, err := p.CallTool(ctx, r)
	text, _ := json.Marshal(result) // text and images
	return string(text), err
}

func (p mcpGoClient) subscribe(ctx context.Context, uri string) (func(), error) {
	if p.ProtocolVersion() == mcptest.Modern {
		return p.ListenAsync(ctx, mcpgo.SubscriptionFilter{ResourceSubscriptions: []string{uri}}, nil)
	}
	var on mcpgo.SubscribeRequest
	on.Params.URI = uri
	err := p.Subscribe(ctx, on)
	return func() {
		var off mcpgo.UnsubscribeRequest
		off.Params.URI = uri
		_ = p.Unsubscribe(ctx, off)
	}, err
}

func (p mcpGoClient) setLevel(ctx context.Context) error {
	var r mcpgo.SetLevelRequest
	r.Params.Level = mcpgo.LoggingLevelDebug
	return p.SetLevel(ctx, r)
}

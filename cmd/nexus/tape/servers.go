package tape

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/router/execution"
)

// called is the recorded outcome of a request to a server.
type called struct {
	Result   json.RawMessage        `json:"result,omitempty"`
	Err      json.RawMessage        `json:"error,omitempty"`
	Modern   bool                   `json:"modern,omitempty"`
	Attempts int                    `json:"attempts"`
	Failure  *link.Failure          `json:"failure,omitempty"`
	Input    *downstream.InputError `json:"input,omitempty"`
	ending
}

// Calls wraps servers to record or replay their answers.
func (t *Tape) Calls(next execution.ToolCaller) execution.ToolCaller {
	if t == nil {
		return next
	}
	return &tapedCalls{t, next}
}

type tapedCalls struct {
	tape *Tape
	next execution.ToolCaller
}

// Call implements execution.ToolCaller.
func (c *tapedCalls) Call(ctx context.Context, r *downstream.Request) (reply link.Reply, err error) {
	request := struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params,omitempty"`
	}{r.Method, jsonrpc.Remove(r.Params, "_meta")} // of this one request: tokens, traces
	asked := func() any {
		reply, err = c.next.Call(ctx, r)
		return describe(ctx, r, reply, err)
	}
	answered := func(raw []byte) error {
		var was called
		if err := json.Unmarshal(raw, &was); err != nil {
			return err
		}
		if r.Attempts != nil {
			*r.Attempts = was.Attempts
		}
		reply, err = was.reply(ctx)
		return nil
	}
	if missing := c.tape.exchange(ctx, kindCall, r.Server, request, asked, answered); missing != nil {
		return link.Reply{}, &link.Failure{Server: r.Server, Reason: reason.Unavailable, Message: missing.Error()}
	}
	return reply, err
}

func describe(ctx context.Context, r *downstream.Request, reply link.Reply, err error) called {
	c := called{Result: reply.Result, Err: reply.Err, Modern: reply.Modern}
	if r.Attempts != nil {
		c.Attempts = *r.Attempts
	}
	switch {
	case err == nil, errors.As(err, &c.Failure), errors.As(err, &c.Input):
	default:
		c.ending = endingOf(ctx, err)
	}
	return c
}

// ending is a recorded error without a more specific form.
type ending struct {
	Ended bool   `json:"ended,omitempty"` // the caller ended the request before the answer
	Other string `json:"other,omitempty"`
}

func endingOf(ctx context.Context, err error) ending {
	if ctx.Err() != nil {
		return ending{Ended: true}
	}
	return ending{Other: err.Error()}
}

// err returns the recorded error. If the caller had ended the request, err waits until the caller ends it again.
func (e ending) err(ctx context.Context) error {
	switch {
	case e.Ended:
		<-ctx.Done()
		return context.Cause(ctx)
	case e.Other != "":
		return errors.New(e.Other)
	}
	return nil
}

// reply returns the recorded answer.
func (c *called) reply(ctx context.Context) (link.Reply, error) {
	switch {
	case c.Failure != nil:
		return link.Reply{}, c.Failure
	case c.Input != nil:
		return link.Reply{}, c.Input
	}
	if err := c.ending.err(ctx); err != nil {
		return link.Reply{}, err
	}
	const names = jsonrpc.NameURI | jsonrpc.NameResultType | jsonrpc.NameIsError // may occur
	return link.Reply{Result: c.Result, Err: c.Err, Modern: c.Modern, Names: names}, nil
}

// tools has the tools and the instructions of a server.
type tools struct {
	Tools        []json.RawMessage `json:"tools"`
	Instructions string            `json:"instructions,omitempty"`
}

// maxPages bounds the pages of a list.
const maxPages = 1000

// SaveTools records the tools and instructions of servers. It skips servers that cannot be listed; a replay cannot
// reach them either.
func (t *Tape) SaveTools(
	ctx context.Context, servers []string, instructions func(server string) string, calls execution.ToolCaller,
) error {
	for _, server := range servers {
		list, err := listTools(ctx, server, calls)
		if err != nil {
			continue
		}
		list.Instructions = instructions(server)
		raw, err := t.clean(list)
		if err != nil {
			return fmt.Errorf("recording the tools of %s: %w", server, err)
		}
		if err := t.write(&exchange{Kind: kindTools, To: server, Answer: raw}); err != nil {
			return err
		}
	}
	return nil
}

func listTools(ctx context.Context, server string, calls execution.ToolCaller) (list tools, err error) {
	params := []byte("{}")
	for range maxPages {
		var reply link.Reply
		reply, err = calls.Call(ctx, &downstream.Request{Server: server, Method: "tools/list", Params: params})
		if err != nil {
			return list, err
		}
		if reply.Err != nil {
			return list, fmt.Errorf("listing the tools: %s", reply.Err)
		}
		var page struct {
			Tools []json.RawMessage `json:"tools"`
			Next  string            `json:"nextCursor"`
		}
		if err := json.Unmarshal(reply.Result, &page); err != nil {
			return list, err
		}
		list.Tools = append(list.Tools, page.Tools...)
		if page.Next == "" {
			return list, nil
		}
		params = jsonrpc.Set(params, "cursor", []byte(jsonrpc.StringID(page.Next)))
	}
	return list, errors.New("listing the tools: too many pages")
}

// Dialers returns replayed servers, which list the recorded tools, or nil if the Tape does not replay. A server without
// recorded tools cannot be reached.
func (t *Tape) Dialers(servers []downstream.ServerConfig) map[string]downstream.DialFunc {
	dialers := map[string]downstream.DialFunc{}
	for _, s := range servers {
		dialers[s.Name] = func(context.Context) (io.ReadWriteCloser, error) {
			list, recorded := t.tools[s.Name]
			if !recorded {
				return nil, errors.New("its tools were not recorded")
			}
			router, server := net.Pipe()
			t.wg.Go(func() { list.serve(server) }) // until the session closes the pipe
			return router, nil
		}
	}
	return dialers
}

// serve answers the router's own requests. Tool calls do not reach it.
func (l tools) serve(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		m, problem := jsonrpc.Parse(lines.Bytes())
		if problem != nil || !m.IsRequest() {
			continue
		}
		if _, err := conn.Write(append(l.answer(m), '\n')); err != nil {
			return
		}
	}
}

const maxLine = 1 << 20 // bytes of a message of the router, which only asks for lists

func (l tools) answer(m jsonrpc.Message) []byte {
	var result any = struct{}{}
	switch m.Method {
	case "initialize":
		result = map[string]any{
			"protocolVersion": downstream.ProtocolVersion,
			"capabilities":    map[string]any{"tools": map[string]any{"listChanged": true}},
			"serverInfo":      map[string]any{"name": "recording", "version": "1"},
			"instructions":    l.Instructions,
		}
	case "tools/list":
		result = map[string]any{"tools": l.Tools}
	case "ping":
	default:
		unknown := jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Not recorded: " + m.Method}
		return jsonrpc.ErrorResponse(m.ID, &unknown)
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return jsonrpc.ErrorResponse(m.ID, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: err.Error()})
	}
	return jsonrpc.Result(m.ID, raw)
}

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
)

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
	ctx context.Context, servers []string, instructions func(server string) string, next send,
) error {
	for _, server := range servers {
		list, err := listTools(ctx, server, next)
		if err != nil {
			continue
		}
		list.Instructions = instructions(server)
		raw, err := json.Marshal(list)
		if err == nil {
			raw, _, err = t.clean(raw)
		}
		if err != nil {
			return fmt.Errorf("recording the tools of %s: %w", server, err)
		}
		if err := t.write(&exchange{Kind: kindTools, To: server, Answer: raw}); err != nil {
			return err
		}
	}
	return nil
}

func listTools(ctx context.Context, server string, next send) (list tools, err error) {
	params := []byte("{}")
	for range maxPages {
		var reply link.Reply
		if reply, err = next(ctx, &downstream.Request{Server: server, Method: "tools/list", Params: params}); err != nil {
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

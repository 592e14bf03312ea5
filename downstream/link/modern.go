package link

import (
	"bytes"
	"context"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
)

// The protocol version without handshake and sessions, and the _meta members of its requests.
const (
	versionModern    = string(protocol.V20260728)
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaClient       = "io.modelcontextprotocol/clientInfo"
	metaServer       = "io.modelcontextprotocol/serverInfo"
)

// discoverTime limits discover after a refused handshake: many servers that support neither do not answer.
const discoverTime = 3 * time.Second

// discover tests whether a server that refuses the handshake supports the modern protocol. Its result then replaces
// that of initialize.
func (s *Session) discover(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, discoverTime)
	defer cancel()
	s.modern, s.Version = true, versionModern
	if t, ok := s.transport.(*httpTransport); ok {
		t.leaveSession()
	}
	reply, err := s.Call(ctx, &Call{Method: "server/discover"})
	if err != nil || reply.Err != nil {
		s.modern, s.Version = false, ""
		return false
	}
	s.Initialized = jsonrpc.Set(reply.Result, "protocolVersion", []byte(jsonrpc.StringID(versionModern)))
	if info := jsonrpc.Get(reply.Result, "_meta", metaServer); info != nil {
		s.Initialized = jsonrpc.Set(s.Initialized, "serverInfo", info)
	}
	return true
}

// inEra adapts raw params to the server's era. In the modern era, _meta names the version and the client, unless the
// client behind the call has set them. A server of another era must not see a version that its session does not use.
func (s *Session) inEra(params []byte) []byte {
	named := bytes.Contains(params, []byte(metaVersion))
	if named == s.modern {
		return params
	}
	meta := jsonrpc.Get(params, "_meta")
	if !s.modern {
		for _, name := range [...]string{metaVersion, metaCapabilities, metaClient} {
			meta = jsonrpc.Remove(meta, name)
		}
		if meta == nil {
			return params // the names occur elsewhere
		}
		return jsonrpc.Set(params, "_meta", meta)
	}
	capabilities, info := jsonrpc.Get(s.opts.Initialize, "capabilities"), jsonrpc.Get(s.opts.Initialize, "clientInfo")
	if capabilities == nil {
		capabilities = []byte("{}")
	}
	meta = jsonrpc.Set(meta, metaCapabilities, capabilities)
	if info != nil {
		meta = jsonrpc.Set(meta, metaClient, info)
	}
	meta = jsonrpc.Set(meta, metaVersion, []byte(jsonrpc.StringID(versionModern)))
	return jsonrpc.Set(params, "_meta", meta)
}

// cancels reports whether a request is cancelled by a notification. initialize must not be cancelled; over HTTP in
// the modern era, closing the response stream cancels.
func (s *Session) cancels(method string) bool {
	_, http := s.transport.(*httpTransport)
	return method != "initialize" && !(s.modern && http)
}

// ChecksParamHeaders reports whether the server compares Mcp-Param headers with the arguments of a call.
func (s *Session) ChecksParamHeaders() bool {
	_, http := s.transport.(*httpTransport)
	return s.modern && http
}

// Ping checks that the server responds. Any JSON-RPC response counts, also an error.
func (s *Session) Ping(ctx context.Context) error {
	method := "ping"
	if s.modern {
		method = "server/discover"
	}
	_, err := s.Call(ctx, &Call{Method: method, probe: true})
	return err
}

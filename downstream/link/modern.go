package link

import (
	"bytes"
	"context"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
)

// The protocol revision without handshake and sessions, and what each of its requests tells instead.
const (
	versionModern    = string(protocol.V20260728)
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaClient       = "io.modelcontextprotocol/clientInfo"
	metaServer       = "io.modelcontextprotocol/serverInfo"
)

// discoverTime is for a server that has just refused the handshake: many that know neither say nothing.
const discoverTime = 3 * time.Second

// discover tries whether a server that refuses the handshake speaks the modern protocol. Its answer then
// stands for that to initialize.
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

// inEra returns raw params as the server's era has them. In the modern one _meta says who asks, unless the
// client behind the call has said so; a server of the others must not be told of a revision that the way
// to it does not have.
func (s *Session) inEra(params []byte) []byte {
	told := bytes.Contains(params, []byte(metaVersion))
	if told == s.modern {
		return params
	}
	meta := jsonrpc.Get(params, "_meta")
	if !s.modern {
		for _, name := range [...]string{metaVersion, metaCapabilities, metaClient} {
			meta = jsonrpc.Remove(meta, name)
		}
		if meta == nil {
			return params // the words stand elsewhere
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

// cancels reports whether a request is cancelled by a notification. initialize must not be cancelled; in
// the modern era over HTTP closing the answer's stream says it.
func (s *Session) cancels(method string) bool {
	_, http := s.transport.(*httpTransport)
	return method != "initialize" && !(s.modern && http)
}

// ChecksParamHeaders reports whether the server compares Mcp-Param headers with the arguments of a call.
func (s *Session) ChecksParamHeaders() bool {
	_, http := s.transport.(*httpTransport)
	return s.modern && http
}

// Ping asks for a sign of life. Any JSON-RPC answer is one, an error too.
func (s *Session) Ping(ctx context.Context) error {
	method := "ping"
	if s.modern {
		method = "server/discover"
	}
	_, err := s.Call(ctx, &Call{Method: method, probe: true})
	return err
}

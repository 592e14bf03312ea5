// Package inbound reads what clients send to the router over HTTP and stdio.
//
// [ReadBody] reads a request body within limits of size, time and memory. [Parse] turns it into a [Message] and
// removes the API key. [CheckHeader] and [CheckVersion] compare the message with its headers; [Message.Initialize]
// reads initialize. Errors of type *jsonrpc.Error are sent to the client unchanged.
//
// The functions are safe for concurrent use. A Message belongs to its reader; its slices share the memory of the
// parsed bytes.
package inbound

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
)

// Message is a client's message with the relevant members of its _meta. Absent raw values are nil.
type Message struct {
	jsonrpc.Message        // without the API key
	Sent            []byte // the whole message as it was sent
	Key             string // _meta.api_key
	HasKey          bool
	Version         []byte // protocol version; present in each message since 2026-07-28
	ClientInfo      []byte // as named in _meta beside Version
	Capabilities    []byte // of the client, as named in _meta beside Version
	ProgressToken   []byte // nil if invalid
	SessionID       []byte // _meta.session_id, which is only logged
	TraceParent     []byte // W3C trace context
	TraceState      []byte
}

// DeclaredVersion returns the version in a message that has passed CheckVersion; empty if the message has none.
func (m *Message) DeclaredVersion() protocol.Version {
	if m.Version == nil {
		return ""
	}
	return protocol.V20260728
}

// Members of _meta that are read.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaInfo         = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaKey          = "api_key"
	metaToken        = "progressToken"
	metaSession      = "session_id"
	metaParent       = "traceparent"
	metaState        = "tracestate"
)

// Parse reads a message and removes its API key. If it fails, the id is set as far as it is known.
func Parse(b []byte) (Message, *jsonrpc.Error) {
	m, err := jsonrpc.Parse(b)
	in := Message{Message: m, Sent: b}
	if err != nil {
		return in, err
	}
	return in, in.readMeta()
}

// readMeta reads params._meta. It refuses duplicates of _meta and of the members that matter here, because parsers
// differ in which duplicate they use.
func (m *Message) readMeta() *jsonrpc.Error {
	params := m.Params
	if params == nil || !m.Names.Has(jsonrpc.NameMeta) {
		return nil
	}
	span, ambiguous := jsonrpc.Find(params, "_meta")
	if ambiguous {
		return InvalidRequest("_meta is ambiguous")
	}
	meta := span.Of(params)
	unclear := ""
	jsonrpc.Members(meta, func(name []byte, value jsonrpc.Span) bool {
		raw := value.Of(meta)
		var slot *[]byte
		switch string(name) {
		case metaVersion:
			slot = &m.Version
		case metaInfo:
			slot = &m.ClientInfo
		case metaCapabilities:
			slot = &m.Capabilities
		case metaParent:
			m.TraceParent = raw
			return true
		case metaState:
			m.TraceState = raw
			return true
		case metaSession:
			m.SessionID = raw
			return true
		case metaKey:
			if m.HasKey {
				unclear = metaKey
			}
			m.Key, m.HasKey = jsonrpc.Text(raw), true
			return true
		case metaToken:
			slot = &m.ProgressToken
		default:
			if len(name) >= len(metaToken) && strings.EqualFold(string(name), metaToken) {
				unclear = metaToken
			}
			return true
		}
		if *slot != nil {
			unclear = string(name)
		}
		*slot = raw
		return true
	})
	if !jsonrpc.ValidID(m.ProgressToken) {
		m.ProgressToken = nil
	}
	if unclear != "" {
		return InvalidRequest("_meta." + unclear + " is ambiguous")
	}
	if m.HasKey {
		m.cutKey(span, meta)
	}
	return nil
}

// cutKey removes the API key, so that it reaches no log, model or server.
func (m *Message) cutKey(span jsonrpc.Span, meta []byte) {
	m.Params = jsonrpc.Splice(m.Params, jsonrpc.Edit{Span: span, With: jsonrpc.Remove(meta, metaKey)})
	if m.ID != "" {
		m.Raw = jsonrpc.Request(m.ID, m.Method, m.Params)
	} else {
		m.Raw = jsonrpc.Notification(m.Method, m.Params)
	}
}

// ClientInfo is how a client describes itself: raw JSON objects, or nil.
type ClientInfo struct {
	Capabilities json.RawMessage
	Info         json.RawMessage
}

// requestCapabilities maps methods of server requests to the client capabilities that they need.
var requestCapabilities = map[string]string{
	"elicitation/create":     "elicitation",
	"sampling/createMessage": "sampling",
	"roots/list":             "roots",
}

// Supports reports whether the client declares the capability to answer a request of a server.
func (c ClientInfo) Supports(method string, params []byte) bool {
	capability, part := needs(method, params)
	value := jsonrpc.Get(c.Capabilities, capability)
	switch {
	case capability == "" || value == nil:
		return false
	case part == "form": // is implied by an empty capability
		return jsonrpc.Get(value, part) != nil || jsonrpc.Get(value, "url") == nil
	}
	return part == "" || jsonrpc.Get(value, part) != nil
}

// needs returns the client capability that a request of a server needs, and which part of it; empty for none.
func needs(method string, params []byte) (capability, part string) {
	capability = requestCapabilities[method]
	switch {
	case capability == "elicitation" && jsonrpc.Text(jsonrpc.Get(params, "mode")) == "url":
		part = "url"
	case capability == "elicitation":
		part = "form"
	case capability == "sampling" && jsonrpc.Get(params, "tools") != nil:
		part = "tools"
	}
	return capability, part
}

// Missing returns the error of a request of a client that does not support the request of a server that it needs. It is
// nil if no capability is known for that.
func (c ClientInfo) Missing(method string, params []byte) *jsonrpc.Error {
	capability, part := needs(method, params)
	if capability == "" || c.Supports(method, params) {
		return nil
	}
	value := []byte("{}")
	if part != "" {
		value = jsonrpc.Set(value, part, []byte("{}"))
		part = "." + part
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeMissingCapability,
		Message: "The server needs an answer to " + method + ", but the client does not declare the capability " + capability + part,
		Data:    jsonrpc.Set(nil, "requiredCapabilities", jsonrpc.Set(nil, capability, value)),
	}
}

// TakesTasks reports whether the client declares the tasks extension.
func (c ClientInfo) TakesTasks() bool {
	return Object(jsonrpc.Get(c.Capabilities, "extensions", protocol.ExtensionTasks)) != nil
}

// MissingTasks returns the error of a request about tasks of a client that does not declare the extension.
func MissingTasks() *jsonrpc.Error {
	extension := jsonrpc.Set(nil, protocol.ExtensionTasks, []byte("{}"))
	return &jsonrpc.Error{Code: jsonrpc.CodeMissingCapability,
		Message: "Tasks need a client that declares the extension " + protocol.ExtensionTasks + " with the request",
		Data:    jsonrpc.Set(nil, "requiredCapabilities", jsonrpc.Set(nil, "extensions", extension)),
	}
}

// Outlives reports whether m is a request that names its protocol version, and whose client answers requests or takes
// tasks. It may be answered by an input_required result, or by a task, while its handler goes on.
func (m *Message) Outlives() bool {
	switch m.Method {
	case "tools/call", "prompts/get", "resources/read":
	default:
		return false
	}
	if m.Method == "tools/call" && (ClientInfo{Capabilities: m.Capabilities}).TakesTasks() {
		return m.Version != nil
	}
	for _, capability := range requestCapabilities {
		if jsonrpc.Get(m.Capabilities, capability) != nil {
			return m.Version != nil
		}
	}
	return false
}

// Limits of the params of initialize.
const (
	maxInitialize  = 64 << 10 // bytes accepted
	keptInitialize = 8 << 10  // bytes kept whole; of larger params, the members of the client's description that fit
)

// ReadInitialize reads the version to answer with and the client's description from m, which is initialize. It reduces
// params that are too large to be kept.
func (m *Message) ReadInitialize() (protocol.Version, ClientInfo, *jsonrpc.Error) {
	version := protocol.Negotiate(protocol.Version(jsonrpc.Text(jsonrpc.Get(m.Params, "protocolVersion"))))
	if len(m.Params) > maxInitialize {
		const kib = maxInitialize >> 10
		return version, ClientInfo{}, InvalidParams("the params of initialize are larger than " + strconv.Itoa(kib) + " KiB")
	}
	c := ClientInfo{
		Capabilities: bytes.Clone(Object(jsonrpc.Get(m.Params, "capabilities"))),
		Info:         bytes.Clone(Object(jsonrpc.Get(m.Params, "clientInfo"))),
	}
	if len(m.Params) > keptInitialize {
		c = c.Fit(keptInitialize)
		m.Params = c.InitializeParams(version)
		m.Raw = jsonrpc.Request(m.ID, m.Method, m.Params)
	}
	return version, c, nil
}

// InitializeParams returns the params of an initialize request of the client.
func (c ClientInfo) InitializeParams(v protocol.Version) []byte {
	params := append([]byte(`{"protocolVersion":`), jsonrpc.StringID(string(v))...)
	params = append(append(params, `,"capabilities":`...), orElse(c.Capabilities, "{}")...)
	params = append(append(params, `,"clientInfo":`...), orElse(c.Info, `{"name":"","version":""}`)...)
	return append(params, '}')
}

func orElse(raw []byte, other string) []byte {
	if raw == nil {
		return []byte(other)
	}
	return raw
}

// Fit returns as many members of c as fit into room bytes, capabilities first.
func (c ClientInfo) Fit(room int) ClientInfo {
	caps := fitting(c.Capabilities, room)
	return ClientInfo{Capabilities: caps, Info: fitting(c.Info, room-len(caps))}
}

// fitting removes members from an object until it fits into room bytes; nil if none fits.
func fitting(raw []byte, room int) []byte {
	var b bytes.Buffer
	if Object(raw) == nil || json.Compact(&b, raw) != nil || room < len("{}") {
		return nil
	}
	if b.Len() <= room {
		return b.Bytes()
	}
	kept := []byte{'{'}
	whole := b.Bytes()
	jsonrpc.Members(whole, func(name []byte, value jsonrpc.Span) bool {
		member := append(append([]byte(jsonrpc.StringID(string(name))), ':'), value.Of(whole)...)
		if len(kept)+len(member)+len(",}") <= room {
			if len(kept) > 1 {
				kept = append(kept, ',')
			}
			kept = append(kept, member...)
		}
		return true
	})
	return append(kept, '}')
}

// Object returns raw if it is a JSON object; else nil.
func Object(raw []byte) []byte {
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	return raw
}

// InvalidRequest returns an error with code -32600.
func InvalidRequest(reason string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "Invalid request: " + reason}
}

// InvalidParams returns an error with code -32602.
func InvalidParams(reason string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params: " + reason}
}

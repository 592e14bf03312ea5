package inbound

import (
	"bytes"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
)

// Message is a client's message with the relevant members of its _meta. Absent raw values are nil.
type Message struct {
	jsonrpc.Message        // without the API key
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
	in := Message{Message: m}
	if err != nil {
		return in, err
	}
	return in, in.readMeta()
}

// readMeta reads params._meta. It refuses duplicates of _meta and of the members that matter here, because parsers
// differ in which duplicate they use.
func (m *Message) readMeta() *jsonrpc.Error {
	params := m.Params
	if params == nil || !bytes.Contains(params, []byte("meta")) && !bytes.Contains(params, []byte(`\u`)) {
		return nil
	}
	place, ambiguous := jsonrpc.Find(params, "_meta")
	if ambiguous {
		return InvalidRequest("_meta is ambiguous")
	}
	meta := place.Of(params)
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
		default:
			return true
		}
		if *slot != nil {
			unclear = string(name)
		}
		*slot = raw
		return true
	})
	token, ambiguous := jsonrpc.Find(meta, metaToken)
	if ambiguous {
		unclear = metaToken
	}
	if raw := token.Of(meta); jsonrpc.ValidID(raw) {
		m.ProgressToken = raw
	}
	if unclear != "" {
		return InvalidRequest("_meta." + unclear + " is ambiguous")
	}
	if m.HasKey {
		m.cutKey(place, meta)
	}
	return nil
}

// cutKey removes the API key, so that it reaches no log, model or server.
func (m *Message) cutKey(place jsonrpc.Span, meta []byte) {
	m.Params = jsonrpc.Splice(m.Params, jsonrpc.Edit{Span: place, With: jsonrpc.Remove(meta, metaKey)})
	if m.ID != "" {
		m.Raw = jsonrpc.Request(m.ID, m.Method, m.Params)
	} else {
		m.Raw = jsonrpc.Notification(m.Method, m.Params)
	}
}

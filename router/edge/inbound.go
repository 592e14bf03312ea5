package edge

import (
	"bytes"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// inbound is a message as it came in, with what its _meta says to us. Raw values are nil if absent.
type inbound struct {
	msg       jsonrpc.Message
	key       string // _meta.api_key, cut out of msg
	hasKey    bool
	version   []byte // the modern protocol version
	info      []byte // the modern client info
	caps      []byte // the modern client capabilities
	sessionID []byte
}

// Members of _meta in the modern era.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaInfo         = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaKey          = "api_key"
	metaToken        = "progressToken"
	metaSession      = "session_id"
)

// parse reads a message and takes the key out of it.
func parse(b []byte) (inbound, *jsonrpc.Error) {
	m, err := jsonrpc.Parse(b)
	in := inbound{msg: m}
	if err != nil {
		return in, err
	}
	return in, in.readMeta()
}

// readMeta looks at params._meta. Two of them, or two equal members of those we act on, cannot be told
// apart by all who read them: that is refused.
func (in *inbound) readMeta() *jsonrpc.Error {
	params := in.msg.Params
	if params == nil || !bytes.Contains(params, []byte("meta")) && !bytes.Contains(params, []byte(`\u`)) {
		return nil
	}
	place, ambiguous := jsonrpc.Find(params, "_meta")
	if ambiguous {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "Invalid request: _meta is ambiguous"}
	}
	meta := place.Of(params)
	unclear := ""
	jsonrpc.Members(meta, func(name []byte, value jsonrpc.Span) bool {
		raw := value.Of(meta)
		var slot *[]byte
		switch string(name) {
		case metaVersion:
			slot = &in.version
		case metaInfo:
			slot = &in.info
		case metaCapabilities:
			slot = &in.caps
		case metaSession:
			in.sessionID = raw
			return true
		case metaKey:
			if in.hasKey {
				unclear = metaKey
			}
			in.key, in.hasKey = jsonrpc.Text(raw), true
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
	if _, ambiguous := jsonrpc.Find(meta, metaToken); ambiguous {
		unclear = metaToken
	}
	if unclear != "" {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "Invalid request: _meta." + unclear + " is ambiguous"}
	}
	if in.hasKey {
		in.cutKey(place, meta)
	}
	return nil
}

// cutKey removes the key, so that no log, model or server can see it.
func (in *inbound) cutKey(place jsonrpc.Span, meta []byte) {
	m := &in.msg
	m.Params = jsonrpc.Splice(m.Params, jsonrpc.Edit{Span: place, With: jsonrpc.Remove(meta, metaKey)})
	if m.ID != "" {
		m.Raw = jsonrpc.Request(m.ID, m.Method, m.Params)
	} else {
		m.Raw = jsonrpc.Notification(m.Method, m.Params)
	}
}

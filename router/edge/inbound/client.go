package inbound

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

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

// Supports reports whether the client declares the capability to answer requests of a method.
func (c ClientInfo) Supports(method string) bool {
	capability := requestCapabilities[method]
	return capability != "" && jsonrpc.Get(c.Capabilities, capability) != nil
}

// TakesRequests reports whether m is a request that names its protocol version and whose client answers requests.
// Such a request may be answered by an input_required result.
func (m *Message) TakesRequests() bool {
	switch m.Method {
	case "tools/call", "prompts/get", "resources/read":
	default:
		return false
	}
	for _, capability := range requestCapabilities {
		if jsonrpc.Get(m.Capabilities, capability) != nil {
			return m.Version != nil
		}
	}
	return false
}

// clientInfoBytes limits the params of initialize, which the session stores.
const clientInfoBytes = 64 << 10

// ReadClientInfo copies the description of the client from the params of initialize.
func ReadClientInfo(params []byte) (ClientInfo, *jsonrpc.Error) {
	if len(params) > clientInfoBytes {
		const kib = clientInfoBytes >> 10
		return ClientInfo{}, InvalidParams("the params of initialize are larger than " + strconv.Itoa(kib) + " KiB")
	}
	caps, info := Object(jsonrpc.Get(params, "capabilities")), Object(jsonrpc.Get(params, "clientInfo"))
	return ClientInfo{Capabilities: bytes.Clone(caps), Info: bytes.Clone(info)}, nil
}

// smallClient is the size of initialize params that the session limit already accounts for.
const smallClient = 4 << 10

// Kept returns the bytes that the session stores beyond smallClient if c was read from params: c itself, and the
// params for servers.
func (c ClientInfo) Kept(params []byte) int {
	if len(params) <= smallClient {
		return 0
	}
	return len(params) + len(c.Capabilities) + len(c.Info)
}

// Object returns raw if it is a JSON object; else nil.
func Object(raw []byte) []byte {
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	return raw
}

package edge

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
)

// clientInfoBytes bounds the params of initialize, which are kept with the session.
const clientInfoBytes = 64 << 10

// negotiate returns the version to answer initialize with.
func negotiate(params []byte) protocol.Version {
	return protocol.Negotiate(protocol.Version(jsonrpc.Text(jsonrpc.Get(params, "protocolVersion"))))
}

// introduction copies what initialize says about the client.
func introduction(params []byte) (ClientInfo, *jsonrpc.Error) {
	if len(params) > clientInfoBytes {
		return ClientInfo{}, invalidParams("the params of initialize are larger than " + strconv.Itoa(clientInfoBytes>>10) + " KiB")
	}
	caps, info := object(jsonrpc.Get(params, "capabilities")), object(jsonrpc.Get(params, "clientInfo"))
	return ClientInfo{Capabilities: bytes.Clone(caps), Info: bytes.Clone(info)}, nil
}

func object(raw []byte) []byte {
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	return raw
}

func invalidParams(reason string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params: " + reason}
}

func mismatch(reason string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeHeaderMismatch, Message: "Header mismatch: " + reason}
}

func unsupported(requested protocol.Version, supported []protocol.Version) *jsonrpc.Error {
	data := append(append([]byte(`{"supported":`), protocol.JSON(supported)...), `,"requested":`...)
	data = append(data, jsonrpc.StringID(string(requested))...)
	return &jsonrpc.Error{
		Code:    jsonrpc.CodeUnsupportedVersion,
		Message: "Unsupported protocol version",
		Data:    append(data, '}'),
	}
}

// headerVersion returns the MCP-Protocol-Version header.
func headerVersion(h http.Header) protocol.Version {
	if v := h["Mcp-Protocol-Version"]; len(v) > 0 {
		return protocol.Version(v[0])
	}
	return ""
}

// checkHandshakeHeader judges the header of a message whose body does not name a version.
func checkHandshakeHeader(h http.Header, in *inbound) *jsonrpc.Error {
	v := headerVersion(h)
	switch {
	case v == "" || v.IsHandshake():
		return nil
	case v != protocol.V20260728:
		return unsupported(v, protocol.Versions())
	case in.msg.IsRequest() && in.msg.Method != "initialize":
		return invalidParams("_meta lacks " + metaVersion)
	}
	return nil
}

// checkModern judges a message whose body names a version. h is nil where there are no headers.
func checkModern(h http.Header, in *inbound, surfaceHasIt bool) *jsonrpc.Error {
	if in.version[0] != '"' {
		return invalidParams(metaVersion + " must be a string")
	}
	v := protocol.Version(jsonrpc.Text(in.version))
	if h != nil && surfaceHasIt {
		switch hv := headerVersion(h); {
		case hv == "" && v == protocol.V20260728:
			return mismatch("the MCP-Protocol-Version header is missing")
		case hv != "" && hv != v:
			return mismatch("MCP-Protocol-Version and " + metaVersion + " differ")
		}
	}
	switch {
	case !surfaceHasIt:
		return unsupported(v, protocol.Handshake())
	case v != protocol.V20260728:
		return unsupported(v, protocol.Versions())
	}
	if !in.msg.IsRequest() {
		return nil
	}
	if h != nil {
		if err := checkModernHeaders(h, &in.msg); err != nil {
			return err
		}
	}
	if object(in.caps) == nil {
		return invalidParams("_meta lacks the object " + metaCapabilities)
	}
	if removed(in.msg.Method) {
		return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + in.msg.Method + " is not part of " + string(protocol.V20260728)}
	}
	return nil
}

// removed reports whether a method of the handshake era is gone in the modern one (MCP 2026-07-28, SEP-2575).
func removed(method string) bool {
	switch method {
	case "initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe":
		return true
	}
	return false
}

// checkModernHeaders compares Mcp-Method and Mcp-Name with the body.
func checkModernHeaders(h http.Header, m *jsonrpc.Message) *jsonrpc.Error {
	switch method := h.Get(mcp.HeaderMethod); method {
	case m.Method:
	case "":
		return mismatch("the Mcp-Method header is missing")
	default:
		return mismatch("Mcp-Method and the method differ")
	}
	member := ""
	switch m.Method {
	case "tools/call", "prompts/get":
		member = "name"
	case "resources/read":
		member = "uri"
	default:
		return nil
	}
	sent := h.Values(mcp.HeaderName)
	place, ambiguous := jsonrpc.Find(m.Params, member)
	raw := place.Of(m.Params)
	switch {
	case ambiguous:
		return mismatch("params." + member + " is ambiguous")
	case len(sent) > 1:
		return mismatch("Mcp-Name stands twice")
	case len(sent) == 0 && len(raw) > 0 && raw[0] == '"':
		return mismatch("the Mcp-Name header is missing")
	case len(sent) == 0:
		return nil // the handler says what is wrong with the params
	}
	name, ok := mcp.DecodeHeaderValue(sent[0])
	if !ok || len(raw) == 0 || raw[0] != '"' || name != jsonrpc.Text(raw) {
		return mismatch("Mcp-Name and params." + member + " differ")
	}
	return nil
}

// modernStatus is the HTTP status for an error in the modern era.
func modernStatus(code int) int {
	switch code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case jsonrpc.CodeInvalidParams, jsonrpc.CodeInvalidRequest, jsonrpc.CodeParse,
		jsonrpc.CodeHeaderMismatch, -32021, jsonrpc.CodeUnsupportedVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

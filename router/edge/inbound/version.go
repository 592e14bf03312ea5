package inbound

import (
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
)

func mismatch(reason string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeHeaderMismatch, Message: "Header mismatch: " + reason}
}

// Unsupported returns the error for an unsupported version.
func Unsupported(requested protocol.Version, supported []protocol.Version) *jsonrpc.Error {
	data := append(append([]byte(`{"supported":`), protocol.JSON(supported)...), `,"requested":`...)
	data = append(data, jsonrpc.StringID(string(requested))...)
	return &jsonrpc.Error{
		Code:    jsonrpc.CodeUnsupportedVersion,
		Message: "Unsupported protocol version",
		Data:    append(data, '}'),
	}
}

// HeaderVersion returns the MCP-Protocol-Version header.
func HeaderVersion(h http.Header) protocol.Version {
	if v := h["Mcp-Protocol-Version"]; len(v) > 0 {
		return protocol.Version(v[0])
	}
	return ""
}

// CheckHeader checks the version header of a message whose body has no version.
func CheckHeader(h http.Header, in *Message) *jsonrpc.Error {
	v := HeaderVersion(h)
	switch {
	case v == "" || v.IsHandshake():
		return nil
	case v != protocol.V20260728:
		return Unsupported(v, protocol.Versions())
	case in.IsRequest() && in.Method != "initialize":
		return InvalidParams("_meta lacks " + metaVersion)
	}
	return nil
}

// CheckVersion checks a message whose body has a version: the version, the headers that repeat parts of the body, and
// the method. h is nil on stdio. supported is false on transports that only serve versions with initialize.
func CheckVersion(h http.Header, in *Message, supported bool) *jsonrpc.Error {
	if in.Version[0] != '"' {
		return InvalidParams(metaVersion + " must be a string")
	}
	v := protocol.Version(jsonrpc.Text(in.Version))
	if h != nil && supported {
		switch hv := HeaderVersion(h); {
		case len(h["Mcp-Protocol-Version"]) > 1:
			return mismatch("MCP-Protocol-Version appears twice")
		case hv == "" && v == protocol.V20260728:
			return mismatch("the MCP-Protocol-Version header is missing")
		case hv != "" && hv != v:
			return mismatch("MCP-Protocol-Version and " + metaVersion + " differ")
		}
	}
	switch {
	case !supported:
		return Unsupported(v, protocol.Handshake())
	case v != protocol.V20260728:
		return Unsupported(v, protocol.Versions())
	}
	if !in.IsRequest() {
		return nil
	}
	if h != nil {
		if err := checkNameHeaders(h, &in.Message); err != nil {
			return err
		}
	}
	if Object(in.Capabilities) == nil {
		return InvalidParams("_meta lacks the object " + metaCapabilities)
	}
	if removed(in.Method) {
		return &jsonrpc.Error{
			Code:    jsonrpc.CodeMethodNotFound,
			Message: "Method not found: " + in.Method + " is not part of " + string(protocol.V20260728),
		}
	}
	return nil
}

// removed reports whether 2026-07-28 has removed a method (SEP-2575).
func removed(method string) bool {
	switch method {
	case "initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe":
		return true
	}
	return false
}

// checkNameHeaders compares Mcp-Method and Mcp-Name with the body.
func checkNameHeaders(h http.Header, m *jsonrpc.Message) *jsonrpc.Error {
	switch method := h.Get(mcp.HeaderMethod); {
	case len(h.Values(mcp.HeaderMethod)) > 1:
		return mismatch("Mcp-Method appears twice")
	case method == "":
		return mismatch("the Mcp-Method header is missing")
	case method != m.Method:
		return mismatch("Mcp-Method and the method differ")
	}
	member := protocol.NamedBy(m.Method)
	if member == "" {
		return nil
	}
	sent := h.Values(mcp.HeaderName)
	span, ambiguous := jsonrpc.Find(m.Params, member)
	raw := span.Of(m.Params)
	switch {
	case ambiguous:
		return mismatch("params." + member + " is ambiguous")
	case len(sent) > 1:
		return mismatch("Mcp-Name appears twice")
	case len(sent) == 0 && len(raw) > 0 && raw[0] == '"':
		return mismatch("the Mcp-Name header is missing")
	case len(sent) == 0:
		return nil // the handler rejects the params
	}
	name, ok := mcp.DecodeHeaderValue(sent[0])
	if !ok || len(raw) == 0 || raw[0] != '"' || name != jsonrpc.Text(raw) {
		return mismatch("Mcp-Name and params." + member + " differ")
	}
	return nil
}

// HTTPStatus returns the HTTP status for an error code since 2026-07-28. Earlier versions always use 200.
func HTTPStatus(code int) int {
	switch code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case jsonrpc.CodeInvalidParams, jsonrpc.CodeInvalidRequest, jsonrpc.CodeParse,
		jsonrpc.CodeHeaderMismatch, jsonrpc.CodeMissingCapability, jsonrpc.CodeUnsupportedVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

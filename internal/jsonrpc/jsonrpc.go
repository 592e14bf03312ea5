// Package jsonrpc is the only parser of the wire format: JSON-RPC 2.0 messages as used by MCP.
//
// [Parse] checks a message in one pass (grammar, UTF-8, depth, envelope members). The message stays raw bytes: ids,
// params, results and errors alias the input and are never re-encoded. [Set] and [Splice] change parts. Functions are
// stateless and safe for concurrent use.
package jsonrpc

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// LevelTrace is the log level of complete messages to and from clients and servers.
const LevelTrace = slog.LevelDebug - 4

// Limits of messages accepted by Parse.
const (
	MaxDepth = 512  // levels of nesting; a tree uses two per level
	MaxID    = 1024 // bytes of an id
	MaxBatch = 1000 // messages of a batch
)

// Error codes of JSON-RPC 2.0 and of MCP.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeServer         = -32000 // a downstream server cannot answer

	CodeHeaderMismatch     = -32020 // MCP 2026-07-28: a header contradicts the body
	CodeMissingCapability  = -32021 // MCP 2026-07-28: the client lacks a capability that the request needs
	CodeUnsupportedVersion = -32022 // MCP 2026-07-28: _meta names an unknown protocol version
)

// Error is the error member of a response. Data is raw JSON or nil.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// ID is the raw JSON text of an id or a progress token: a string or an integer. The empty ID is none.
type ID string

// StringID returns the ID for a JSON string.
func StringID(s string) ID {
	b, _ := jsontext.AppendQuote(nil, s)
	return ID(b)
}

// IntID returns the ID for an integer.
func IntID(n int64) ID { return ID(strconv.FormatInt(n, 10)) }

// Key returns a form in which equal ids are equal strings: 1 and "1" differ, "a" and "\u0061" do not.
func (id ID) Key() string {
	if len(id) > 0 && id[0] == '"' && bytes.IndexByte([]byte(id), '\\') >= 0 {
		if s, err := jsontext.AppendUnquote(nil, []byte(id)); err == nil {
			return string(StringID(string(s)))
		}
	}
	return string(id)
}

// Text returns the id for a log line: strings without their quotes, control characters escaped.
func (id ID) Text() string {
	if len(id) > 0 && id[0] == '"' {
		if s, err := jsontext.AppendUnquote(nil, []byte(id)); err == nil {
			quoted := strconv.Quote(string(s))
			return quoted[1 : len(quoted)-1]
		}
	}
	return string(id)
}

// ValidID reports whether raw is a JSON string or integer of at most MaxID bytes. raw must be valid JSON.
func ValidID(raw []byte) bool {
	if len(raw) == 0 || len(raw) > MaxID {
		return false
	}
	return raw[0] == '"' || isInteger(raw)
}

func isInteger(raw []byte) bool {
	if raw[0] == '-' {
		raw = raw[1:]
	}
	if len(raw) == 0 {
		return false
	}
	for _, c := range raw {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// Message is one request, notification or response. Its byte slices alias the parsed input.
type Message struct {
	Raw    []byte // the whole message
	ID     ID     // empty for notifications
	Method string // empty for responses
	Params []byte // raw object, or nil
	Result []byte // raw value, or nil
	Err    []byte // raw object, or nil
	Names  Names  // member names that occur in it
}

// IsRequest reports whether m expects a response.
func (m *Message) IsRequest() bool { return m.Method != "" && m.ID != "" }

// IsNotification reports whether m is a notification.
func (m *Message) IsNotification() bool { return m.Method != "" && m.ID == "" }

// IsResponse reports whether m is a response.
func (m *Message) IsResponse() bool { return m.Method == "" }

// Request encodes a request. params is raw JSON or nil.
func Request(id ID, method string, params []byte) []byte {
	b := make([]byte, 0, len(id)+len(method)+len(params)+64)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	return appendCall(b, method, params)
}

// Notification encodes a notification. params is raw JSON or nil.
func Notification(method string, params []byte) []byte {
	b := make([]byte, 0, len(method)+len(params)+48)
	b = append(b, `{"jsonrpc":"2.0"`...)
	return appendCall(b, method, params)
}

func appendCall(b []byte, method string, params []byte) []byte {
	b = append(b, `,"method":`...)
	b, _ = jsontext.AppendQuote(b, method)
	if params != nil {
		b = append(b, `,"params":`...)
		b = append(b, params...)
	}
	return append(b, '}')
}

// Result encodes a response with a result.
func Result(id ID, result []byte) []byte { return response(id, `,"result":`, result) }

// RawError encodes a response whose error member is raw JSON. An empty id is written as null.
func RawError(id ID, err []byte) []byte { return response(id, `,"error":`, err) }

// ErrorResponse encodes a response with an error. An empty id is written as null.
func ErrorResponse(id ID, e *Error) []byte { return RawError(id, e.Encode()) }

func response(id ID, member string, value []byte) []byte {
	if id == "" {
		id = "null"
	}
	b := make([]byte, 0, len(id)+len(value)+40)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(append(b, id...), member...)
	return append(append(b, value...), '}')
}

// Encode returns e as the raw JSON of an error member.
func (e *Error) Encode() []byte {
	b := append([]byte(`{"code":`), strconv.Itoa(e.Code)...)
	b = append(b, `,"message":`...)
	b, _ = jsontext.AppendQuote(b, e.Message) // invalid UTF-8 is replaced
	if len(e.Data) > 0 {
		b = append(b, `,"data":`...)
		b = append(b, e.Data...)
	}
	return append(b, '}')
}

// SingleLine replaces line breaks in valid JSON, for transports that end messages with one. It copies only if there
// is one: in valid JSON, line breaks occur only between tokens.
func SingleLine(b []byte) []byte {
	if bytes.IndexByte(b, '\n') < 0 && bytes.IndexByte(b, '\r') < 0 {
		return b
	}
	out := bytes.Clone(b)
	for i, c := range out {
		if c == '\n' || c == '\r' {
			out[i] = ' '
		}
	}
	return out
}

// Names is a set of member names that occur in a message at any depth. It makes most searches of messages
// unnecessary. A name with an escape sequence counts as each of them.
type Names uint8

// The tracked names.
const (
	NameURI Names = 1 << iota // "uri"
	NameResultType
	NameIsError
	NameMeta // "_meta", also in another case, which some parsers ignore
	NameRequestState

	AnyName = NameURI | NameResultType | NameIsError | NameMeta | NameRequestState
)

// Has reports whether any of the names may occur.
func (n Names) Has(names Names) bool { return n&names != 0 }

// namesIn returns the Names of a quoted member name.
func namesIn(quoted []byte) Names {
	switch {
	case string(quoted) == `"uri"`:
		return NameURI
	case string(quoted) == `"resultType"`:
		return NameResultType
	case string(quoted) == `"isError"`:
		return NameIsError
	case len(quoted) == len(`"_meta"`) && bytes.EqualFold(quoted, []byte(`"_meta"`)):
		return NameMeta
	case string(quoted) == `"requestState"`:
		return NameRequestState
	case bytes.IndexByte(quoted, '\\') >= 0:
		return AnyName
	}
	return 0
}

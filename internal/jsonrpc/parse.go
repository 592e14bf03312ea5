package jsonrpc

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Parse reads one message. The error is an *Error with CodeParse for invalid or too deeply nested JSON, and
// CodeInvalidRequest for invalid UTF-8 and for JSON that is not a message; then the Message has the ID if it is
// known. Envelope members must not be duplicated or differ in case.
func Parse(b []byte) (Message, *Error) {
	s := scanner{b: b}
	s.space()
	start := s.i
	if s.i >= len(b) || b[s.i] != '{' {
		if err := Valid(b); err != nil {
			return Message{}, unparsable(err)
		}
		return Message{}, invalid("a message must be an object")
	}
	var env envelope
	ok := env.scan(&s)
	end := s.i
	if ok {
		s.space()
		if s.i != len(b) {
			ok = s.fail("unexpected data after the message")
		}
	}
	if !ok {
		return Message{}, unparsable(s.failure())
	}
	if err := s.text(); err != nil {
		return Message{}, unparsable(err)
	}
	m, problem := env.message(b[start:end])
	m.Names = s.names
	return m, problem
}

// IsBatch reports whether b looks like a JSON array.
func IsBatch(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n")
	return len(b) > 0 && b[0] == '['
}

// Batch splits a JSON array into its raw elements without parsing them as messages.
func Batch(b []byte) ([][]byte, *Error) {
	if err := Valid(b); err != nil {
		return nil, unparsable(err)
	}
	items := Elements(bytes.TrimSpace(b))
	switch {
	case len(items) == 0:
		return nil, invalid("a batch must not be empty")
	case len(items) > MaxBatch:
		return nil, invalid("the batch has too many messages")
	}
	return items, nil
}

// unparsable returns the error for input that Valid rejects.
func unparsable(err error) *Error {
	if errors.Is(err, errUTF8) {
		return invalid(err.Error())
	}
	return &Error{Code: CodeParse, Message: "Parse error: " + err.Error()}
}

func invalid(reason string) *Error {
	return &Error{Code: CodeInvalidRequest, Message: "Invalid request: " + reason}
}

// envelope holds the raw members of a message while it is scanned.
type envelope struct {
	version, id, method, params, result, err []byte
	problem                                  string
}

var names = [...]string{"jsonrpc", "id", "method", "params", "result", "error"}

func (e *envelope) slot(i int) *[]byte {
	return [...]*[]byte{&e.version, &e.id, &e.method, &e.params, &e.result, &e.err}[i]
}

// scan walks the members of the object at s.i.
func (e *envelope) scan(s *scanner) bool {
	return s.list('}', func() bool {
		keyStart := s.i
		if !s.key() {
			return false
		}
		key := unquoteKey(s.b[keyStart : keyStart+stringEnd(s.b[keyStart:])])
		start := s.i
		if !s.value(2) {
			return false
		}
		e.set(key, s.b[start:s.i])
		return true
	})
}

// unquoteKey returns the decoded name of a member. raw is valid.
func unquoteKey(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	key, _ := jsontext.AppendUnquote(nil, raw)
	return key
}

func (e *envelope) set(key, value []byte) {
	for i, name := range names {
		slot := e.slot(i)
		switch {
		case string(key) == name && *slot == nil:
			*slot = value
		case string(key) == name:
			e.problem = "the member " + name + " occurs twice"
		case strings.EqualFold(string(key), name):
			e.problem = "a member must be spelt " + name
		}
	}
}

const wrongID = "id must be a string or an integer of at most 1,024 bytes" // MaxID

// message checks the members and returns the message.
func (e *envelope) message(raw []byte) (Message, *Error) {
	m := Message{Raw: raw}
	if e.problem != "" {
		return m, invalid(e.problem)
	}
	nullID := string(e.id) == "null"
	if e.id != nil && !nullID {
		if !ValidID(e.id) {
			return m, invalid(wrongID)
		}
		m.ID = ID(e.id)
	}
	if string(e.version) != `"2.0"` {
		return m, invalid(`jsonrpc must be "2.0"`)
	}
	if e.method != nil {
		return m, e.call(&m, nullID)
	}
	switch {
	case e.result == nil && e.err == nil:
		return m, invalid("a message needs a method, a result or an error")
	case e.result != nil && e.err != nil:
		return m, invalid("a response must not have both a result and an error")
	case e.id == nil || nullID && e.err == nil:
		return m, invalid("a response needs an id")
	case e.err != nil && e.err[0] != '{':
		return m, invalid("error must be an object")
	}
	m.Result, m.Err = e.result, e.err
	return m, nil
}

func (e *envelope) call(m *Message, nullID bool) *Error {
	switch {
	case nullID:
		return invalid(wrongID)
	case e.method[0] != '"' || len(e.method) == 2:
		return invalid("method must be a string")
	case e.result != nil || e.err != nil:
		return invalid("a message must not have both a method and a result")
	case e.params != nil && e.params[0] != '{' && string(e.params) != "null":
		return invalid("params must be an object")
	}
	if e.params != nil && e.params[0] == '{' {
		m.Params = e.params
	}
	m.Method = Text(e.method)
	return nil
}

// Text returns the value of a raw JSON string, or "" if raw is not a string.
func Text(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	s, _ := jsontext.AppendUnquote(nil, raw)
	return string(s)
}
